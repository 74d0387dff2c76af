"""The dtypes of every op's results under autocast on the CPU: those that PyTorch has."""

import pytest

import rushlight
from tests.ops.harness import Makers, count, function_of, name_of, over, tensors_of

torch = pytest.importorskip("torch")


def has_both(case):
    return function_of(torch, case.op) is not None and "float32" in case.dtypes


# What composites are made of differs, and with it the dtype, on purpose.
OTHERS = {
    "linalg_pinv": "the last of its products is not lowered here",
    "linalg_pinv.atol_rtol_tensor": "as linalg_pinv",
    "linalg_pinv.atol_rtol_float": "as linalg_pinv",
    "linalg_pinv.rcond_tensor": "as linalg_pinv",
    "local_response_norm": "PyTorch widens images and volumes, but not sequences",
    "linalg_matrix_exp": "16-bit matrices are widened, too",
    "lp_pool3d": "its result has 16 bits, as those of lp_pool1d and lp_pool2d have",
    "lstm.data": "states have 16 bits, as those of lstm.input have in PyTorch, too",
}


def dtypes(value):
    return [name_of(t.dtype) for t in tensors_of(value)]


@over(has_both, mode="parity")
@pytest.mark.filterwarnings("ignore")
def test_dtypes_under_autocast(case):
    unlike = set()
    for dtype in ("float32", "bfloat16"):
        for text in case.samples:
            args, kwargs = Makers(torch, dtype, case.key + text).arguments(text)
            try:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    expected = dtypes(function_of(torch, case.op)(*args, **kwargs))
            except (RuntimeError, TypeError, ValueError):
                continue
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            try:
                with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
                    found = dtypes(function_of(rushlight, case.op)(*args, **kwargs))
            except RuntimeError:
                # It refuses these numbers, whether there is autocast or not.
                args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
                with pytest.raises(RuntimeError):
                    function_of(rushlight, case.op)(*args, **kwargs)
                continue
            if found[:1] != expected[:1]:
                assert case.op.text.partition("(")[0] in OTHERS, f"{dtype}: {text}"
                unlike.add(case.op.text.partition("(")[0])
            count()
    if case.op.text.partition("(")[0] in OTHERS:
        assert unlike, "it is as in PyTorch by now"
