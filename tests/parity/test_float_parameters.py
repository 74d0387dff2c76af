"""NaN and infinities as every number that an op takes beside its tensors, against PyTorch: refused, or the same values.

The number stands in the place of each parameter of type float or Scalar, in the op's first sample; the tensors have
zeros of both signs, ones, and numbers of both signs.
"""

import math

import numpy as np
import pytest

import rushlight
from tests.ops.harness import Makers, bound, cases, function_of, tensors_of

torch = pytest.importorskip("torch")

VALUES = (math.nan, math.inf, -math.inf)
# What differs on purpose, by op and parameter.
PRODUCT = "alpha times a sum: PyTorch multiplies the terms, of which 0 times infinity is NaN"
DIFFERENT = {
    ("_foreach_norm.Scalar", "ord"): "a norm of no order is NaN; PyTorch gives a number",
    ("addmm", "alpha"): PRODUCT,
    ("addbmm", "alpha"): PRODUCT,
    ("cross_entropy_loss", "label_smoothing"): "PyTorch takes NaN and what is below 0 for 0",
    (
        "linalg_lstsq",
        "rcond",
    ): "an infinite limit leaves a matrix of rank 0, whose solution LAPACK does not look at",
    ("special_zeta.self_scalar", "self"): "1 / q ** inf is 0 above 1; PyTorch gives NaN",
    ("logit", "eps"): "clamped by NaN is NaN, as by clamp; PyTorch does not clamp then",
    ("logit_", "eps"): "the same",
    ("special_logit", "eps"): "the same",
    ("multi_margin_loss", "margin"): "the larger one of 0 and NaN is NaN; PyTorch gives 0",
    ("multi_margin_loss", "p"): "neither 1 nor 2: refused as every other number is",
    (
        "triplet_margin_loss",
        "margin",
    ): "refused as by nn.functional, which the function of torch is not",
    **{
        (name, "correction"): "divided by NaN is NaN; PyTorch gives infinity"
        for name in ("var", "std", "var_mean", "std_mean")
    },
}


def parameters(op):
    """The names of the parameters that are numbers."""
    return [a.name for a in op.args if a.type.base in ("float", "Scalar") and not a.type.is_list]


def is_tried(case):
    known = case.samples and function_of(torch, case.op) is not None
    known = known and case.op.overload != "dtype"  # which PyTorch has for CUDA alone
    return (
        known
        and not case.op.own
        and case.op.family not in ("random", "creation")
        and bool(parameters(case.op))
    )


CASES = [pytest.param(case, id=key) for key, case in cases().items() if is_tried(case)]


def outcome(module, case, name, value):
    """The results as arrays, or the type of the error."""
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    args, kwargs = Makers(module, dtype, case.key).arguments(case.samples[0])
    names = [a.name for a in case.op.args]
    place = names.index(name)
    if place < len(args):
        args[place] = value
    else:
        kwargs[name] = value
    for t in (
        t for t in tensors_of(args) if t.is_floating_point() and t.numel() > 4 and not case.writes
    ):
        t.view(-1)[:3] = module.tensor([0.0, -0.0, 1.0], dtype=t.dtype)
    if "reduction" in names and names.index("reduction") >= len(args):
        kwargs["reduction"] = 0
    assert name in bound(case.op, args, kwargs)
    try:
        result = function_of(module, case.op)(*args, **kwargs)
    except (
        RuntimeError,
        ValueError,
        TypeError,
        IndexError,
        OverflowError,
        ZeroDivisionError,
    ) as error:
        return type(error).__name__, str(error).partition("\n")[0]
    found = tensors_of(result) or tensors_of(args)
    return "values", [np.asarray(t.detach().to(getattr(module, dtype)).tolist()) for t in found]


def difference(case, name, value):
    """How the outcomes differ, or an empty text."""
    (kind, ours), (other, theirs) = (outcome(m, case, name, value) for m in (rushlight, torch))
    if other == "TypeError" and "invalid combination" in theirs:  # the number has no name there
        return ""
    if kind != other:
        return f"{name}={value}: {kind} {ours} here, {other} {theirs} there\n"
    if kind != "values":
        return ""
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape or not np.allclose(a, b, 1e-7, 1e-9, equal_nan=True):
            return f"{name}={value}: {a.tolist()} here, {b.tolist()} there\n"
    return ""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_numbers_that_are_none(case):
    wrong = [
        difference(case, name, value)
        for name in parameters(case.op)
        for value in VALUES
        if (case.key, name) not in DIFFERENT
    ]
    assert not any(wrong), "".join(wrong)
