"""Numbers that a dtype cannot hold, in every argument of an op that takes one: refused where PyTorch refuses them, and
where both compute, equal results. The op is called with 3 elements `a`, a matrix `b`, places `i`, a mask `k`, a number
`v`.
"""

import math
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")

inf, nan = math.inf, math.nan

CALLS = """
m.add(a, a, alpha=v)
m.sub(a, a, alpha=v)
m.rsub(a, a, alpha=v)
m.addcmul(a, a, a, value=v)
a + v
a * v
v - a
a == v
a < v
a.add_(v)
a.mul_(v)
a.fill_(v)
a.fill_(m.tensor(v))
m.fill(a, v)
a.__setitem__(0, v) or a
a.__setitem__(i, v) or a
a.__setitem__(k, v) or a
a.__setitem__(0, m.tensor(v)) or a
a.masked_fill(k, v)
a.masked_fill_(k, v)
m.masked_fill(a, k, m.tensor(v))
a.index_fill(0, i, v)
a.index_fill_(0, i, v)
a.index_add(0, i, a[:2], alpha=v)
a.scatter(0, i, v)
a.scatter_(0, i, v)
a.scatter(0, i, v, reduce='add')
a.scatter(0, i, v, reduce='multiply')
a.clamp(v)
a.clamp(max=v)
a.clamp_(v)
m._foreach_clamp_min([a], v)[0]
m._foreach_add([a], [a], alpha=v)[0]
m.where(k, a, v)
m.where(k, v, a)
m.full((2,), v, dtype=a.dtype)
m.full_like(a, v)
a.new_full((2,), v)
m.tensor(v, dtype=a.dtype)
m.tensor([v], dtype=a.dtype)
m.scalar_tensor(v, dtype=a.dtype)
m.addmm(b, b, b, alpha=v)
m.addmm(b, b, b, beta=v)
m.addmv(a[:2], b, a[:2], alpha=v)
m.baddbmm(b[None], b[None], b[None], beta=v)
m.addbmm(b, b[None], b[None], alpha=v)
b.fill_diagonal_(v)
m.nn.functional.pad(a, (1, 1), value=v)
m.constant_pad_nd(a, (1, 1), v)
m.linspace(0, v, 3, dtype=a.dtype)
m.linspace(v, 0, 3, dtype=a.dtype)
m.logspace(0, v, 3, dtype=a.dtype)
m.remainder(a, v)
m.floor_divide(a, v)
m.xlogy(a, v)
m.nn.functional.elu(a, v)
m.nn.functional.hardtanh(a, -1, v)
m.nn.functional.leaky_relu(a, v)
m.nn.functional.softplus(a, v)
m.nn.functional.softshrink(a, v)
m.nn.functional.hardshrink(a, v)
m.nn.functional.threshold(a, v, 0)
m.nn.functional.threshold(a, 0, v)
m.renorm(b, 2, 0, v)
m.histc(a, 3, 0, v)
m.searchsorted(s, v)
m.searchsorted(s, v, right=True)
m.bucketize(v, s)
m.var(a, correction=v)
m.std(a, 0, correction=v)
m.ldexp(a, m.tensor(v))
m.bitwise_and(a, v)
m.maximum(a, m.tensor(v))
m.nan_to_num(a, nan=v)
""".strip().splitlines()
DTYPES = ["float32", "int64", "int8", "uint8", "bool", "complex64"]
NUMBERS = [1j, 2.5, 300, -1, 1e6, 2**40, True, inf, nan, -300.5]

# What differs on purpose, and how.
_INFINITY = "the real part of complex infinity is not multiplied into NaN"
_ENDS = "infinite and negative ends of unsigned dtypes"
_BEYOND = "a number beyond the boundaries' dtype stands before or behind them all; PyTorch wraps it around"
OTHERWISE = {
    "m.addcmul(a, a, a, value=v)": "a value with a fraction, or a truth, is refused here: PyTorch drops it",
    "a + v": _INFINITY,
    "a.add_(v)": _INFINITY,
    "m.addmv(a[:2], b, a[:2], alpha=v)": _INFINITY,
    "m.logspace(0, v, 3, dtype=a.dtype)": "powers between integers are not those of integers",
    "m.linspace(0, v, 3, dtype=a.dtype)": _ENDS,
    "m.linspace(v, 0, 3, dtype=a.dtype)": _ENDS,
    "m.searchsorted(s, v)": _BEYOND,
    "m.searchsorted(s, v, right=True)": _BEYOND,
    "m.bucketize(v, s)": _BEYOND,
    "a.clamp(v)": "bool tensors have bounds here",
    "a.clamp(max=v)": "bool tensors have bounds here",
    "a.clamp_(v)": "bool tensors have bounds here",
    "m._foreach_clamp_min([a], v)[0]": "bool tensors have bounds here",
    "m.var(a, correction=v)": "without degrees of freedom complex numbers have what real ones have",
    "m.std(a, 0, correction=v)": "without degrees of freedom complex numbers have what real ones have",
    "m.ldexp(a, m.tensor(v))": "the exponent may be a truth",
}
# Infinity times a product or times its factors, one by one: PyTorch's library chooses by the processor.
EITHER = {"m.addmm(b, b, b, alpha=v)", "m.addbmm(b, b[None], b[None], alpha=v)"}


def outcome(m, text, dtype, v):
    """The dtype and the elements of the result, or the type of the error."""
    dtype = getattr(m, dtype)
    names = {"m": m, "v": v, "i": m.tensor([0, 1]), "k": m.tensor([True, False, True])}
    names["a"], names["b"] = m.tensor([1, 0, 1]).to(dtype), m.tensor([[1, 0], [1, 1]]).to(dtype)
    names["s"] = m.tensor([0, 1, 3]).to(dtype)
    try:
        result = eval(text, names)
    except Exception as error:
        return type(error).__name__
    return str(result.dtype).rpartition(".")[2], result.flatten().tolist()


def near(x, y):
    if isinstance(x, complex) or isinstance(y, complex):
        x, y = complex(x), complex(y)
        return near(x.real, y.real) and near(x.imag, y.imag)
    return (
        x == y
        or (math.isnan(x) and math.isnan(y))
        or math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-6)
    )


def alike(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        return isinstance(ours, str) and isinstance(theirs, str)
    return ours[0] == theirs[0] and all(map(near, ours[1], theirs[1]))


@pytest.mark.parametrize("text", CALLS)
def test_a_number_that_does_not_fit(text):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for v in NUMBERS:
                ours, theirs = outcome(rushlight, text, dtype, v), outcome(torch, text, dtype, v)
                if not alike(ours, theirs):
                    wrong.append((dtype, v, ours, theirs))
    # Nothing that PyTorch refuses as too large is taken.
    fits = [w for w in wrong if w[3] == "RuntimeError" and not isinstance(w[2], str)]
    assert not fits, wrong
    if text in EITHER:
        assert all(v == math.inf for _, v, *_ in wrong), wrong
    else:
        assert bool(wrong) == (text in OTHERWISE), wrong
