"""Quantisation rehearsed on floats: numbers rounded to the codes that integers of a few bits would
have, which is how networks are trained for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight.autograd import Function

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.autograd.function import BackwardCFunction

__all__ = [
    "choose_qparams",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "fused_moving_avg_obs_fake_quant",
]


class _FakeQuantize(Function):
    """The numbers of the nearest codes; backward is that of the identity between the last codes.

    Codes are `self * (1 / scale) + zero_point`, in float32 for 16-bit floats.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int
    ) -> tuple[Tensor, Tensor]:
        wide = x.float() if x.dtype in (rushlight.float16, rushlight.bfloat16) else x
        codes = (wide * scale.reciprocal()).round_().add_(zero_point)
        kept = codes.clamp(quant_min, quant_max).nan_to_num_(quant_min)  # NaN has the first code
        inside = codes.eq(kept)
        kept.sub_(zero_point)
        if scale.dim() == 0:  # PyTorch gives products of float32 there, in float64, too
            kept = kept.float()
        return kept.mul(scale).to(x.dtype), inside

    @staticmethod
    def setup_context(
        ctx: BackwardCFunction,
        inputs: tuple[Tensor, Tensor, Tensor, int, int],
        output: tuple[Tensor, ...],
    ) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None


def _fake_quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int
) -> Tensor:
    if not x.is_floating_point():
        raise NotImplementedError(f"\"fake_quantize\" not implemented for '{x.dtype._kind}'")
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    if scale.requires_grad:
        raise RuntimeError(
            "fake_quantize is not differentiable with respect to argument 'scale'. This input "
            "cannot have requires_grad True."
        )
    return _FakeQuantize.apply(x, scale.float(), zero_point.float(), quant_min, quant_max)[0]


def _check_zero_points(fit) -> None:
    if not fit:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """A tensor rounded to codes of one scale.

    Args:
        input: a floating-point tensor.
        scale: what a step of the codes is; a number, or a tensor of one.
        zero_point: the code of 0; a number, or a tensor of one.
        quant_min: the first code.
        quant_max: the last one.

    Example:
        >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.13, 0.98]), 0.25, 0, 0, 3)
        tensor([0.2500, 0.7500])
    """
    if rushlight._C._has_torch_function(input):
        return rushlight._C._offer_torch_function(
            fake_quantize_per_tensor_affine,
            (input,),
            (input, scale, zero_point, quant_min, quant_max),
            {},
        )
    if not isinstance(scale, rushlight.Tensor):
        _check_zero_points(quant_min > quant_max or quant_min <= zero_point <= quant_max)
        scale = rushlight.tensor(float(scale), dtype=rushlight.float32, device=input.device)
        zero_point = rushlight.tensor(float(zero_point), device=input.device)
    zero_point = rushlight.as_tensor(zero_point)
    for t in (scale, zero_point):
        if t.numel() != 1:
            raise RuntimeError(f"a Tensor with {t.numel()} elements cannot be converted to Scalar")
    return _fake_quantize(input, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """A tensor rounded to codes with a scale for each index of a dimension.

    Args:
        input: a floating-point tensor.
        scale: what a step of the codes is, for each index; float32 or bfloat16.
        zero_point: the codes of 0; int32, float32 or float16.
        axis: the dimension.
        quant_min: the first code.
        quant_max: the last one.

    Example:
        >>> scales, zeros = torch.tensor([0.25, 0.5]), torch.zeros(2, dtype=torch.int32)
        >>> x = torch.tensor([[0.13, 0.98], [0.13, 0.98]])
        >>> torch.fake_quantize_per_channel_affine(x, scales, zeros, 0, 0, 3)
        tensor([[0.2500, 0.7500],
                [0.0000, 1.0000]])
    """
    if rushlight._C._has_torch_function(input):
        return rushlight._C._offer_torch_function(
            fake_quantize_per_channel_affine,
            (input,),
            (input, scale, zero_point, axis, quant_min, quant_max),
            {},
        )
    if scale.dtype not in (rushlight.float32, rushlight.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype._kind}")
    if zero_point.dtype not in (rushlight.int32, rushlight.float32, rushlight.float16):
        raise RuntimeError(
            f"Zero-point must be Int32, Float or Half, found {zero_point.dtype._kind}"
        )
    if scale.dim() != 1 or zero_point.dim() != 1:
        raise RuntimeError("scale and zero point should be 1-D tensors")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not -input.dim() <= axis < input.dim():
        raise IndexError(
            f"Dimension out of range: axis={axis} of a tensor of {input.dim()} dimensions"
        )
    if scale.numel() != input.shape[axis]:
        raise RuntimeError(
            f"scale and zero-point are not consistent with input: {scale.numel()} scales for "
            f"{input.shape[axis]} channels"
        )
    if zero_point.dtype == rushlight.int32 and quant_min <= quant_max:
        _check_zero_points(((zero_point >= quant_min) & (zero_point <= quant_max)).all())
    shape = [1] * input.dim()
    shape[axis] = -1
    return _fake_quantize(
        input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max
    )


# ---- codes for a range of numbers ----


def choose_qparams(
    low: float,
    high: float,
    quant_min: int,
    quant_max: int,
    symmetric: bool = False,
    reduce_range: bool = False,
    single: bool = False,
) -> tuple[float, int]:
    """The scale and the zero point under which codes cover low … high, and 0 is a number.

    Args:
        low: the smallest number.
        high: the largest number.
        quant_min: the first code.
        quant_max: the last one.
        symmetric: whether 0 gets the middle code if there are numbers on both sides of it.
        reduce_range: leave one bit of the codes unused.
        single: round the scale to float32 before the zero point is chosen.
    """
    return rushlight._C._choose_qparams(
        low, high, quant_min, quant_max, symmetric, reduce_range, single
    )


def _assign(buffer: Tensor, values: Tensor) -> None:
    """New values of a buffer whose size the first tensor sets."""
    if buffer.numel() != values.numel():
        buffer.resize_(values.shape)
    buffer.copy_(values.reshape(buffer.shape))


@rushlight.no_grad()
def _observe(
    x: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    part: float,
    quant_min: int,
    quant_max: int,
    axis: int,
    rows: bool,
    symmetric: bool,
) -> None:
    seen = x.movedim(axis, 0).reshape(x.shape[axis], -1) if rows else x.reshape(1, -1)
    for running, now in zip((running_min, running_max), seen.float().aminmax(dim=1), strict=True):
        if running.numel() != now.numel() or running.isinf().any():
            _assign(running, now)
        else:
            running.copy_(running + (now.reshape(running.shape) - running) * part)
    ranges = zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist(), strict=True)
    chosen = [
        choose_qparams(*ends, quant_min, quant_max, symmetric, single=True) for ends in ranges
    ]
    scales, zeros = zip(*chosen, strict=True)
    _assign(scale, rushlight.tensor(scales, dtype=rushlight.float32))
    _assign(zero_point, rushlight.tensor(zeros))


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Moving averages of the smallest and the largest number, codes from them, and a tensor rounded
    to those.

    Args:
        input: a floating-point tensor.
        observer_on: a tensor of one number, 0 where averages and codes stay.
        fake_quant_on: the same for rounding.
        running_min: the averages of the smallest number, changed in place.
        running_max: the averages of the largest number, changed in place.
        scale: changed in place.
        zero_point: changed in place.
        averaging_const: the part of this tensor in the averages.
        quant_min: the first code.
        quant_max: the last one.
        ch_axis: the dimension of the channels.
        per_row_fake_quant: by channels.
        symmetric_quant: 0 has the middle code.

    For an example see `ao.quantization.FusedMovingAvgObsFakeQuantize`.
    """
    if ch_axis >= input.dim():
        raise RuntimeError(
            "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
        )
    if input.numel() == 0:
        return input.clone()
    if observer_on.item():
        _observe(
            input.detach(),
            running_min,
            running_max,
            scale,
            zero_point,
            averaging_const,
            quant_min,
            quant_max,
            ch_axis,
            per_row_fake_quant,
            symmetric_quant,
        )
    if not fake_quant_on.item():
        return input.clone()
    if not per_row_fake_quant:
        return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
    zeros = zero_point if zero_point.dtype == rushlight.float32 else zero_point.int()
    return fake_quantize_per_channel_affine(input, scale, zeros, ch_axis, quant_min, quant_max)
