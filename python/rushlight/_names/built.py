"""`has_mkl` and its like: what the build has. Those of devices and oneDNN are `backends`' today."""

from __future__ import annotations

from typing import Any

from rushlight import _C

has_openmp = True
has_spectral = True
has_mkl = False

_ELSEWHERE = {
    "has_cuda": "cuda.is_built",
    "has_cudnn": "cudnn.is_available",
    "has_mkldnn": "mkldnn.is_available",
    "has_mps": "mps.is_built",
}


def __getattr__(name: str) -> Any:
    if name == "has_lapack":
        return _C._libraries()["OpenBLAS"] is not None
    if name in _ELSEWHERE:
        from rushlight import backends

        library, function = _ELSEWHERE[name].split(".")
        return getattr(getattr(backends, library), function)()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
