"""The names that programs of `beside` use, beside those of names.py: what is done to a graph other than calling ops.

Most are chosen by a kind, a word of the lists below: what a hook returns, what a custom function leaves on its context.
"""

import contextlib
import ctypes
import gc
import math
import threading

import rushlight as torch
from rushlight.autograd import Function, graph
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode
from tests.fuzz import names
from tests.fuzz.names import *  # noqa: F403
from tests.fuzz.names import read

# fmt: off
MADE = [
    "fit", "fit", "zero_d", "wide", "narrow", "int", "bool", "complex", "half", "meta", "none", "sparse", "csr",
    "empty", "expanded", "sub", "wrapper", "memoryless", "inference", "nested", "freed", "number", "text", "list",
    "tuple", "cls", "leaf", "strided", "five", "quantized", "undefined_device", "bare",
]
DEEDS = [
    "resize", "free", "grow", "set", "set_wide", "data", "raise", "backward", "again", "remove", "add", "collect",
    "requires", "detach", "swap", "free_leaves", "clear_dict", "enter_mode", "zero",
]
FORWARD = [
    "plain", "plain", "input", "view", "dirty", "dirty_view", "two", "none", "number", "saves_output", "saves_all",
    "lies_dirty", "to_save", "dirty_5", "save_twice", "nested_apply", "grad_mode", "materialize", "wrong_device",
    "deletes", "class", "keeps", "resizes", "non_differentiable", "own_node", "list_out", "same_twice",
]
BACKWARD = [
    "fit", "made", "deed", "too_many", "too_few", "saved", "apply_again", "by_hand", "node",
]
ANSWERS = [
    "call", "call", "none", "not_implemented", "raise", "number", "meta", "wide", "list", "self", "memoryless",
]
# fmt: on

_local = threading.local()


class Sub(torch.Tensor):
    """A subclass without a word to say."""


class Memoryless(torch.Tensor):
    """A wrapper without memory, which answers as its kind says."""

    @staticmethod
    def __new__(cls, size, answer="call", strides=None, offset=0, **how):
        made = torch.Tensor._make_wrapper_subclass(cls, size, strides, offset, **how)
        made.answer = answer
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return answered(_first(args, cls), func, args, kwargs, cls)


class Function_(torch.Tensor):
    """Sees calls by __torch_function__, and answers as its kind says."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return answered(_first(args, cls), func, args, kwargs, cls)


def _first(args, cls):
    for a in args:
        if isinstance(a, cls):
            return getattr(a, "answer", "call")
        if isinstance(a, (list, tuple)) and a:
            return _first(a, cls)
    return "call"


def answered(kind, func, args, kwargs, cls):
    """What a handler of a call returns."""
    if kind == "call":

        def plain(a):
            if isinstance(a, cls):
                return torch.ones([min(s, 3) for s in a.shape[:5]])
            return type(a)(map(plain, a)) if type(a) in (list, tuple) else a

        depth = getattr(_local, "depth", 0)
        if depth > 5:
            raise RuntimeError("called by itself")
        _local.depth = depth + 1
        try:
            return func(*map(plain, args), **(kwargs or {}))
        finally:
            _local.depth = depth
    if kind == "raise":
        raise RuntimeError("answered")
    if kind == "not_implemented":
        return NotImplemented
    if kind == "self":
        return args[0] if args else None
    return made(kind, torch.ones(2))


class Answering(TorchDispatchMode):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return answered(self.kind, func, args, kwargs, Memoryless)


class AnsweringFunction(TorchFunctionMode):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return answered(self.kind, func, args, kwargs, Function_)


def within(kind, line, **space):
    """A line within a mode that answers, or hooks of what is saved that do."""
    mode = {"dispatch": Answering, "function": AnsweringFunction}.get(kind.split(":")[0])
    kind = kind.split(":")[1]
    manager = mode(kind) if mode else graph.saved_tensors_hooks(_packing(kind), _packing(kind))
    with manager:
        return line()


def _packing(kind):
    return lambda t: made(kind, t if isinstance(t, torch.Tensor) else torch.ones(2))


def made(kind, like):
    """A value of a kind, `like` a gradient in some way."""
    like = like if isinstance(like, torch.Tensor) else torch.ones(2)
    shape = [min(s, 64) for s in like.shape][:8]
    n = like.dim()
    ones = torch.ones(shape, dtype=like.dtype if like.dtype != torch.bool else torch.float32)
    simple = {
        "none": None, "number": 3.5, "text": "gradient", "cls": torch.Tensor,
        "zero_d": torch.tensor(1.0), "five": torch.ones(5), "int": torch.ones(shape, dtype=torch.int64),
        "bool": torch.ones(shape, dtype=torch.bool), "half": torch.ones(shape, dtype=torch.float16),
        "complex": torch.ones(shape, dtype=torch.complex64), "meta": torch.ones(shape, device="meta"),
        "empty": torch.empty(0), "fit": ones, "wide": torch.ones([2, 3, *shape][:8]),
        "narrow": torch.ones([1] * n), "list": [ones, ones], "tuple": (ones, None),
    }  # fmt: skip
    if kind in simple:
        return simple[kind]
    if kind in ("sparse", "csr"):
        return ones.to_sparse() if kind == "sparse" else ones.to_sparse_csr()
    if kind == "expanded":
        return torch.ones(1).expand(*shape)
    if kind == "strided":
        return torch.ones(2 * n + 2).as_strided(shape, [0] * n)
    if kind == "sub":
        return ones.as_subclass(Sub)
    if kind == "wrapper":
        return Memoryless(shape, "call")
    if kind == "memoryless":
        return Memoryless([2**20] * max(n, 1), "fit")
    if kind == "leaf":
        return torch.ones(shape, requires_grad=True)
    if kind == "inference":
        with torch.inference_mode():
            return torch.ones(shape)
    if kind == "nested":
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    if kind == "freed":
        ones.untyped_storage().resize_(0)
        return ones
    if kind == "quantized":
        return torch.quantize_per_tensor(ones.float(), 0.1, 0, torch.quint8)
    if kind == "bare":
        return torch.Tensor.__new__(Sub)
    return torch.ones(shape, device="cuda")


def does(kind, given):
    """A deed to a tensor that a hook was given."""
    t = next((a for a in given if isinstance(a, torch.Tensor)), None)
    t = (
        t
        if t is not None
        else next(
            (x for a in given if isinstance(a, tuple) for x in a if isinstance(x, torch.Tensor)),
            None,
        )
    )
    if kind == "raise":
        raise RuntimeError("done")
    if kind == "collect":
        gc.collect()
    if t is None:
        return
    deeds = {
        "resize": lambda: t.resize_(7, 3),
        "free": lambda: t.untyped_storage().resize_(0),
        "grow": lambda: t.resize_(70000),
        "set": lambda: t.set_(),
        "set_wide": lambda: t.set_(torch.ones(64).untyped_storage(), 0, (8, 8), (8, 1)),
        "data": lambda: setattr(t, "data", torch.ones(3, 5)),
        "backward": lambda: names_of("y").sum().backward(retain_graph=True),
        "again": lambda: by_hand(names_of("y"), "fit"),
        "requires": lambda: t.requires_grad_(),
        "detach": lambda: t.detach_(),
        "swap": lambda: torch.utils.swap_tensors(t, torch.ones(9)),
        "free_leaves": lambda: [
            names_of(v).untyped_storage().resize_(0) for v in "abcd" if names_of(v).is_leaf
        ],
        "clear_dict": lambda: names_of("y").__dict__.clear(),
        "enter_mode": enter_mode,
        "zero": lambda: t.zero_(),
        "remove": lambda: [h.remove() for h in _handles],
        "add": lambda: names_of("y").register_hook(hook("made:fit")),
    }
    depth = getattr(_local, "deeds", 0)
    if depth > 20:  # what a program does without end is its own fault
        raise RuntimeError("done by itself")
    _local.deeds = depth + 1
    try:
        deeds.get(kind, lambda: None)()
    finally:
        _local.deeds = depth


def enter_mode():
    """One mode that stays for the rest of the program: each of several would answer what the others do."""
    if not _modes:
        _modes.append(Answering("fit").__enter__())


_space = {}
_handles = []
_modes = []


def names_of(name):
    """A variable of the program that runs."""
    return _space[name]


def begin(space):
    """The variables that hooks of this program reach."""
    global _space
    _space = space
    _handles.clear()
    _modes.clear()
    while torch._C._torch_dispatch_modes():
        torch._C._pop_torch_dispatch_mode(torch._C._torch_dispatch_modes()[-1])


def hook(kind):
    """A hook: `made:KIND` returns something, `does:KIND` does something, and returns what it was given."""
    what, _, kind = kind.partition(":")

    def call(*given):
        if what == "made":
            first = given[0] if given else None
            if isinstance(first, tuple):
                return tuple(made(kind, g) for g in first)
            return made(kind, first)
        return does(kind, given)

    return call


def kept(handle):
    """A handle that a deed may remove."""
    _handles.append(handle)
    return handle


def node(t, *path):
    """The node of a tensor, or one further down."""
    found = t.grad_fn if isinstance(t, torch.Tensor) else t
    for step in path:
        following = [n for n, _ in found.next_functions if n is not None]
        if not following:
            break
        found = following[step % len(following)]
    if found is None:
        raise RuntimeError("no node")
    return found


def by_hand(t, *kinds, path=()):
    """A node called with gradients of these kinds, in turns."""
    n = node(t, *path)
    given = []
    for i, info in enumerate(n._input_metadata):
        shape = [min(s, 64) for s in info.shape]
        like = torch.ones(shape, dtype=info.dtype if info.dtype is not None else torch.float32)
        given.append(made(kinds[i % len(kinds)], like))
    return read(n(*given))


def asked(n):
    """Every attribute of a node."""
    for name in dir(n) + [f"_{r}saved_{s}" for r in ("", "raw_") for s in _SAVED]:
        if not name.startswith("__"):
            with contextlib.suppress(RuntimeError, AttributeError):  # not there, or freed
                getattr(n, name)
    return repr(n)


_SAVED = [
    "self",
    "other",
    "result",
    "input",
    "weight",
    "tensors",
    "dim",
    "indices",
    "mask",
    "sizes",
]


def raw_hooks(t, name, pack, unpack, path=()):
    """Hooks on what a node saved."""
    return getattr(node(t, *path), f"_raw_saved_{name}").register_hooks(hook(pack), hook(unpack))


def function(forward, backward, kind="fit"):
    """A custom function whose parts do what their kinds say."""

    class Made(Function):
        @staticmethod
        def forward(ctx, x, *rest):
            return _forward(ctx, x, forward, kind)

        @staticmethod
        def backward(ctx, *grads):
            return _backward(ctx, grads, backward, kind)

    return Made


def _forward(ctx, x, how, kind):
    out = x * 2
    if how == "input":
        return x
    if how == "view":
        return x.view(-1)[:1]
    if how in ("dirty", "dirty_view"):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x.view(-1)[1:] if how == "dirty_view" else x)
        return x
    if how == "two":
        return out, x * 3
    if how == "none":
        return None
    if how == "number":
        return 3, out
    if how == "saves_output":
        ctx.save_for_backward(out, x)
    if how == "saves_all":
        ctx.save_for_backward(x, None, made(kind, x))
    if how == "lies_dirty":
        ctx.mark_dirty(made(kind, x))
    if how == "to_save":
        ctx.to_save = made(kind, x)
    if how == "dirty_5":
        ctx.dirty_tensors = made(kind, x)
        ctx.non_differentiable = made(kind, x)
    if how == "save_twice":
        ctx.save_for_backward(x)
        ctx.save_for_backward(out, out)
    if how == "nested_apply":
        return function("plain", "fit").apply(x)
    if how == "grad_mode":
        with torch.enable_grad():
            return (x * 2).exp()
    if how == "materialize":
        ctx.set_materialize_grads(False)
        return out, x * 3
    if how == "wrong_device":
        return torch.ones(x.shape, device="meta")
    if how == "deletes":
        for name in (
            "to_save",
            "dirty_tensors",
            "non_differentiable",
            "needs_input_grad",
            "saved_for_forward",
        ):
            delattr(ctx, name)
    if how == "class":
        ctx.__class__ = type(ctx).__base__
    if how == "keeps":
        ctx.out = out
    if how == "resizes":
        x.untyped_storage().resize_(0)
    if how == "non_differentiable":
        ctx.mark_non_differentiable(out, made(kind, x))
    if how == "own_node":
        asked(ctx)
        ctx(made(kind, x))
    if how == "list_out":
        return [out, out]
    if how == "same_twice":
        return out, out
    return out


def _backward(ctx, grads, how, kind):
    grad = next((g for g in grads if g is not None), None)
    if how == "made":
        return made(kind, grad)
    if how == "deed":
        does(kind, grads)
    if how == "too_many":
        return grad, grad, grad, None
    if how == "too_few":
        return ()
    if how == "saved":
        return sum(t.sum() for t in ctx.saved_tensors if t is not None) * grad
    if how == "apply_again":
        ctx.maybe_clear_saved_tensors()
        return grad, ctx.saved_tensors
    if how == "by_hand" and not getattr(ctx, "within", False):
        ctx.within = True
        return ctx(*[made(kind, grad)] * len(grads))
    if how == "node":
        asked(ctx)
    return grad


class _Extent(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Extent), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


_alive = []


def capsule(sizes, strides, code=2, bits=32, lanes=1, device=1, ndim=None, name=b"dltensor"):
    """A DLPack capsule that claims these sizes and strides, which lie in its memory or nowhere."""
    ones = [1] * 128  # where ndim claims more
    span = math.prod(sizes)
    if strides is not None:
        span = sum((s - 1) * abs(t) for s, t in zip(sizes, [*strides, *ones], strict=False))
    if all(s > 0 for s in sizes) and 1 << 10 < span < 1 << 63:
        raise ValueError("nobody can tell that the memory is not there")
    memory = (ctypes.c_char * (1 << 18))()
    shape = (ctypes.c_int64 * 128)(*[*sizes, *ones][:128])
    steps = (ctypes.c_int64 * 128)(*[*strides, *ones][:128]) if strides is not None else None
    t = _DLTensor(
        ctypes.addressof(memory) + (1 << 17), _Extent(device, 0), len(sizes) if ndim is None else ndim,
        code, bits, lanes, shape, steps, 0, None, None,
    )  # fmt: skip
    _alive.append((memory, shape, steps, t, name))
    del _alive[:-100]
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(t), name, None)


def threads(*lines):
    """Lines at the same time; the first error of any."""
    errors = []

    def run(line):
        for _ in range(3):
            try:
                line()
            except BaseException as error:
                errors.append(error)

    started = [threading.Thread(target=run, args=(line,)) for line in lines]
    for t in started:
        t.start()
    for t in started:
        t.join()
    if errors:
        raise errors[0]


def recorded(value):
    """The first tensor of a result, or of a list of them, that has a history."""
    read(value)
    for t in names._tensors(value):
        if t.grad_fn is not None:
            return t
    raise RuntimeError("nothing is recorded")


def plainly(line):
    """A line while no class is asked for its ops."""
    with torch._C._DisableTorchDispatch():
        return line()


def dual(line, primal, tangent):
    """A line while a tensor has a tangent; its dual."""
    with torch.autograd.forward_ad.dual_level():
        made_dual = torch.autograd.forward_ad.make_dual(primal, tangent)
        line()
        return read(made_dual.sin() * made_dual)


def checkpointed(f, t, deed):
    """The gradient of a checkpointed function, after a deed to what it was given."""
    out = torch.utils.checkpoint.checkpoint(f, t, use_reentrant=False)
    does(deed, (t,))
    out.sum().backward()


def attribute(owner, name, value):
    """Sets an attribute, or deletes it where the value is Ellipsis."""
    delattr(owner, name) if value is Ellipsis else setattr(owner, name, value)


def called(owner, name, *given):
    """A method by its name."""
    return getattr(owner, name)(*given)


__all__ = [
    *names.__all__,
    *(
        "Answering",
        "Function_",
        "Memoryless",
        "Sub",
        "asked",
        "attribute",
        "begin",
        "by_hand",
        "called",
        "capsule",
    ),
    *(
        "does",
        "function",
        "gc",
        "graph",
        "hook",
        "kept",
        "made",
        "names_of",
        "node",
        "raw_hooks",
    ),
    *("recorded", "threads", "within", "plainly", "dual", "checkpointed"),
]
