"""Which ops take the dtypes that kernels are not instantiated for, and with what result: as in PyTorch."""

import warnings

import numpy as np
import pytest

import rushlight
from tests.ops import harness
from tests.ops.harness import Makers, function_of, tensors_of

torch = pytest.importorskip("torch")

STORED = [str(d).removeprefix("torch.") for d in rushlight._C._dtypes if not d._computes]
CASES = harness.repeatable()
# Part of the size of a result that roundings of formulas may differ by.
TOLERANCE = 2e-2
# What PyTorch refuses and rushlight does on the way through other ops, by the kind of the op.
WIDER = {"composite", "view"}


# Among equals any may come first; NaN as an unsigned integer is any number; PyTorch leaves losses of complex32
# unreduced.
OTHER_VALUES = {
    "argsort",
    "sort",
    "mode",
    "nan_to_num",
    "nan_to_num_",
    "l1_loss",
    "triplet_margin_loss",
}
# Refused here: products, convolutions and some reductions of these dtypes.
NOT_YET = {
    "chain_matmul",
    "cosine_embedding_loss",
    "count_nonzero",
    "flip",
    "flipud",
    "index_reduce",
    "index_reduce_",
    "ldexp",
    "log_softmax",
    "logsumexp",
    "mean",
    "pad",
    "rot90",
    "softmax",
    "special_log_softmax",
    "special_logsumexp",
    "special_softmax",
    "_fft_c2c",
    "_foreach_mm",
    "_rows_of_embedding",
    "addbmm",
    "addmm",
    "bincount",
    "conv1d",
    "conv1d.padding",
    "conv2d",
    "conv2d.padding",
    "conv3d",
    "conv3d.padding",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cumsum",
    "embedding_renorm_",
    "index_put",
    "inner",
    "linalg_matmul",
    "linalg_matrix_power",
    "linalg_multi_dot",
    "linear",
    "matmul",
    "matrix_power",
    "mm",
    "pdist",
    "sum",
}
# Taken here: (1 + 2j) / half is complex32, and a float8 times a number is one.
TAKEN = {"div", "mul"}


class NonNegative(Makers):
    """Inputs of dtypes that numpy may not have; unsigned ones are not negative."""

    def _draw(self, shape, low, high):
        return super()._draw(
            shape, max(int(low), 0) if self.dtype.startswith("uint") else low, high
        )

    def _tensor(self, array, dtype):
        return super()._tensor(np.abs(array) if dtype.startswith("uint") else array, dtype)


def outcome(module, case, dtype, text):
    """The results of a sample, or its error."""
    try:
        args, kwargs = NonNegative(module, dtype, case.key + text).arguments(text)
        result = function_of(module, case.op)(*args, **kwargs)
    except Exception as error:
        return error
    return result if isinstance(result, (bool, int, float)) else tensors_of(result)


def trivial(case, dtype, text):
    """No elements, or one: then PyTorch's ops often return before they look at the dtype."""
    args, _ = NonNegative(rushlight, dtype, case.key + text).arguments(text)
    return any(t.numel() < 2 for t in tensors_of(args) if isinstance(t, rushlight.Tensor))


def plain(t):
    return str(t.dtype), tuple(t.shape), np.asarray(t.detach().tolist(), complex)


def alike(ours, theirs):
    if not isinstance(theirs, list):
        return ours == theirs
    pairs = list(zip(map(plain, ours), map(plain, theirs), strict=True))
    return all(
        a[:2] == b[:2] and np.allclose(a[2], b[2], TOLERANCE, TOLERANCE, equal_nan=True)
        for a, b in pairs
    )


@pytest.mark.parametrize("dtype", STORED)
def test_ops_take_what_pytorchs_take(dtype):
    wrong = []
    compared = 0
    for case in CASES:
        if function_of(torch, case.op) is None:
            continue
        for text in case.samples:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours, theirs = (outcome(module, case, dtype, text) for module in (rushlight, torch))
            compared += 1
            refused = "not implemented for" in str(theirs) and isinstance(
                theirs, NotImplementedError
            )
            if isinstance(theirs, Exception):
                taken = refused and not isinstance(ours, Exception) and case.op.kind not in WIDER
                if taken and case.key not in TAKEN and not trivial(case, dtype, text):
                    wrong.append((case.key, text, "taken", str(theirs)))
            elif isinstance(ours, Exception):
                if case.key not in NOT_YET and not trivial(case, dtype, text):
                    wrong.append((case.key, text, "refused", str(ours)))
            elif case.key not in OTHER_VALUES and not alike(ours, theirs):
                wrong.append((case.key, text, "differs", f"{ours} {theirs}"))
    assert compared > 1000
    assert not wrong, "\n".join(" | ".join(map(str, w)) for w in wrong)
