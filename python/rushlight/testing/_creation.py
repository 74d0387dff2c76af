"""`make_tensor`: random tensors for tests, of any dtype and range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import rushlight

if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor
    from rushlight.types import _dtype

__all__ = ["make_tensor"]

_UNSIGNED = (rushlight.uint8,)


def make_tensor(
    *shape: Any,
    dtype: _dtype,
    device: str = "cpu",
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of values drawn evenly from [low, high).

    By default floats lie in [-9, 9), integers from -9 to 9 (unsigned from 0 to 9).

    Args:
        exclude_zero: zeros become the smallest number of the dtype (1 for integers).
        noncontiguous: the elements have gaps between them.
        *shape: sizes, or one list of them.
        dtype: the dtype.
        device: the device.
        low: the least value; None: as above.
        high: what values stay below.
        requires_grad: whether gradients are recorded for it.
        memory_format: the order of its elements in memory.

    Raises:
        ValueError: an empty range; a memory format for a tensor with gaps.
        RuntimeError: `requires_grad` for integers.

    Example:
        >>> x = torch.testing.make_tensor(2, 3, dtype=torch.float32, low=0, high=1)
        >>> x.shape, bool((x >= 0).all())
        (torch.Size([2, 3]), True)
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "`noncontiguous` and `memory_format` are mutually exclusive: a tensor with gaps has no "
            f"memory format, here {memory_format!r}"
        )
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes as {dtype!r}"
        )
    low, high = _bounds(dtype, low, high, floating)
    if noncontiguous and math.prod(shape) < 2:
        noncontiguous = False
    drawn = (*shape[:-1], 2 * shape[-1]) if noncontiguous else shape
    if dtype is rushlight.bool:
        result = rushlight.randint(0, 2, drawn, device=device).to(dtype)
    elif dtype.is_complex:
        real = dtype.to_real()
        parts = [
            rushlight.rand(drawn, dtype=real, device=device) * (high - low) + low for _ in range(2)
        ]
        result = rushlight.complex(*parts)
    elif dtype.is_floating_point:
        result = rushlight.rand(drawn, dtype=rushlight.float64, device=device)
        result = (result * (high - low) + low).to(dtype)
    else:
        result = rushlight.randint(math.ceil(low), math.ceil(high), drawn, device=device).to(dtype)
    if noncontiguous:
        result = result[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = rushlight.finfo(dtype).tiny if floating else 1
        result[result == 0] = smallest
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype, low, high, floating):
    if dtype is rushlight.bool:
        return 0, 2
    default_low = 0 if dtype in _UNSIGNED else -9
    default_high = 9 if floating else 10
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low > high or (low == high and not floating):
        raise ValueError(f"make_tensor requires low < high, but got low={low!r} and high={high!r}")
    if floating:
        floats = rushlight.finfo(dtype)
        return max(low, floats.min), min(high, floats.max)
    ints = rushlight.iinfo(dtype)
    return max(low, ints.min), min(high, ints.max + 1)
