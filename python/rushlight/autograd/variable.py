"""`Variable`, a deprecated name of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C

__all__ = ["Variable"]


class _Engine:
    """What programs reach into the engine for: callbacks, and a run by plain arguments."""

    @staticmethod
    def queue_callback(callback: int | Callable[..., Any]) -> None:
        """Call `callback()` when the backward that is running has computed all gradients.

        Raises:
            RuntimeError: outside of backward.
        """
        _C._queue_callback(callback)

    @staticmethod
    def run_backward(
        tensors,
        grad_tensors,
        keep_graph,
        create_graph,
        inputs=(),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ):
        """Gradients of `inputs`, or with `accumulate_grad` those of leaves added to `.grad`."""
        results = _C._run_backward(
            tensors,
            grad_tensors,
            keep_graph,
            create_graph,
            inputs,
            accumulate_grad,
            allow_unreachable,
        )
        return () if accumulate_grad else results

    @staticmethod
    def is_checkpoint_valid():
        """Whether the running backward goes to all leaves, as a reentrant checkpoint needs."""
        return _C._reaches_all_leaves()


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _C.TensorBase)


class Variable(metaclass=_VariableMeta):
    """`Variable(data, requires_grad=False)` is a tensor on the same memory.

    Args:
        data: the tensor; None: an empty one.
        requires_grad: whether gradients are recorded for it.
        volatile: without effect.

    Example:
        >>> torch.autograd.Variable(torch.tensor([4.0]), requires_grad=True)
        tensor([4.], requires_grad=True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad: bool = False, volatile=None):
        tensor = rushlight.empty(0) if data is None else data.detach()
        return tensor.requires_grad_() if requires_grad else tensor
