"""Every sample of the op table, run by PyTorch as well: same structure, shapes, dtypes and values."""

import re

import pytest

import rushlight
from tests.ops import harness
from tests.ops.harness import Makers, assert_same, function_of, over

torch = pytest.importorskip("torch")

# What PyTorch refuses of the samples and rushlight takes, by what it says then; any other refusal fails.
WIDER = {
    "conv2d": "not implemented for '(Int|Short|Char|Byte)'",
    "cdist": "not implemented for '(Half|BFloat16)'",
    "pdist": "not implemented for '(Half|BFloat16)'",
    "local_response_norm": "not implemented for '(Half|BFloat16)'",
    "avg_pool3d": "not implemented for '(Half|BFloat16)'",
    "linalg_vecdot": "Expected a floating point or complex tensor as input",
    "index_put": "expected Tensor as element 0 in argument 1, but got NoneType",
    "_bags_of_embeddings": "step must be nonzero",  # bags without words
    # Transforms of no rows.
    **dict.fromkeys(("fft_fft", "fft_ifft", "fft_rfft", "fft_ihfft"), "MKL FFT error"),
}


def is_public_there(case):
    return function_of(torch, case.op) is not None


def reduced(op, args, kwargs):
    """Keywords that say `reduction`: PyTorch's parser takes its default for 0, against the schemas."""
    names = [a.name for a in op.args]
    said = "reduction" not in names or names.index("reduction") < len(args)
    return kwargs if said else {"reduction": 1, **kwargs}


@over(is_public_there, mode="parity")
@pytest.mark.filterwarnings("ignore")
def test_equals_torch(case):
    ours, theirs = function_of(rushlight, case.op), function_of(torch, case.op)
    refused = False
    for dtype in case.dtypes:
        for text in case.samples:
            args, kwargs = Makers(torch, dtype, case.key + text).arguments(text)
            try:
                expected = theirs(*args, **reduced(case.op, args, kwargs))
            except (RuntimeError, NotImplementedError, TypeError) as error:
                if case.key not in WIDER or not re.search(WIDER[case.key], str(error)):
                    raise
                refused = True
                continue
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            assert_same(ours(*args, **kwargs), expected, harness.TOLERANCE.get(dtype, 0))
    assert refused == (case.key in WIDER)
