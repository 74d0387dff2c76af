"""The names that the fuzzer's programs use: `from tests.fuzz.names import *`, then a program's lines run as they were.

`start` says the dtype of the samples' makers (`x`, `ints`, …, those of tests/ops) and seeds all random numbers.
`read` touches every element of what an op returned, so that a result that reaches out of its memory is found.
"""

import rushlight as torch
from rushlight._table import ops
from tests.ops.harness import Makers

# What samples make tensors with: x(3, 4), ints(5, high=3), ….
MAKERS = [
    n for n, f in vars(Makers).items() if callable(f) and not n.startswith("_") and n != "arguments"
]

__all__ = [
    "backward",
    "filled",
    "inf",
    "leaf",
    "m",
    "nan",
    "ops",
    "program",
    "read",
    "start",
    "torch",
]
__all__ += MAKERS

m = torch
inf, nan = float("inf"), float("nan")
_LARGEST = 1 << 18  # elements of a result that are read
_makers = Makers(torch, "float32", "")
_grad = False
_leaves = []


def start(dtype="float32", seed=0, grad=False):
    """Begins a program; returns the dtype."""
    global _makers, _grad
    torch.manual_seed(seed)
    _makers, _grad = Makers(torch, dtype, str(seed)), grad
    _leaves.clear()
    return getattr(torch, dtype)


def leaf(t):
    """A leaf that requires a gradient where the dtype allows it; `backward` asks for it."""
    if _grad and (t.is_floating_point() or t.is_complex()):
        t = t.detach().requires_grad_()
        _leaves.append(t)
    return t


def _maker(name):
    def make(*args, **kwargs):
        t = getattr(_makers, name)(*args, **kwargs)
        return t if name == "const" else leaf(t)

    return make


globals().update({name: _maker(name) for name in MAKERS})


def filled(shape, dtype, kind="rand"):
    """A tensor of small numbers, small indices, zeros, extreme numbers, or with NaN and infinity among them."""
    if kind == "index":
        return torch.randint(0, 4, shape).to(dtype)
    if kind == "zero":
        return torch.zeros(shape, dtype=dtype)
    t = (torch.rand(shape) * 8 - 4).to(dtype)
    if kind == "rand" or t.numel() == 0 or dtype == torch.bool:
        return leaf(t)
    flat = t.view(-1)
    if t.is_floating_point() or t.is_complex():
        special = (
            [inf, -inf, nan, 0.0, -0.0]
            if kind == "nan"
            else [torch.finfo(dtype).max, torch.finfo(dtype).tiny]
        )
    else:
        special = [torch.iinfo(dtype).max, torch.iinfo(dtype).min]
    for i, value in enumerate(special[: t.numel()]):
        flat[(i * 7) % t.numel()] = value
    return leaf(t)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def read(value):
    """`value`, after every element of its tensors was read; None instead of what is too large to go on with."""
    found = _tensors(value)
    if any(t.numel() > _LARGEST for t in found):
        return None
    for t in found:
        if t.device.type == "cpu":
            t.detach().clone()
        assert t.dim() == len(t.shape) == len(t.stride())
    return value


def backward(value):
    """Gradients of the leaves, then gradients of those gradients."""
    value = read(value)
    for _ in range(2):
        outputs = [
            t
            for t in _tensors(value)
            if t.requires_grad and (t.is_floating_point() or t.is_complex())
        ]
        if not outputs or not _leaves:
            break
        ones = [torch.ones_like(t) for t in outputs]
        value = torch.autograd.grad(
            outputs, list(_leaves), ones, create_graph=True, allow_unused=True
        )
        read(value)
    return value


class program:
    """`with program:` around every line of a printed program: refusals are what it expects."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(
            kind, (RuntimeError, TypeError, ValueError, IndexError, AttributeError)
        )


program = program()
