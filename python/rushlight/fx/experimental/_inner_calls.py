"""What ops compute on the way: tracers that see the ops as a program calls them look it up here.

`layer_norm` is one node of such a trace. Its backward pass takes the mean that it has computed,
which is the result of no node; the call that gave it is noted here, below autograd, and becomes a
node when the trace comes to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tag, Tensor
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

__all__ = ["CallsOfBatches", "InnerCall", "InnerCalls", "has_batches", "window_of"]


def window_of(tensor: Tensor) -> Any:
    """What memory a tensor shows, and how: the same for tensors of the same elements.

    None of tensors without memory of their own, which only their identity tells apart. What an op
    gives may be another object to those who called it.
    """
    shown = tensor._meta if isinstance(tensor, FakeTensor) else tensor
    try:
        if shown.is_meta:
            place = shown.untyped_storage()._cdata, shown.storage_offset()
        elif shown.numel() == 0:
            return None
        else:
            place = shown.data_ptr()
    except RuntimeError:  # a special tensor without memory
        return None
    return place, tuple(shown.shape), shown.stride(), shown.dtype


class InnerCall(NamedTuple):
    """A call of an op below autograd, its results, and the versions of the tensors that it saw."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: Any
    versions: list[tuple[Tensor, int]]


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


class InnerCalls(TorchDispatchMode):
    """Notes the calls that ops make, while `run` runs them."""

    _sees_whole_ops = True  # so that they compute as they do without it

    def __init__(self) -> None:
        super().__init__()
        # By windows; the calls keep the tensors, so that the memory stays theirs.
        self._calls: dict[Any, InnerCall] = {}

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What a call of an op gives. Notes what it computes where a derivative may take that."""
        tensors = () if _C.is_inference_mode_enabled() else _tensors((args, kwargs))
        if not any(t.requires_grad or _C._forward_level_of(t) for t in tensors):
            return func(*args, **kwargs)
        with self:
            return func(*args, **kwargs)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        made = _tensors(results)
        versions = [(t, t._version) for t in (*_tensors((args, kwargs)), *made)]
        call = InnerCall(func, tuple(args), kwargs, results, versions)
        for tensor in made:  # a view may show what an earlier call has made
            self._calls.setdefault(window_of(tensor), call)
        return results

    def call_of(self, tensor: Tensor) -> InnerCall | None:
        """The call that gave a tensor, if an op has made it on the way.

        RuntimeError where the same call would now give something else.
        """
        window = window_of(tensor)
        call = None if window is None else self._calls.get(window)
        if call is None:
            return None
        reason = _why_not_again(call)
        if reason:
            raise RuntimeError(
                f"A derivative takes what {call.func} has computed inside of another op, and the "
                f"graph cannot compute it again: {reason}. Trace below autograd instead (make_fx "
                "with pre_dispatch=False)."
            )
        return call


def _why_not_again(call: InnerCall) -> str:
    """Why a call would not give the same results once more; "" if it would."""
    if call.func._schema.is_mutable:
        return "it writes into its arguments"
    if Tag.nondeterministic_seeded in call.func.tags:
        return "it draws random numbers"
    if any(tensor._version != version for tensor, version in call.versions):
        return "its arguments have been written to since"
    return ""


def has_batches(args: Any, kwargs: Any) -> bool:
    """Whether a call is one of `vmap`'s: one tensor stands for many, or may have such tangents."""
    mapped = _C._current_level() != 0
    return mapped and any(
        _C._functorch.is_batchedtensor(t) or _C._forward_level_of(t)
        for t in _tensors((args, kwargs))
    )


class CallsOfBatches(TorchDispatchMode):
    """Shows a tracer the calls that an op of a batch becomes by its batching rule.

    It is entered before the trace begins, so that the levels of `vmap` are above it.
    """

    _sees_whole_ops = True

    def __init__(self, see: Any) -> None:
        super().__init__()
        self._see = see
        self._within: Any = None  # the op of a batch that runs

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What a call gives, some of whose tensors are batches."""
        before, self._within = self._within, func
        try:
            return func(*args, **kwargs)
        finally:
            self._within = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        outer, detach = self._within, rushlight.ops.aten.detach.default
        # What a node saves of a batch is detached; the program did not ask for that.
        if outer is None or (func is detach and outer is not detach):
            return func(*args, **kwargs)
        self._within = None
        try:
            return self._see(func, args, kwargs)
        finally:
            self._within = outer
