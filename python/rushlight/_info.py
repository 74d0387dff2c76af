"""`finfo` and `iinfo`: the limits of dtypes."""

from __future__ import annotations

from rushlight import _C

# dtype: (bits of the fraction, largest exponent, smallest exponent of a normal number)
_FLOATS = {
    _C.float16: (10, 15, -14),
    _C.bfloat16: (7, 127, -126),
    _C.float32: (23, 127, -126),
    _C.float64: (52, 1023, -1022),
}
_REAL = {_C.complex64: _C.float32, _C.complex128: _C.float64}
_INTEGERS = (_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64)


class finfo:
    """Limits of a floating-point dtype: eps, max, min, tiny, smallest_normal, resolution, bits."""

    def __init__(self, type=None) -> None:
        dtype = _C.ops.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"finfo(): argument 'type' must be torch.dtype, not {dtype.__class__.__name__}"
            )
        dtype = _REAL.get(dtype, dtype)
        if dtype not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{dtype}'"
            )
        fraction, largest, smallest = _FLOATS[dtype]
        self.bits = 8 * dtype.itemsize
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**largest
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0**smallest
        self.resolution = 10.0 ** -int(fraction * 0.30103)
        self.dtype = repr(dtype).removeprefix("torch.")

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: bits, max, min, dtype."""

    def __init__(self, type) -> None:
        if not isinstance(type, _C.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' must be torch.dtype, not {type.__class__.__name__}"
            )
        if type not in _INTEGERS:
            if type is _C.bool:
                raise TypeError("torch.bool is not supported by torch.iinfo")
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
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
