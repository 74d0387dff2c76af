"""Weights of a few bits as tensors: codes with a scale for each result, or for each block of a
result's inputs.

Such a tensor has the sizes and the dtype of the numbers that it stands for. A linear layer
multiplies by its codes, an embedding takes rows of them; everything else takes `dequantize()`.
Nobody writes into codes, so that copies share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tensor
from rushlight.ao._gguf_weights import Panels, Stored
from rushlight.utils._python_dispatch import _disable_current_modes

__all__ = ["Blocks", "IntegerWeight", "Rows", "rebuilt", "wrap"]

_PANEL, _GROUP = 16, 4  # src/kernels/int8_layout.h


def _unpacked(panels: Tensor, results: int, inputs: int) -> Tensor:
    """(results, inputs) from panels of 16 results, in each groups of 4 inputs."""
    count, groups, _ = panels.shape
    rows = panels.reshape(count, groups, _PANEL, _GROUP).transpose(1, 2)
    return rows.reshape(count * _PANEL, groups * _GROUP)[:results, :inputs]


def _packed(codes: Tensor) -> Tensor:
    """The panels of (results, inputs), of which there are whole groups."""
    results, inputs = codes.shape
    count = -(-results // _PANEL)
    rows = rushlight.nn.functional.pad(codes, (0, 0, 0, count * _PANEL - results))
    panels = rows.reshape(count, _PANEL, inputs // _GROUP, _GROUP).transpose(1, 2)
    return panels.reshape(count, inputs // _GROUP, _PANEL * _GROUP)


class Rows(NamedTuple):
    """int8 codes from -127 to 127, one scale for each result; a layer rounds its input by rows."""

    codes: Tensor  # packed by _int8_pack
    sums: Tensor  # of the codes of each result
    steps: Tensor
    inputs: int

    kind = "rows"  # what another layout must have, too, for one to be written over the other
    about = "8 bits"

    @property
    def size(self) -> tuple[int, int]:
        """The sizes of the numbers."""
        return len(self.steps), self.inputs

    def check(self) -> None:
        """Raises where a file told of parts that do not fit."""
        fits = type(self.steps) is Tensor and self.steps.dim() == 1 and type(self.inputs) is int
        _check_by_op(self, fits)

    def packed(self) -> Rows:
        """The layout that products read."""
        return self

    @classmethod
    def of(cls, weight: Tensor) -> Rows:
        """The nearest codes of a weight (results, inputs)."""
        steps = (weight.abs().amax(1) / 127).clamp_min_(rushlight.finfo(rushlight.float32).tiny)
        codes = (weight / steps.unsqueeze(1)).round_().clamp_(-127, 127).to(rushlight.int8)
        sums = codes.sum(1, dtype=rushlight.int32)
        return cls(_C.ops._int8_pack(codes), sums, steps, weight.shape[1])

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The layer of float32 numbers."""
        weight = self.codes, self.sums, self.steps
        return _C.ops._int8_linear_dynamic(x, *weight, bias, False, True, False)

    def numbers(self) -> Tensor:
        """What the codes stand for."""
        codes = _unpacked(self.codes[0], len(self.steps), self.inputs)
        return codes.float() * self.steps.unsqueeze(1)


class Blocks(NamedTuple):
    """Codes of 4 or 8 bits without a sign, a scale and a zero point for each block of inputs."""

    codes: Tensor  # panels; of 4 bits two groups of inputs in a byte
    scales: Tensor  # (blocks of inputs, results)
    zeros: Tensor | None  # the same in uint8; without them the middle code is 0
    block: int
    bits: int

    kind = "blocks"  # what another layout must have, too, for one to be written over the other

    @property
    def about(self) -> str:
        """How numbers are stored, for people."""
        return f"{self.bits} bits in blocks of {self.block}"

    @property
    def size(self) -> tuple[int, int]:
        """The sizes of the numbers."""
        return self.scales.shape[1], self.scales.shape[0] * self.block

    def check(self) -> None:
        """Raises where a file told of parts that do not fit."""
        fits = type(self.scales) is Tensor and self.scales.dim() == 2
        _check_by_op(self, fits and type(self.block) is int and type(self.bits) is int)

    def packed(self) -> Blocks:
        """The layout that products read."""
        return self

    @classmethod
    def of(cls, weight: Tensor, block: int, bits: int, symmetric: bool) -> Blocks:
        """The nearest codes of a weight (results, inputs)."""
        results, inputs = weight.shape
        blocks = weight.reshape(results, inputs // block, block)
        last, middle = 2**bits - 1, 2 ** (bits - 1)
        tiny = rushlight.finfo(rushlight.float32).tiny
        if symmetric:
            scales = (blocks.abs().amax(2) / (middle - 1)).clamp_min_(tiny)
            zeros = rushlight.full_like(scales, middle)
        else:
            low, high = blocks.amin(2).clamp_max_(0), blocks.amax(2).clamp_min_(0)
            scales = ((high - low) / last).clamp_min_(tiny)
            zeros = (-low / scales).round_().clamp_(0, last)
        places = (blocks / scales.unsqueeze(2)).round_().add_(zeros.unsqueeze(2))
        codes = places.clamp_(0, last).to(rushlight.uint8).reshape(results, inputs)
        panels = _packed(codes)
        if bits == 4:
            panels = panels[:, 0::2] | panels[:, 1::2] << 4
        return cls(
            panels.contiguous(),
            scales.t().contiguous(),
            None if symmetric else zeros.t().to(rushlight.uint8).contiguous(),
            block,
            bits,
        )

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The layer of float32 numbers."""
        return _C.ops._block_linear(x, *self[:3], bias, self.block, self.bits)

    def numbers(self) -> Tensor:
        """What the codes stand for."""
        blocks, results = self.scales.shape
        panels = self.codes
        if self.bits == 4:
            panels = rushlight.stack((panels & 15, panels >> 4), 2).flatten(1, 2)
        codes = _unpacked(panels, results, blocks * self.block)
        zeros: Any = 2 ** (self.bits - 1) if self.zeros is None else self.zeros.float()
        by_block = codes.float().reshape(results, blocks, self.block).movedim(0, 2)
        shifted = by_block - (zeros if self.zeros is None else zeros.unsqueeze(1))
        return (shifted * self.scales.unsqueeze(1)).flatten(0, 1).t().contiguous()


_LAYOUTS: dict[str, Any] = {"rows": Rows, "blocks": Blocks, "stored": Stored, "panels": Panels}


class IntegerWeight(Tensor):
    """A weight (results, inputs) of codes."""

    __torch_function__ = _C._disabled_torch_function_impl
    _sees_whole_ops = True
    _layout: Any

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        rule = _RULES.get(func.overloadpacket.__name__)
        if rule is None:
            raise NotImplementedError(
                f"{func}: a weight of codes is multiplied by `linear`; call dequantize() first"
            )
        return rule(func, *args, **(kwargs or {}))

    def dequantize(self) -> Tensor:
        """The numbers that the codes stand for."""
        return self._layout.numbers().to(self.dtype)

    def pack(self) -> None:
        """Put the codes into the order that a layer reads, which it does at its first call."""
        with _disable_current_modes():  # no step of a program that is recorded
            self._layout = _C._unwatched(self._layout.packed)

    def __getattr__(self, name):
        layout = vars(self).get("_layout")
        if layout is None or name not in layout._fields:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(layout, name)

    def __tensor_flatten__(self):
        parts = self._layout._asdict()
        names = [name for name, part in parts.items() if isinstance(part, Tensor)]
        rest = {name: part for name, part in parts.items() if name not in names}
        return names, (type(self._layout), rest, self.dtype)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, context, outer_size, outer_stride):
        layout, rest, dtype = context
        return wrap(layout(**inner_tensors, **rest), dtype)

    def __repr__(self, *, tensor_contents=None):
        about = self._layout.about
        return f"IntegerWeight({about}, size={tuple(self.shape)}, dtype={self.dtype})"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            made: Any = wrap(self._layout, self.dtype)
            is_parameter = getattr(self, "_is_param", False)
            memo[id(self)] = rushlight.nn.Parameter(made, False) if is_parameter else made
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        name = next(name for name, kind in _LAYOUTS.items() if type(self._layout) is kind)
        return rebuilt, (name, tuple(self._layout), self.dtype)


def wrap(layout: Any, dtype: Any) -> IntegerWeight:
    """The tensor of a layout, of numbers of this dtype."""
    device = layout[0].device
    made: Any = Tensor._make_wrapper_subclass(
        IntegerWeight, list(layout.size), dtype=dtype, device=device
    )
    made._layout = layout
    return made


def rebuilt(name: Any, parts: Any, dtype: Any) -> IntegerWeight:
    """The tensor of which a file tells: nothing of it is trusted."""
    kind: Any = _LAYOUTS.get(name) if type(name) is str else None
    fits = kind is not None and type(parts) is tuple and len(parts) == len(kind._fields)
    fits = fits and isinstance(dtype, rushlight.dtype) and dtype.is_floating_point
    if kind is None or not fits or not all(_may_be_part(v) for v in parts):
        raise TypeError("what a file holds is no weight of codes")
    layout = kind(*parts)
    layout.check()
    return wrap(layout, dtype)


def _check_by_op(layout: Any, fits: bool) -> None:
    """The op of a layer checks sizes and dtypes, here against no rows."""
    if not fits or type(layout.codes) is not Tensor:
        raise TypeError("what a file holds is no weight of codes")
    layout.linear(rushlight.zeros(0, layout.size[1], device=layout.codes.device), None)


def _may_be_part(value: Any) -> bool:
    return type(value) in (type(None), Tensor, str) or (
        type(value) is int and 0 <= value <= 1 << 40
    )


# ---- rules ----


def _linear(func, input, weight, bias=None):
    if not isinstance(weight, IntegerWeight) or isinstance(input, IntegerWeight):
        raise NotImplementedError("linear(): only the weight may be one of codes")
    bias = None if bias is None else bias.float()
    weight.pack()
    return weight._layout.linear(input.float(), bias).to(input.dtype)


def _embedding(func, weight, indices, *args, **kwargs):
    if not isinstance(weight, IntegerWeight) or isinstance(indices, IntegerWeight):
        raise NotImplementedError("embedding(): only the weight may be one of codes")
    if not hasattr(weight._layout, "rows"):
        return func(weight.dequantize(), indices, *args, **kwargs)
    return weight._layout.rows(indices).to(weight.dtype)


def _same(func, self, **kwargs):
    return wrap(self._layout, self.dtype)


def _to_copy(func, self, *, dtype=None, device=None, **kwargs):
    parts = (v.to(device) if isinstance(v, Tensor) else v for v in self._layout)
    return wrap(type(self._layout)(*parts), self.dtype if dtype is None else dtype)


def _copy_(func, self, source, non_blocking=False):
    if not isinstance(self, IntegerWeight):
        return func(self, source.dequantize(), non_blocking)
    fits = isinstance(source, IntegerWeight) and source.shape == self.shape
    if not fits or source._layout.kind != self._layout.kind:
        raise RuntimeError("a weight of codes is copied from one of the same sizes and layout")
    self._layout = source._layout
    return self


def _of_numbers(func, *args, **kwargs):
    """Computed with the numbers: derivatives by a layer's input, comparisons of two programs."""
    return func(*(a.dequantize() if isinstance(a, IntegerWeight) else a for a in args), **kwargs)


_PRODUCTS = ("mm", "matmul", "bmm", "t", "transpose", "unsqueeze", "expand")
_COMPARISONS = ("eq", "ne", "equal", "isclose", "allclose")

_RULES: dict[str, Any] = {
    "linear": _linear,
    **dict.fromkeys(("alias", "detach", "lift_fresh", "clone"), _same),
    "_to_copy": _to_copy,
    "copy_": _copy_,
    "embedding": _embedding,
    **dict.fromkeys((*_PRODUCTS, *_COMPARISONS), _of_numbers),
}
