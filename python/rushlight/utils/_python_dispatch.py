"""`TorchDispatchMode` and tensors with `__torch_dispatch__`: code that sees ops below autograd.

Ops arrive in boxed form, as `rushlight.ops.aten.NAME.OVERLOAD` with their arguments, those that
composites and backward are made of and `out=` forms among them. Programs that compare `func` with
ops by name should know that some ops stay whole here that PyTorch takes apart (`linear`,
`layer_norm`), and that private ones have the namespace `rushlight`.
"""

from __future__ import annotations

import contextlib

from rushlight import _C
from rushlight.utils import _pytree

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Within it, `__torch_dispatch__` is called for every op of this thread.

    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, op, types, args=(), kwargs=None):
    ...         print(op)
    ...         return op(*args, **kwargs or {})

    While it runs the mode is off, so that ops of its own go to the mode outside. Nothing is
    recorded there: autograd sees the op as a whole.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_dispatch_mode(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_dispatch_mode(self)

    @classmethod
    def push(cls, *args, **kwargs):
        """A new instance: `with Mode.push():`, by its old way of writing."""
        return cls(*args, **kwargs)


def _get_current_dispatch_mode():
    """The innermost mode, or None."""
    modes = _C._torch_dispatch_modes()
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack():
    """The active modes, the innermost last."""
    return _C._torch_dispatch_modes()


def _len_torch_dispatch_stack():
    return len(_C._torch_dispatch_modes())


@contextlib.contextmanager
def _disable_current_modes():
    """Within it no dispatch mode is active."""
    _C._hide_dispatch_modes()
    try:
        yield
    finally:
        _C._show_dispatch_modes()


def is_traceable_wrapper_subclass(t):
    """Whether a tensor is of a class that flattens itself into inner tensors."""
    return (
        isinstance(t, _C.TensorBase)
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def wrappers_in(tree):
    """The tensors among the leaves of a tree that are made of inner ones."""
    return [leaf for leaf in _pytree.tree_leaves(tree) if is_traceable_wrapper_subclass(leaf)]


def call_wrapper(func, args, kwargs, wrappers):
    """What the classes of wrappers give for an op, at once: who sees `func` sees their ops."""
    kinds = list(dict.fromkeys(map(type, wrappers)))
    for kind in kinds:
        result = kind.__torch_dispatch__(func, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"{func}: __torch_dispatch__ of each of {kinds} returned NotImplemented")


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A tensor subclass of the same kind whose inner tensors are `callback(name, tensor)`.

    The class takes itself apart and together with `__tensor_flatten__` and `__tensor_unflatten__`.
    """
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if made.shape != outer_size or tuple(made.stride()) != tuple(outer_stride):
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ made sizes {tuple(made.shape)} and strides "
            f"{made.stride()}, but {tuple(outer_size)} and {tuple(outer_stride)} were asked for"
        )
    return made


def return_and_correct_aliasing(func, args, kwargs, out):
    """What `__torch_dispatch__` of a wrapper should return: the arguments that `func` writes
    themselves, and `out`, which it computed, for all other results.
    """
    given = {a.name: value for a, value in zip(func._schema.arguments, args, strict=False)}
    given.update(kwargs or {})
    written = {
        a.alias_info.before_set: given[a.name]
        for a in func._schema.arguments
        if a.alias_info is not None and a.alias_info.is_write and a.name in given
    }

    def correct(result, value):
        info = result.alias_info
        if info is None or not info.is_write:
            return value
        target = written.get(info.before_set, value)
        if target is not value and isinstance(value, _C.TensorBase):
            _C._take_geometry(target, value)  # an op like `transpose_` has changed it inside
        return target

    returns = func._schema.returns
    if len(returns) == 1:
        return correct(returns[0], out)
    if not returns:
        return out
    return type(out)(correct(r, v) for r, v in zip(returns, out, strict=True))
