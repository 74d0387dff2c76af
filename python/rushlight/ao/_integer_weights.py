"""Weights of 4 and 8 bits as tensors: codes with a scale for each result, or for each block of a
result's inputs.

Such a tensor has the sizes and the dtype of the numbers that it stands for. A linear layer
multiplies by its codes; everything else takes `dequantize()`. Nobody writes into codes, so that
copies share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import _C, Tensor

__all__ = ["Blocks", "IntegerWeight", "Rows", "rebuilt"]

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


_LAYOUTS: dict[str, Any] = {"rows": Rows, "blocks": Blocks}


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

    def __repr__(self, *, tensor_contents=None):
        about = self._layout
        how = f"{about.bits} bits in blocks of {about.block}" if type(about) is Blocks else "8 bits"
        return f"IntegerWeight({how}, size={tuple(self.shape)}, dtype={self.dtype})"

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
    if type(layout) is Rows:
        size = [len(layout.steps), layout.inputs]
    else:
        size = [layout.scales.shape[1], layout.scales.shape[0] * layout.block]
    made: Any = Tensor._make_wrapper_subclass(
        IntegerWeight, size, dtype=dtype, device=layout.codes.device
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
    if kind is Rows:
        fits = type(layout.steps) is Tensor and layout.steps.dim() == 1
    else:
        fits = type(layout.scales) is Tensor and layout.scales.dim() == 2
    numbers = (layout.inputs,) if kind is Rows else (layout.block, layout.bits)
    if not fits or type(layout.codes) is not Tensor or not all(type(n) is int for n in numbers):
        raise TypeError("what a file holds is no weight of codes")
    made = wrap(layout, dtype)
    # The op checks sizes and dtypes, here against no rows.
    layout.linear(rushlight.zeros(0, made.shape[1], device=layout.codes.device), None)
    return made


def _may_be_part(value: Any) -> bool:
    return value is None or type(value) is Tensor or (type(value) is int and 0 < value <= 1 << 40)


# ---- rules ----


def _linear(func, input, weight, bias=None):
    if not isinstance(weight, IntegerWeight) or isinstance(input, IntegerWeight):
        raise NotImplementedError("linear(): only the weight may be one of codes")
    bias = None if bias is None else bias.float()
    return weight._layout.linear(input.float(), bias).to(input.dtype)


def _same(func, self, **kwargs):
    return wrap(self._layout, self.dtype)


def _to_copy(func, self, *, dtype=None, device=None, **kwargs):
    parts = (v.to(device) if isinstance(v, Tensor) else v for v in self._layout)
    return wrap(type(self._layout)(*parts), self.dtype if dtype is None else dtype)


def _copy_(func, self, source, non_blocking=False):
    fits = isinstance(source, IntegerWeight) and source.shape == self.shape
    if not fits or type(source._layout) is not type(self._layout):
        raise RuntimeError("a weight of codes is copied from one of the same sizes and layout")
    self._layout = source._layout
    return self


def _of_numbers(func, *args, **kwargs):
    """Computed with the numbers: gradients of a layer's input."""
    return func(*(a.dequantize() if isinstance(a, IntegerWeight) else a for a in args), **kwargs)


_RULES: dict[str, Any] = {
    "linear": _linear,
    **dict.fromkeys(("alias", "detach", "lift_fresh", "clone"), _same),
    "_to_copy": _to_copy,
    "copy_": _copy_,
    **dict.fromkeys(("mm", "embedding"), _of_numbers),
}
