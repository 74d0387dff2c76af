"""`finfo` and `iinfo`: the limits of dtypes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from typing import Any


class finfo:
    """Limits of a floating-point dtype: eps, max, min, tiny, smallest_normal, resolution, bits.

    Args:
        type: the dtype; the default dtype if left out.

    Example:
        >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).eps
        (65504.0, 1.1920928955078125e-07)
    """

    def __init__(self, type: Any = None) -> None:
        dtype = _C.ops.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"finfo(): argument 'type' must be torch.dtype, not {dtype.__class__.__name__}"
            )
        dtype = dtype.to_real()
        if not dtype.is_floating_point:
            raise TypeError(
                f"finfo() requires a floating point input type: iinfo describes '{dtype}'"
            )
        self.bits = 8 * dtype.itemsize
        self.eps, self.max, self.smallest_normal = dtype._limits
        self.min = -self.max
        self.tiny = self.smallest_normal
        self.resolution = 10.0 ** -int(-math.log10(self.eps))
        self.dtype = repr(dtype).removeprefix("torch.")

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: bits, max, min, dtype.

    Args:
        type: the dtype.

    Example:
        >>> torch.iinfo(torch.int8).max, torch.iinfo(torch.int8).bits
        (127, 8)
    """

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _C.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' must be torch.dtype, not {type.__class__.__name__}"
            )
        if type.is_floating_point or type.is_complex or type is _C.bool:
            if type is _C.bool:
                raise TypeError("torch.bool is not supported by torch.iinfo")
            raise TypeError(f"iinfo() requires an integer input type: finfo describes '{type}'")
        self.bits = 8 * type.itemsize
        self.max = 2 ** (self.bits - 1) - 1 if type.is_signed else 2**self.bits - 1
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.dtype = repr(type).removeprefix("torch.")

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
