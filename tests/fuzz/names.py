"""The names that the fuzzer's programs use: `from tests.fuzz.names import *`, then a program's lines run as they were.

`start` says the dtype of the samples' makers (`x`, `ints`, …, the names of tests/ops) and seeds all random numbers.
`read` touches every element of what an op returned, so that a result that reaches out of its memory is found.
"""

import math

import rushlight as torch
from rushlight._table import ops

# fmt: off
__all__ = [
    "backward", "const", "distinct", "filled", "inf", "ints", "leaf", "m", "mask", "nan", "ops", "pos", "program",
    "read", "regular", "same", "spd", "start", "torch", "unit", "x",
]
# fmt: on

m = torch
inf, nan = math.inf, math.nan
_LARGEST = 1 << 18  # elements of a result that are read
_dtype = torch.float32
_grad = False
_leaves = []


def start(dtype="float32", seed=0, grad=False):
    """Begins a program; returns the dtype."""
    global _dtype, _grad
    torch.manual_seed(seed)
    _dtype, _grad = getattr(torch, dtype), grad
    _leaves.clear()
    return _dtype


def leaf(t):
    """A leaf that requires a gradient where the dtype allows it; `backward` asks for it."""
    if _grad and (t.is_floating_point() or t.is_complex()):
        t = t.detach().requires_grad_()
        _leaves.append(t)
    return t


def _uniform(shape, low, high, dtype):
    return (torch.rand(shape) * (high - low) + low).to(dtype)


def x(*shape, low=-2.0, high=2.0):
    return leaf(_uniform(shape, max(low, 0.0) if _dtype == torch.uint8 else low, high, _dtype))


def pos(*shape):
    return x(*shape, low=1.0, high=3.0)


def const(*shape):
    return _uniform(shape, 0.2, 3.0, _dtype)


def unit(*shape):
    return x(*shape, low=-0.9, high=0.9)


def distinct(*shape):
    return leaf(torch.randperm(math.prod(shape)).reshape(shape).to(_dtype))


def regular(*shape):
    return leaf((torch.rand(shape) - 0.5 + 2 * shape[-1] * torch.eye(shape[-1])).to(_dtype))


def spd(*shape):
    a = torch.rand(shape) - 0.5
    return leaf((a @ a.mT + torch.eye(shape[-1])).to(_dtype))


def ints(*shape, high, low=0):
    return torch.randint(low, high, shape)


def mask(*shape):
    return torch.rand(shape) < 0.5


def same(*values, dtype=None):
    return leaf(torch.tensor(values).to(getattr(torch, dtype) if dtype else _dtype))


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
