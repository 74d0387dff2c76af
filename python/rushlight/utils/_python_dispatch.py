"""`TorchDispatchMode`: code that sees every op below autograd.

Ops arrive in boxed form, as `rushlight.ops.aten.NAME.OVERLOAD` with their arguments, those that
composites and backward are made of among them. What runs into `out=` is not seen. Programs that
compare `func` with ops by name should know that some ops stay whole here that PyTorch takes apart
(`linear`, `layer_norm`), and that one signature may stand for several (`add.Tensor` is also
`add.Scalar`).
"""

from __future__ import annotations

import contextlib

from rushlight import _C

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """Within it, `__torch_dispatch__` is called for every op of this thread.

    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))

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
