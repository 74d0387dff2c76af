"""Derivatives at infinity, at the largest numbers and at zero are the limits of those nearby.

A derivative that tends to a number, or to infinity, has that value at infinity itself: `0 * inf` within a formula would
make NaN of it. What has no limit there (a sine), and what the function is not defined for, is left out.
"""

import itertools
import math

import pytest

import rushlight as torch
from tests.ops.harness import cases, count, function_of

FAR = [10.0**e for e in (2, 3, 5, 8, 20, 60, 120, 180, 240, 300)]
# Families of which composites are functions of elements.
ELEMENTWISE = ("activation", "comparison", "pointwise", "special")
# Derivatives that do not tend to their value there, by op and place.
REPLACED = "infinities are replaced by a constant"
NO_LIMIT = {
    (name, place): REPLACED
    for name in ("nan_to_num", "_nan_to_num")
    for place in (math.inf, -math.inf)
}


def is_unary(case):
    """A pointwise function of one tensor of real numbers, whose other arguments have defaults."""
    op = case.op
    inputs = [a for a in op.args if a.type.base == "Tensor"]
    others = [a for a in op.args if a.type.base != "Tensor" and a.default is None]
    pointwise = op.kernel.kind == "pointwise" or (
        op.kind == "composite" and op.family in ELEMENTWISE
    )
    grad = case.gradient and (op.kind == "composite" or bool(op.grad)) and op.grad != "none"
    plain = case.op.name not in ("clamp", "clip", "glu")  # which need bounds, or halves
    return (
        pointwise
        and plain
        and len(inputs) == 1
        and not others
        and grad
        and not case.writes
        and "float64" in case.dtypes
    )


CASES = [pytest.param(case, id=key) for key, case in cases().items() if is_unary(case)]


def derivatives(function, places, order):
    """The derivatives of an order at places, None where there are none."""
    x = torch.tensor(places, dtype=torch.float64, requires_grad=True)
    out = function(x)
    if (
        not isinstance(out, torch.Tensor)
        or out.shape != x.shape
        or not out.requires_grad
        or out.is_complex()
    ):
        return None
    for i in range(order):
        if not out.requires_grad:
            return [0.0] * len(places)
        (out,) = torch.autograd.grad(out.sum(), x, create_graph=i + 1 < order, allow_unused=True)
        if out is None:
            return [0.0] * len(places)
    return out.tolist()


def limit(values):
    """What a sequence tends to, or None."""
    last = values[-1]
    if any(math.isnan(v) for v in values):
        return None
    if all(abs(v - last) <= 1e-9 * max(abs(last), 1e-3) for v in values[-4:]):
        return 0.0 if abs(last) < 1e-50 else last
    sizes = [abs(v) for v in values[-4:]]
    if all(a > 1e3 * b for a, b in zip(sizes[1:], sizes, strict=False)) or math.isinf(last):
        return math.copysign(math.inf, last)
    if all(a < 1e-3 * b for a, b in zip(sizes[1:], sizes, strict=False)):
        return 0.0
    return None


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_derivatives_at_infinity(case, order):
    function = function_of(torch, case.op)
    wrong = []
    for sign in (1, -1):
        places = [sign * x for x in FAR]
        near = derivatives(function, places, order)
        at = derivatives(function, [sign * math.inf], order)
        assert near is not None and at is not None  # a derivative of real numbers
        count()
        whole = torch.tensor([*places, sign * math.inf], dtype=torch.float64)
        if any(math.isnan(y) for y in function(whole).tolist()):
            continue  # the function is not defined there
        expected = limit(near)
        if expected is None or (case.key, sign * math.inf) in NO_LIMIT:
            continue
        if not (at[0] == expected or abs(at[0] - expected) <= 1e-9 * abs(expected)):
            wrong.append(f"at {sign * math.inf}: {at[0]}, and nearby {near}")
    assert not wrong, "\n".join(wrong)


def is_binary(case):
    """A pointwise function of two tensors of real numbers, which may differ in shape."""
    op = case.op
    inputs = [a for a in op.args if a.type.base == "Tensor"]
    others = [a for a in op.args if a.type.base != "Tensor" and a.default is None]
    pointwise = op.kernel.kind == "pointwise" or (op.kind == "composite" and op.family in ELEMENTWISE)
    grad = case.gradient and op.grad not in ("none", "missing") and op.name != "prelu"
    return pointwise and len(inputs) == 2 and not others and grad and not case.writes and "float64" in case.dtypes


PAIRS = [pytest.param(case, id=key) for key, case in cases().items() if is_binary(case)]
# A power of 2 beyond all numbers is taken for the largest, of whose exponent nothing depends.
NO_LIMIT |= {("ldexp", place): "exponents stop at the largest" for place in (math.inf, -math.inf)}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.filterwarnings("ignore")
def test_partial_derivatives_at_infinity(case, place):
    """Those by one argument where it is infinite and the other is a number."""
    whole = function_of(torch, case.op)
    wrong = []
    for other, sign, order in itertools.product((0.7, -1.3, 2.0), (1, -1), (1, 2)):
        def function(x, other=other):
            fixed = torch.full_like(x, other).detach()
            return whole(x, fixed) if place == 0 else whole(fixed, x)

        at = sign * math.inf
        try:
            near = derivatives(function, [sign * x for x in FAR], order)
            found = derivatives(function, [at], order)
        except NotImplementedError:  # by this argument it has none
            count()
            return
        count()
        if near is None or (case.key, at) in NO_LIMIT or function(torch.tensor(at, dtype=torch.float64)).isnan():
            continue
        expected = limit(near)
        if expected is not None and not (found[0] == expected or abs(found[0] - expected) <= 1e-9 * abs(expected)):
            wrong.append(f"at {at}, the other {other}, order {order}: {found[0]}, and nearby {near}")
    assert not wrong, "\n".join(wrong)
