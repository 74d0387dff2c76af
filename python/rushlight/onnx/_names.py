"""Overloads by the names of their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.onnx._registry import lowers

__all__ = ["binary", "unary"]

_ALIASES = {
    "absolute": "abs",
    "negative": "neg",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_log1p": "log1p",
    "special_sinc": "sinc",
    "fix": "trunc",
}


def unary(*names: str) -> Callable[[Any], Any]:
    """Registers a lowering for functions of one tensor and for their other names."""
    more = [alias for alias, name in _ALIASES.items() if name in names]
    return lowers(*(f"aten.{name}.default" for name in [*names, *more]))


def binary(*names: str) -> Callable[[Any], Any]:
    """Registers a lowering for the forms with a tensor and with a number."""
    return lowers(*(f"aten.{name}.{kind}" for name in names for kind in ("Tensor", "Scalar")))
