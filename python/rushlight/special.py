"""`rushlight.special`: special functions, the ops of `ops/special.py` and of others."""

# ruff: noqa: SIM905

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from rushlight._special import *  # noqa: F403

_ops = _C.ops

# Ops of this family, named special_NAME there.
_OWN = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u "
    "chebyshev_polynomial_v chebyshev_polynomial_w entr erfcx hermite_polynomial_h "
    "hermite_polynomial_he i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log_ndtr "
    "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t "
    "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w "
    "spherical_bessel_j0 xlog1py zeta"
).split()
# Other names of ops that stand elsewhere.
_OTHERS = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}
globals().update({name: getattr(_ops, f"special_{name}") for name in _OWN})
globals().update({name: getattr(_ops, other) for name, other in _OTHERS.items()})

__all__ = sorted([*_OWN, *_OTHERS])
