"""Short names of dtypes, "f32" for float32."""

from __future__ import annotations

from rushlight import _C


def _abbreviation(dtype):
    name = repr(dtype).removeprefix("torch.")
    if name == "bool":
        return "b8"
    for long, short in (("complex", "c"), ("bfloat", "bf"), ("float8_", "f8"), ("float", "f")):
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name.replace("int", "i").replace("ui", "u")


dtype_abbrs = {dtype: _abbreviation(dtype) for dtype in _C._dtypes}
