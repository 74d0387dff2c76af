"""Pointwise ops against PyTorch: which dtypes each takes, alone and mixed, and what becomes of special values."""

import itertools
import math
import re

import pytest

import rushlight
from tests.ops.harness import DTYPES, Makers, cases, function_of

torch = pytest.importorskip("torch")

MIXED = ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"]
SPECIAL = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-30,
    -1e-30,
    1e30,
    20.0,
    -90.0,
]

# What rushlight takes and PyTorch refuses, by what it says then; anything else that differs fails.
SIXTEEN_BITS = (
    "_cpu\" not implemented for '(Half|BFloat16)'"  # of special functions: computed in float32 here
)
WIDER = {
    "absolute_": "In-place abs is not supported for complex tensors",  # real numbers fit into complex ones
    "mse_loss": "mse_cpu\" not implemented for 'Complex",  # the mean of squared errors is a formula of any numbers
    "special_multigammaln": "arange_cpu",  # both refuse complex numbers
    "special_round": "round_vml_cpu",  # integers, as its twin `round` takes
    "huber_loss": "result type .* can't be cast to the desired output type",  # ours promotes self and target
}
# Results of mixed dtypes: PyTorch's is of the dtype of self.
PROMOTED = {"huber_loss"}
# Results at NaN, infinity and numbers of 1e30 that are others on purpose. Polynomials are left out: PyTorch's
# loops over degrees do not see NaN and infinity.
LIMITS = "PyTorch gives NaN at infinity, where the function has a limit"
DIFFERENT = {
    **dict.fromkeys(
        (
            "i0",
            "special_i0",
            "special_i1",
            "special_modified_bessel_i0",
            "special_modified_bessel_i1",
        ),
        LIMITS,
    ),
    **dict.fromkeys((f"special_bessel_{kind}" for kind in ("j0", "j1", "y0", "y1")), LIMITS),
    **dict.fromkeys(("special_airy_ai", "special_zeta.self_scalar"), LIMITS),
    **dict.fromkeys(("silu", "mish", "hardswish", "softsign"), LIMITS),
    "gelu": "PyTorch's vectors give NaN for infinity, its scalars infinity",
    "ldexp": "0 * 2^1e30 is 0: PyTorch multiplies by an infinite power",
    **dict.fromkeys(
        ("fmod", "remainder"),
        "PyTorch gives NaN where the quotient overflows; the rest is exact here",
    ),
    **dict.fromkeys(
        ("igamma", "igammac", "special_gammainc", "special_gammaincc"),
        "NaN gives NaN here; in PyTorch the other argument may decide",
    ),
    "special_zeta": "NaN gives NaN here; in PyTorch the other argument may decide",
}


def public(case):
    op = case.op
    mine = op.kernel.kind == "pointwise" or (
        op.kind == "composite" and op.family in ("pointwise", "special")
    )
    return mine and case.samples and function_of(torch, op) is not None


CASES = [pytest.param(case, id=key) for key, case in cases().items() if public(case)]


def arguments(module, case, dtypes):
    """The first sample; the tensors after the first are of the last of the dtypes."""
    key = case.key + case.samples[0]
    made = [Makers(module, dtype, key).arguments(case.samples[0])[0] for dtype in dtypes]
    kwargs = Makers(module, dtypes[0], key).arguments(case.samples[0])[1]
    if "reduction" in [a.name for a in case.op.args]:
        kwargs["reduction"] = 0
    seen = 0
    for i, value in enumerate(made[0]):
        if isinstance(value, module.Tensor):
            made[0][i] = made[min(seen, len(dtypes) - 1)][i]
            seen += 1
    return made[0], kwargs


def outcome(module, case, dtypes):
    """The dtype of the result, or the error."""
    args, kwargs = arguments(module, case, dtypes)
    try:
        result = function_of(module, case.op)(*args, **kwargs)
    except (RuntimeError, TypeError) as error:
        return error
    return str(getattr(result, "dtype", type(result).__name__)).split(".")[-1]


def differs(case, dtypes):
    """How the outcomes differ, or an empty text."""
    ours, theirs = outcome(rushlight, case, dtypes), outcome(torch, case, dtypes)
    if isinstance(theirs, Exception):
        allowed = WIDER.get(case.key, SIXTEEN_BITS if case.op.family == "special" else "$^")
        if isinstance(ours, type(theirs)) or re.search(allowed, str(theirs)):
            return ""
    return "" if ours == theirs else f"{dtypes}: {ours!r} here, {theirs!r} there\n"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_dtypes(case):
    found = [
        differs(case, [dtype])
        for dtype in DTYPES["all"]
        if "complex" not in dtype or not case.key.startswith("mvlgamma")
    ]
    assert not any(found), "".join(found)


@pytest.mark.parametrize(
    "case", [c for c in CASES if sum(a.type.is_tensor for a in c.values[0].op.args) > 1]
)
@pytest.mark.filterwarnings("ignore")
def test_mixed_dtypes(case):
    found = [differs(case, pair) for pair in itertools.permutations(MIXED, 2)]
    assert case.key in PROMOTED or not any(found), "".join(found)


def of_special_values(module, case, dtype):
    """The rows of numbers that the tensors of a sample are given instead of theirs, and the results."""
    args, kwargs = arguments(module, case, [dtype])
    places = [i for i, value in enumerate(args) if isinstance(value, module.Tensor)]
    rows = list(itertools.product(SPECIAL, repeat=min(len(places), 2)))
    for column, place in enumerate(places):
        numbers = [row[min(column, 1)] for row in rows]
        args[place] = module.tensor(numbers, dtype=getattr(module, dtype))
    return rows, function_of(module, case.op)(*args, **kwargs).to(getattr(module, dtype)).tolist()


def close(a, b, tolerance):
    return a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(abs(b), 1e-3)


def has_special_values(case):
    whole = (
        case.op.name not in ("allclose", "equal", "glu", "prelu", "where")
        and "softmax" not in case.op.name
        and "logsumexp" not in case.op.name
        # PyTorch's approximate these.
        and case.op.name not in ("_standard_gamma_grad", "_dirichlet_grad")
        and "polynomial" not in case.key
    )
    return whole and not case.op.inplace_only and "float32" in case.dtypes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", [c for c in CASES if has_special_values(c.values[0])])
@pytest.mark.filterwarnings("ignore")
def test_special_values(case, dtype):
    rows, ours = of_special_values(rushlight, case, dtype)
    _, theirs = of_special_values(torch, case, dtype)
    tolerance = 2e-5 if dtype == "float32" else 1e-7
    wrong = [
        f"{row}: {a} here, {b} there"
        for row, a, b in zip(rows, ours, theirs, strict=True)
        if not close(a, b, tolerance)
        and not (case.key in DIFFERENT and not all(abs(x) < 1e30 for x in row))
    ]
    assert not wrong, "\n".join(wrong)
