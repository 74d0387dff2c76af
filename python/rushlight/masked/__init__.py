"""`rushlight.masked`: reductions, scans and normalisations of the unmasked elements.

A mask is a bool tensor that can be broadcast to the input; elements where it is False do not take
part. Where nothing takes part the result is the op's identity (0 for `sum`) or NaN where it has
none (`mean`, `var`). A `MaskedTensor` carries its mask with it.
"""

from __future__ import annotations

from rushlight.masked._ops import (  # noqa: F401  # names with an underscore are what tests of ops ask
    _canonical_dim,
    _combine_input_and_mask,
    _input_mask,
    _output_mask,
    _reduction_identity,
    _where,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from rushlight.masked.maskedtensor import (
    MaskedTensor,
    as_masked_tensor,
    is_masked_tensor,
    masked_tensor,
)

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
