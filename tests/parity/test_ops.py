"""Every sample of the op table, run by PyTorch as well: same structure, shapes, dtypes and values."""

import pytest

import rushlight
from tests.ops import harness
from tests.ops.harness import Makers, assert_same, function_of

torch = pytest.importorskip("torch")

CASES = [c for c in harness.cases() if c.samples and c.op.family != "random"]


@pytest.mark.parametrize("case", CASES, ids=[c.key for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_equals_torch(case):
    if "parity" in case.skips:
        pytest.skip(case.skips["parity"])
    theirs = function_of(torch, case.op)
    if theirs is None:
        pytest.skip(f"PyTorch has no public {case.op.name}")
    ours = function_of(rushlight, case.op)
    for dtype in case.dtypes:
        for text in case.samples:
            args, kwargs = Makers(torch, dtype, case.key + text).arguments(text)
            try:
                expected = theirs(*args, **kwargs)
            except (RuntimeError, NotImplementedError, TypeError, IndexError):
                continue  # what PyTorch refuses for a dtype is tested as an error where it matters
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            assert_same(ours(*args, **kwargs), expected, harness.TOLERANCE.get(dtype, 0))
