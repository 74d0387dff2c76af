"""Quantisation of networks (`ao.quantization`), its modules (`ao.nn`), and weights of 4 and 8 bits
for linear layers (`quantize_`)."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.ao import integer_weights, nn, quantization  # noqa: F401
    from rushlight.ao.integer_weights import (  # noqa: F401
        FqnToConfig,
        Int4WeightOnlyConfig,
        Int8DynamicActivationInt8WeightConfig,
        Int8WeightOnlyConfig,
        quantize_,
    )
