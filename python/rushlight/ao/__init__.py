"""Quantisation of networks (`ao.quantization`), its modules (`ao.nn`), and weights of 4 and 8 bits
for linear layers (`quantize_`)."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.ao import integer_weights as integer_weights
    from rushlight.ao import nn as nn
    from rushlight.ao import quantization as quantization
    from rushlight.ao.integer_weights import (
        FqnToConfig as FqnToConfig,
    )
    from rushlight.ao.integer_weights import (
        Int4WeightOnlyConfig as Int4WeightOnlyConfig,
    )
    from rushlight.ao.integer_weights import (
        Int8DynamicActivationInt8WeightConfig as Int8DynamicActivationInt8WeightConfig,
    )
    from rushlight.ao.integer_weights import (
        Int8WeightOnlyConfig as Int8WeightOnlyConfig,
    )
    from rushlight.ao.integer_weights import (
        quantize_ as quantize_,
    )
