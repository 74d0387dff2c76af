"""What a trace does with calls that are no ops: sizes stay sizes, numbers of Python are told of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import rushlight
from rushlight import _C, Tensor
from rushlight.jit._recording import Call, TracingState, is_of_library
from rushlight.nn import functional
from rushlight.overrides import TorchFunctionMode
from rushlight.utils import _pytree

__all__ = ["Calls"]

_CONVERSIONS = {
    Tensor.__bool__: "boolean",
    Tensor.__int__: "integer",
    Tensor.__float__: "float",
    Tensor.__index__: "index",
    Tensor.__complex__: "complex number",
    Tensor.item: "number",
    Tensor.tolist: "list",
}
_QUESTIONS = (
    Tensor.__contains__,
    Tensor.equal,
    Tensor.allclose,
    Tensor.is_nonzero,
    rushlight.equal,
    rushlight.allclose,
    rushlight.is_nonzero,
)
_SHAPE = cast("Any", Tensor.shape).__get__  # how `t.shape` is shown to a mode
_FACTORIES = (rushlight.tensor, rushlight.as_tensor, Tensor.new_tensor)


def _leaves(tree: Any) -> Iterator[Any]:
    """What is in containers, and the bounds of slices."""
    for leaf in _pytree.tree_leaves(tree):
        if isinstance(leaf, slice):
            yield from (leaf.start, leaf.stop, leaf.step)
        else:
            yield leaf


class Calls(TorchFunctionMode):
    """Sees the calls that a program makes while a trace is taken of it.

    Sizes of tensors become values of the trace (0-d tensors, as in PyTorch), and arguments that are
    computed from them stay computed. A value that leaves the trace gets a warning.
    """

    def __init__(self, trace: TracingState) -> None:
        self.trace = trace
        self._handlers: dict[Any, Callable[..., Any]] = {
            _SHAPE: self._shape,
            Tensor.size: self._size,
            Tensor.numel: self._numel,
            Tensor.nelement: self._numel,
            rushlight.numel: self._numel,
            Tensor.__len__: self._length,
            Tensor.data.__get__: self._detached,
            Tensor.data.__set__: self._replace_data,
            Tensor.numpy: self._to_numpy,
            functional.embedding_bag: self._bags,
        }
        self._handlers |= dict.fromkeys(_FACTORIES, self._from_data)
        self._handlers |= dict.fromkeys(_QUESTIONS, self._ask)
        self._handlers |= dict.fromkeys(_CONVERSIONS, self._to_python)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        handler = self._handlers.get(func)
        if handler is not None:
            return handler(func, *args, **kwargs)
        inside = getattr(func, "__wrapped__", None)
        if inside is not None:  # written in Python: what it calls is seen
            with self:
                return inside(*args, **kwargs)
        computed = [t for t in _leaves((args, kwargs)) if self._is_number(t)]
        if not computed:
            return func(*args, **kwargs)
        return self._call(func, args, kwargs, computed)

    def _is_number(self, thing: Any) -> bool:
        return (
            isinstance(thing, Tensor)
            and thing.dim() == 0
            and not thing.dtype.is_floating_point
            and self.trace.varies(thing)
        )

    def _call(self, func: Any, args: tuple, kwargs: dict[str, Any], computed: list[Tensor]) -> Any:
        """A call whose arguments may be numbers that the trace has computed."""
        indexes = func in (Tensor.__getitem__, Tensor.__setitem__)
        before = self.trace.call
        self.trace.call = _Indexing(args) if indexes else Call(args, kwargs)
        try:
            return func(*args, **kwargs)
        finally:
            call, self.trace.call = self.trace.call, before
            if any(id(t) not in call.used for t in computed) and not is_of_library():
                self.trace.warn("Converting a tensor to a Python index")

    # ---- sizes ----

    def _number_of(self, tensor: Tensor, dim: int) -> Tensor:
        """A size as a 0-d tensor, which is a value of the trace."""
        trace = self.trace
        size = trace.op("aten::size.int", [trace.value(tensor), trace.value(dim)]).output()
        made = _C._unwatched(lambda: rushlight.tensor(tensor.shape[dim]))
        value = trace.op("prim::NumToTensor.Scalar", [size]).output()
        trace.make_size(made, value)
        return made

    def _shape(self, func: Any, tensor: Tensor) -> Any:
        if not self.trace.varies(tensor):
            return func(tensor)
        return rushlight.Size(
            cast("Any", [self._number_of(tensor, dim) for dim in range(tensor.dim())])
        )

    def _size(self, func: Any, tensor: Tensor, dim: Any = None) -> Any:
        if not self.trace.varies(tensor):
            return func(tensor, dim)
        if dim is None:
            return self._shape(_SHAPE, tensor)
        func(tensor, dim)  # raises where there is no such dimension
        return self._number_of(tensor, int(dim))

    def _numel(self, func: Any, tensor: Tensor) -> Any:
        if not self.trace.varies(tensor):
            return func(tensor)
        trace = self.trace
        made = _C._unwatched(lambda: rushlight.tensor(tensor.numel()))
        number = trace.op("aten::numel", [trace.value(tensor)]).output()
        value = trace.op("prim::NumToTensor.Scalar", [number]).output()
        trace.make_size(made, value)
        return made

    def _length(self, func: Any, tensor: Tensor) -> int:
        if self.trace.varies(tensor) and not is_of_library():
            self.trace.warn("Using len to get tensor shape", "use tensor.shape[0]")
        return func(tensor)

    # ---- one function in the place of another ----

    def _bags(
        self,
        func: Any,
        input: Tensor,
        weight: Tensor,
        offsets: Tensor | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        per_sample_weights: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Tensor:
        """Bags as the op has them, which takes rows without a batch."""
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        rest = (per_sample_weights, include_last_offset, padding_idx)
        _C._unwatched(lambda: func(input, weight, offsets, *options, *rest))  # raises what is wrong
        with self:
            if input.dim() == 2:
                offsets = rushlight.arange(0, input.numel(), input.size(1))
                input = input.reshape(-1)
                if per_sample_weights is not None:
                    per_sample_weights = per_sample_weights.reshape(-1)
            if max_norm is not None:
                rushlight.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
            kind = ("sum", "mean", "max").index(mode)
            given = (scale_grad_by_freq, kind, sparse, per_sample_weights, include_last_offset)
            return rushlight.embedding_bag(
                weight, input, cast("Tensor", offsets), *given, padding_idx
            )[0]

    # ---- what leaves the trace ----

    def _to_python(self, func: Any, tensor: Tensor) -> Any:
        # Layers of the library read sizes only to check them.
        checks = is_of_library() and self.trace.is_size(tensor)
        if self.trace.may_vary(tensor) and not checks:
            self.trace.warn(f"Converting a tensor to a Python {_CONVERSIONS[func]}")
        return _C._unwatched(lambda: func(tensor))

    def _ask(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """A question about values, which Python decides by."""
        if any(isinstance(t, Tensor) and self.trace.may_vary(t) for t in args):
            self.trace.warn("Converting a tensor to a Python boolean")
        return _C._unwatched(lambda: func(*args, **kwargs))

    def _to_numpy(self, func: Any, tensor: Tensor, **kwargs: Any) -> Any:
        if self.trace.may_vary(tensor):
            self.trace.warn("Converting a tensor to a NumPy array")
        return _C._unwatched(lambda: func(tensor, **kwargs))

    def _from_data(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """`torch.tensor(data)`, where the data may be tensors."""
        written = args[func is Tensor.new_tensor :]
        if written and isinstance(written[0], Tensor):
            return func(*args, **kwargs)  # an op copies it
        leaves = _pytree.tree_leaves((written, kwargs))
        if any(isinstance(t, Tensor) and self.trace.may_vary(t) for t in leaves):
            self.trace.warn(
                "torch.tensor results are registered as constants", "stack() makes none"
            )
        return func(*args, **kwargs)

    def _detached(self, func: Any, tensor: Tensor) -> Tensor:
        """`tensor.data` shares memory, so it is no constant."""
        return tensor.detach() if self.trace.varies(tensor) else func(tensor)

    def _replace_data(self, func: Any, tensor: Tensor, data: Tensor) -> None:
        """The tensor is another value from now on."""
        func(tensor, data)
        self.trace.make(tensor, self.trace.value(data))
        self.trace.set_varying(tensor)


class _Indexing(Call):
    """`tensor[index]`: slices and selections, whose bounds may be numbers of the trace."""

    def __init__(self, args: tuple) -> None:
        super().__init__(args, {})
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        self._left = list(index)

    def arguments(self, op: Any, things: list[Any]) -> list[Any]:
        """The steps come in the order of the index, some parts of which need none."""
        name = op._schema.name
        for place, part in enumerate(self._left):
            if name == "aten::slice" and isinstance(part, slice):
                bounds = zip((part.start, part.stop, part.step), (0, sys.maxsize, 1), strict=True)
                written = [default if bound is None else bound for bound, default in bounds]
            elif name == "aten::select" and isinstance(part, Tensor | int):
                written = [part]
            else:
                continue
            if all(self._fits(n, w) for n, w in zip(things[2:], written, strict=True)):
                del self._left[: place + 1]
                same = [self.same(n, w) for n, w in zip(things[2:], written, strict=True)]
                return [*things[:2], *same]
        return [self.same(thing, None) for thing in things]

    @staticmethod
    def _fits(number: Any, written: Any) -> bool:
        if isinstance(written, Tensor):
            return written.dim() == 0 and _C._unwatched(written.item) == number
        return written == number
