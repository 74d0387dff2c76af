"""Pointwise ops beyond the table-driven suite: edges, bits, memory, promotion, errors."""

import math

import numpy as np
import pytest

import rushlight as torch

UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "erf",
    "erfc",
    "erfinv",
    "reciprocal",
    "square",
    "abs",
    "neg",
    "floor",
    "ceil",
    "trunc",
    "round",
    "frac",
    "sign",
    "sinc",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "atan2",
    "fmod",
    "remainder",
    "floor_divide",
    "maximum",
    "minimum",
    "hypot",
    "copysign",
    "xlogy",
    "logaddexp",
]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
INF, NAN = math.inf, math.nan


def bits(t):
    t = t.contiguous()
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.view(kinds[t.element_size()]).numpy()


def same_bits(a, b):
    """Equal bit for bit; any NaN equals any other."""
    assert a.dtype is b.dtype and a.shape == b.shape
    a, b = a.contiguous(), b.contiguous()
    differ = bits(a) != bits(b)
    if a.is_floating_point():
        differ &= ~(a.isnan() & b.isnan()).numpy()
    assert not differ.any()


# ---- bits ----


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_bits_do_not_depend_on_position(name, dtype):
    f = getattr(torch, name)
    torch.manual_seed(0)
    x = (torch.randn(1031, dtype=torch.float64) * 3).to(dtype)
    whole = f(x)
    for begin, end in ((0, 1), (1, 2), (3, 20), (5, 70), (700, 1031), (1030, 1031)):
        same_bits(f(x[begin:end]), whole[begin:end])
        same_bits(f(x[begin:end].clone()), whole[begin:end])
    same_bits(f(x[::3]), whole[::3])
    same_bits(f(x[:1024].view(32, 32).t()), whole[:1024].view(32, 32).t())
    same_bits(f(x[7]), whole[7])
    same_bits(f(x[:7].expand(150, 7)), whole[:7].expand(150, 7))


@pytest.mark.parametrize("name", BINARY)
def test_bits_of_two_operands_do_not_depend_on_position(name):
    f = getattr(torch, name)
    torch.manual_seed(0)
    x, y = torch.randn(1031) * 3, torch.rand(1031) + 0.5
    whole = f(x, y)
    for begin, end in ((0, 1), (3, 20), (700, 1031)):
        same_bits(f(x[begin:end], y[begin:end]), whole[begin:end])
    same_bits(f(x[::5], y[::5]), whole[::5])
    same_bits(
        f(x[:1000].view(10, 100), y[:100]),
        f(x[:1000].view(10, 100), y[:100].expand(10, 100).contiguous()),
    )
    same_bits(
        f(x[:1000].view(10, 100), y[:10, None]),
        f(x[:1000].view(10, 100), y[:10, None].expand(10, 100).contiguous()),
    )


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "erf"])
def test_bits_do_not_depend_on_threads(name):
    x = torch.linspace(-20, 20, 200_003)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            results.append(getattr(torch, name)(x))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        same_bits(other, results[0])


# ---- values at the edges ----


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("exp", np.exp), ("exp2", np.exp2), ("expm1", np.expm1), ("log", np.log), ("log2", np.log2), ("log10", np.log10),
        ("log1p", np.log1p), ("sqrt", np.sqrt), ("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("asin", np.arcsin),
        ("acos", np.arccos), ("atan", np.arctan), ("sinh", np.sinh), ("cosh", np.cosh), ("tanh", np.tanh),
        ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh), ("floor", np.floor), ("ceil", np.ceil),
        ("trunc", np.trunc), ("round", np.round), ("abs", np.abs), ("neg", np.negative), ("reciprocal", np.reciprocal),
    ],
)  # fmt: skip
def test_special_values(name, reference, dtype):
    info = torch.finfo(dtype)
    values = [
        0.0,
        -0.0,
        INF,
        -INF,
        NAN,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1e-30,
        -1e-30,
        88.0,
        -88.0,
        89.5,
        -104.0,
        1e4,
        -1e4,
    ]
    values += [
        info.max,
        info.min,
        info.tiny,
        -info.tiny,
        info.tiny / 4,
        2.5,
        -2.5,
        0.9999999,
        1 + info.eps,
    ]
    x = torch.tensor(values, dtype=dtype)
    with np.errstate(all="ignore"):
        expected = reference(x.numpy())
    actual = getattr(torch, name)(x).numpy()
    np.testing.assert_allclose(
        actual, expected, rtol=4 * info.eps, atol=0 if name == "exp" else info.tiny
    )
    numbers = ~np.isnan(expected)
    assert (np.signbit(actual) == np.signbit(expected))[numbers].all()


def test_exp_of_floats_is_good_to_one_ulp():
    x = torch.linspace(-103.9, 88.7, 2_000_001)
    exact = np.exp(x.numpy().astype(np.float64))
    actual = torch.exp(x).numpy()
    error = np.abs(actual.astype(np.float64) - exact) / np.spacing(exact.astype(np.float32))
    assert error.max() < 1.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_erfinv_inverts_erf(dtype):
    y = torch.tensor([-0.999, -0.5, -1e-3, 0.0, 1e-6, 0.25, 0.9, 0.9999], dtype=dtype)
    np.testing.assert_allclose(
        torch.erf(torch.erfinv(y)), y, rtol=1e-6 if dtype is torch.float32 else 1e-14
    )
    edges = torch.erfinv(torch.tensor([1.0, -1.0, 1.5, NAN], dtype=dtype)).tolist()
    assert edges[:2] == [INF, -INF] and all(math.isnan(v) for v in edges[2:])


def test_nan_in_comparisons_and_extremes():
    a, b = torch.tensor([NAN, 1.0, 2.0]), torch.tensor([1.0, NAN, 1.0])
    assert (a < b).tolist() == [False, False, False]
    assert (a != b).tolist() == [True, True, True]
    assert torch.maximum(a, b).isnan().tolist() == [True, True, False]
    assert torch.fmax(a, b).tolist() == [1.0, 1.0, 2.0]
    assert torch.fmin(a, b).tolist() == [1.0, 1.0, 1.0]
    assert torch.clamp(a, 0, 1).isnan().tolist() == [True, False, False]
    assert torch.relu(a).isnan().tolist() == [True, False, False]
    assert torch.sign(a).tolist() == [0.0, 1.0, 1.0]


# ---- integers ----


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "div_trunc"])
def test_integer_division(name, dtype):
    info = torch.iinfo(dtype)
    values = sorted(
        {info.min, info.min + 1, -7, -1, 0, 1, 2, 7, info.max} & set(range(-9, 10))
        | {info.min, info.max}
    )
    values = [v for v in values if info.min <= v <= info.max]
    x = torch.tensor(values, dtype=dtype)[:, None]
    y = torch.tensor([v for v in values if v != 0], dtype=dtype)
    if name == "div_trunc":
        actual = torch.div(x, y, rounding_mode="trunc")
    else:
        actual = getattr(torch, name)(x, y)
    for i, a in enumerate(values):
        for j, b in enumerate(v for v in values if v != 0):
            q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            exact = {"floor_divide": a // b, "remainder": a % b, "fmod": a - q * b, "div_trunc": q}[
                name
            ]
            wrapped = (exact - info.min) % (info.max - info.min + 1) + info.min
            assert actual[i, j].item() == wrapped, (a, b)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: torch.fmod(x, 0),
        lambda x: x % torch.tensor([1, 0, 2], dtype=torch.int32),
        lambda x: torch.div(x, torch.zeros((), dtype=torch.int64), rounding_mode="trunc"),
        lambda x: x.to(torch.uint8) // 256,
    ],
)
def test_integer_division_by_zero(call):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call(torch.tensor([1, 2, 3], dtype=torch.int32))


def test_integers_wrap():
    x = torch.tensor([1, 200], dtype=torch.uint8)
    assert (x + 300).tolist() == [45, 244]
    assert (-torch.tensor([1], dtype=torch.uint8)).tolist() == [255]
    assert (torch.tensor([2**63 - 1]) + 1).tolist() == [-(2**63)]
    assert torch.abs(torch.tensor([-128], dtype=torch.int8)).tolist() == [-128]
    assert (torch.tensor([127], dtype=torch.int8) * 2).tolist() == [-2]


def test_shifts_beyond_the_width():
    x = torch.tensor([1, -5], dtype=torch.int8)
    assert (x << 9).tolist() == [0, 0] and (x << -1).tolist() == [0, 0]
    assert (x >> 9).tolist() == [0, -1] and (x >> -1).tolist() == [0, -1]
    assert (torch.tensor([200], dtype=torch.uint8) >> 3).tolist() == [25]
    assert (1 << torch.tensor([0, 3, 64])).tolist() == [1, 8, 0]


def test_integer_powers():
    x = torch.tensor([-2, -1, 0, 1, 2, 3])
    assert (x**3).tolist() == [-8, -1, 0, 1, 8, 27]
    assert (x**5).tolist() == [-32, -1, 0, 1, 32, 243]
    assert torch.pow(torch.tensor([2, 1, -1, -1]), torch.tensor([-1, -5, -2, -3])).tolist() == [
        0,
        1,
        1,
        -1,
    ]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        x**-1


# ---- promotion ----


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_powers_of_numbers(dtype):
    limits = torch.iinfo(dtype)
    values = [0, 1, 2, 3, limits.max]
    t = torch.tensor(values, dtype=dtype)
    width = 2**limits.bits
    for power in (0, 1, 2, 7, 8, 63, 64, 127, 128, 200, 255, 256, 257, 2**15, 2**31, 2**63 - 1):
        for call in (lambda t, p: t**p, lambda t, p: t.clone().pow_(p)):
            if power > limits.max:
                with pytest.raises(RuntimeError, match="does not fit"):
                    call(t, power)
                continue
            right = [pow(v, power, width) for v in values]
            right = [r - width if r > limits.max else r for r in right]
            assert call(t, power).tolist() == right


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_a_factor_may_be_a_bool(dtype):
    t = torch.tensor([1, 2], dtype=dtype)
    for value in (True, False):
        expected = torch.addcmul(t, t, t, value=int(value))
        assert torch.equal(torch.addcmul(t, t, t, value=value), expected)
        f = t.float()
        assert torch.equal(
            torch.addcdiv(f, f, f, value=value), torch.addcdiv(f, f, f, value=int(value))
        )
        with pytest.raises(RuntimeError, match="Boolean alpha"):
            torch.add(t, t, alpha=value)


def test_exponents_of_every_integer():
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32, torch.int64):
        for base in (torch.ones(3), torch.ones(3, dtype=torch.int64), torch.ones(3).half()):
            found = torch.ldexp(base, torch.tensor([0, 3, 9]).to(dtype))
            assert found.tolist() == [1, 8, 512] and found.is_floating_point()


def test_numbers_do_not_round_before_the_kernel():
    h = torch.tensor([3.0], dtype=torch.float16)
    assert (h * 0.1).item() == float(np.float16(np.float32(3) * np.float32(0.1)))
    assert (h + 1e6).item() == INF
    assert (torch.tensor([1.0]) * 1e300).item() == INF


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda: torch.ones(2, dtype=torch.uint8) + 1, torch.uint8),
        (lambda: torch.ones(2, dtype=torch.uint8) + 1.5, torch.float32),
        (lambda: torch.ones(2, dtype=torch.uint8) + torch.tensor(1), torch.uint8),
        (lambda: torch.ones(2, dtype=torch.uint8) + torch.tensor([1, 1]), torch.int64),
        (lambda: torch.ones((), dtype=torch.int32) + 1.5, torch.float32),
        (lambda: torch.ones(2, dtype=torch.bool) + True, torch.bool),
        (
            lambda: torch.ones(2, dtype=torch.float16) + torch.tensor(1.0, dtype=torch.float64),
            torch.float16,
        ),
        (
            lambda: torch.ones(2, dtype=torch.float16) + torch.ones(2, dtype=torch.bfloat16),
            torch.float32,
        ),
        (lambda: torch.ones(2) + 1j, torch.complex64),
        (lambda: torch.ones(2, dtype=torch.float64) + 1j, torch.complex128),
        (lambda: torch.ones(2, dtype=torch.int64) / 2, torch.float32),
        (lambda: torch.ones(2, dtype=torch.int64) < 1.5, torch.bool),
        (lambda: torch.abs(torch.ones(2, dtype=torch.complex64)), torch.float32),
        (lambda: torch.angle(torch.ones(2, dtype=torch.int64)), torch.float32),
        (lambda: torch.where(torch.tensor([True]), 1, 2.5), torch.float32),
        (lambda: torch.tensor([1]).clamp(0.5), torch.float32),
    ],
)
def test_promotion(call, dtype):
    assert call().dtype is dtype


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: torch.ones(2, dtype=torch.int64).mul_(1.5),
            "result type Float can't be cast to the output's",
        ),
        (
            lambda: torch.ones(2, dtype=torch.int64).exp_(),
            "result type Float can't be cast to the output's",
        ),
        (
            lambda: torch.ones(2).add_(1j),
            "result type ComplexFloat can't be cast to the output's Float",
        ),
        (
            lambda: torch.zeros(2, dtype=torch.uint8).fill_(300),
            "the value does not fit into type uint8.*without overflow",
        ),
        (
            lambda: torch.zeros(2, dtype=torch.uint8).clamp(max=300),
            "the value does not fit into type uint8.*without overflow",
        ),
        (
            lambda: torch.ones(2, dtype=torch.int64).add(1, alpha=1.5),
            "alpha must be an integer for integral input tensors",
        ),
        (
            lambda: torch.ones(2).add(1, alpha=True),
            "Boolean alpha only supported for Boolean results",
        ),
        (
            lambda: torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool),
            "bool tensors are not subtracted",
        ),
        (
            lambda: -torch.ones(2, dtype=torch.bool),
            "a bool tensor has no negative",
        ),
        (
            lambda: torch.lerp(torch.ones(2), torch.ones(2).double(), 0.5),
            "expected dtype float for `end` but got dtype double",
        ),
        (
            lambda: torch.addcdiv(*[torch.ones(2, dtype=torch.int64)] * 3),
            "Integer division with addcdiv is no longer supported",
        ),
        (
            lambda: torch.addcdiv(torch.ones(2), *[torch.ones(2, dtype=torch.int64)] * 2),
            "Integer division with addcdiv is no longer supported",
        ),
        # What is wrong with the arguments themselves is seen without elements, too, and on meta.
        (
            lambda: torch.ones(2, dtype=torch.bool, device="meta") - True,
            "bool tensors are not subtracted",
        ),
        (
            lambda: torch.ones(0, dtype=torch.int64).add(1, alpha=1.5),
            "alpha must be an integer for integral input tensors",
        ),
        (
            lambda: torch.ones(0, dtype=torch.int64) ** -1,
            "Integers to negative integer powers are not allowed",
        ),
        (lambda: torch.ones(2) & torch.ones(2), "not implemented for 'Float'"),
        (lambda: torch.ones(2, dtype=torch.complex64) < 1, "not implemented for 'ComplexFloat'"),
        (lambda: torch.ones(2).clamp(), "At least one of 'min' or 'max' must not be None"),
        (lambda: torch.where(torch.ones(2), 1, 2), "expected condition to be a boolean tensor"),
        (lambda: torch.div(torch.ones(2), 2, rounding_mode="up"), "rounding_mode"),
        (
            lambda: torch.allclose(torch.ones(2), torch.ones(2).double()),
            "Float did not match Double",
        ),
        (lambda: torch.frac(torch.ones(2, dtype=torch.int64)), "not implemented for 'Long'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_values_are_looked_at_where_there_are_some():
    whole = torch.ones(0, dtype=torch.int64)
    assert (whole // 0).numel() == 0
    assert (whole.to("meta") // 0).is_meta


def test_a_refused_call_leaves_out_alone():
    out = torch.empty(3)
    flags = torch.ones(2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="bool tensors are not subtracted"):
        torch.sub(flags, flags, out=out)
    assert out.shape == (3,)


# ---- memory ----


def test_results_keep_the_order_of_strides():
    x = torch.randn(2, 3, 4, 5).permute(0, 2, 3, 1)
    assert torch.exp(x).stride() == x.stride()
    assert (x + torch.randn(1)).stride() == x.stride()
    assert (torch.randn(3, 4).t() * 2).stride() == (1, 4)
    channels_last = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert (channels_last + channels_last).is_contiguous(memory_format=torch.channels_last)
    assert (channels_last + torch.randn(3, 1, 1)).is_contiguous(memory_format=torch.channels_last)


def test_an_output_may_be_an_input():
    x = torch.arange(2000.0)
    expected = x + x.sin()
    assert torch.add(x, x.sin(), out=x) is x
    same_bits(x, expected)
    m = torch.randn(40, 50)
    expected = m.t() * m.t()
    v = m.t()
    v.mul_(v)
    same_bits(v, expected)


def test_overlapping_memory_is_refused():
    x = torch.arange(10.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(3).expand(2, 3).add_(1)
    square = torch.randn(4, 4)
    with pytest.raises(RuntimeError, match="single memory location"):
        square.add_(square.t())


def test_a_refused_output_keeps_its_size():
    x = torch.arange(12.0).reshape(3, 4)
    shifted = x.reshape(-1)[3:]
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(x, x, out=shifted)
    assert shifted.shape == (9,) and shifted.tolist() == list(range(3, 12))
    out = torch.tensor(2.0)  # an input is left in the memory that is resized
    assert torch.add(torch.ones(3, 1), out.view(()), out=out).flatten().tolist() == [3, 3, 3]


def test_out_is_resized_and_cast():
    out = torch.empty(0)
    torch.add(torch.ones(2, 3), 1, out=out)
    assert out.shape == (2, 3)
    wide = torch.empty(3, dtype=torch.float64)
    torch.exp(torch.ones(3), out=wide)
    assert wide.tolist() == torch.exp(torch.ones(3)).double().tolist()
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(3).add_(torch.ones(2, 3))


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (), (1,), (1, 1, 1)])
def test_small_shapes(shape):
    x = torch.ones(shape)
    for result in (x + 1, x + x, torch.exp(x), x > 0, torch.where(x > 0, x, 0)):
        assert result.shape == torch.Size(shape)


@pytest.mark.parametrize("width", [1, 3, 15, 16, 33, 48, 64, 65, 511, 512, 1000, 1024, 2049])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.bfloat16])
def test_rows_in_every_layout_give_the_same_bits(dtype, width):
    """Operands without gaps, of rows with gaps, transposed, columns, rows and numbers, also in place."""

    def with_gaps(t):
        return torch.zeros(20, width + 5).to(dtype)[:, 1:-4].copy_(t)

    x = torch.arange(20 * width).remainder(100).to(dtype).view(20, width)
    y = (x * 7).remainder(13).to(dtype)
    column, row, number = y[:, :1].clone(), y[:1].clone(), y[1:2, :1].clone()
    calls = [
        lambda a, b: a + b,
        lambda a, b: torch.rsub(a, b),
        lambda a, b: a < b,
        lambda a, b: torch.addcmul(a, a, b),
        lambda a, b: torch.where(a > 3, b, a),
    ]
    for other in (y, with_gaps(y), y.t().contiguous().t(), column, row, number):
        wide = other.expand(20, width).contiguous()
        for call in calls:
            for first in (x, with_gaps(x), x.t().contiguous().t()):
                same_bits(call(first, other), call(x, wide))
        same_bits((x + other.double()).to(dtype), x + wide)
        for start in (x.clone(), with_gaps(x)):
            same_bits(start.mul_(other), x * wide)


@pytest.mark.parametrize("width", [64, 65, 100, 300, 512, 515, 1000, 2049])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128, torch.bfloat16])
def test_columns_beside_long_rows(dtype, width):
    x = torch.arange(7 * width).remainder(100).to(dtype).view(7, width)
    column = torch.arange(7).to(dtype).view(7, 1)
    wide = column.expand(7, width).contiguous()
    assert torch.equal(x + column, x + wide)
    assert torch.equal(column - x, wide - x)
    assert torch.equal(x == column, x == wide)
    assert torch.equal(torch.where(x == 3, column, x), torch.where(x == 3, wide, x))
    assert torch.equal(torch.addcmul(column, x, column), torch.addcmul(wide, x, wide))
    assert torch.equal(x[:, 1:-1] * column, x[:, 1:-1] * wide[:, 1:-1])
    assert torch.equal(x.clone().mul_(column), x * wide)
    assert torch.equal(x[:, 1:].clone().sub_(column, alpha=2), x[:, 1:] - wide[:, 1:] * 2)
    assert torch.equal(torch.rsub(x, column), wide - x)
    assert torch.equal(x.view(7, 1, width) + column.view(1, 7, 1), x.view(7, 1, width) + wide)


@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128, torch.bfloat16],
)
@pytest.mark.parametrize("shape", [(3, 5), (64, 64), (130, 67), (67, 130), (2, 33, 40), (1000, 3)])
def test_copies_of_transposed_memory(shape, dtype):
    n = math.prod(shape)
    x = torch.arange(n).remainder(251).to(dtype).view(shape)
    t = x.transpose(-1, -2)
    flat = t.contiguous()
    expected = np.arange(n).reshape(shape).swapaxes(-1, -2) % 251
    np.testing.assert_array_equal(
        flat.double().numpy() if dtype is not torch.complex128 else flat.real.numpy(), expected
    )
    back = torch.empty(shape, dtype=dtype)
    back.transpose(-1, -2).copy_(flat)
    assert torch.equal(back, x)
    assert torch.equal(t.to(torch.complex128).real, torch.from_numpy(expected).double())


def test_conversions_between_all_dtypes():
    dtypes = [*INTEGERS, *FLOATS, torch.complex64, torch.complex128, torch.bool]
    values = np.array([0, 1, 2, 100, 7, 0, 64] * 30)
    source = torch.from_numpy(values)
    for a in dtypes:
        for b in dtypes:
            expected = (values != 0).astype(values.dtype) if torch.bool in (a, b) else values
            np.testing.assert_array_equal(source.to(a).to(b).to(torch.int64).numpy(), expected)
            np.testing.assert_array_equal(
                source.to(a)[::3].to(b).to(torch.int64).numpy(), expected[::3]
            )


def test_half_conversion_rounds_to_even():
    x = torch.tensor(
        [1 + 2**-11, 1 + 3 * 2**-11, 65519.0, 65520.0, 2**-25, 3 * 2**-26, -0.0, NAN],
        dtype=torch.float32,
    )
    np.testing.assert_array_equal(
        x.half().float().numpy(), x.numpy().astype(np.float16).astype(np.float32)
    )
    y = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38], dtype=torch.float32)
    assert y.bfloat16().float().tolist() == [1.0, 1 + 2**-6, INF]


# ---- particular ops ----


def test_where_broadcasts_and_keeps_sixteen_bit_floats():
    mask = torch.tensor([True, False, True])
    a, b = torch.tensor([1.0, 2.0, NAN]).half(), torch.tensor(5.0).half()
    result = torch.where(mask, a, b)
    assert result.dtype is torch.float16
    assert result[:2].tolist() == [1.0, 5.0] and result.isnan().tolist() == [False, False, True]
    big = torch.arange(5000)
    assert torch.equal(torch.where(big % 2 == 0, big, -big), big * (1 - 2 * (big % 2)))
    assert torch.where(torch.tensor(True), torch.tensor(1j), 0).item() == 1j


def test_lerp_reaches_both_ends():
    a, b = torch.randn(100), torch.randn(100) * 1e6
    assert torch.equal(torch.lerp(a, b, 0.0), a) and torch.equal(torch.lerp(a, b, 1.0), b)


def test_complex_functions():
    z = torch.tensor([1 + 2j, -0.5 + 0.1j, 3 - 4j], dtype=torch.complex128)
    n = z.numpy()
    for name, reference in (("exp", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("sin", np.sin), ("tanh", np.tanh),
                            ("abs", np.abs), ("angle", np.angle), ("conj", np.conj), ("log1p", np.log1p),
                            ("expm1", np.expm1), ("reciprocal", np.reciprocal), ("square", np.square)):  # fmt: skip
        np.testing.assert_allclose(getattr(torch, name)(z).numpy(), reference(n), rtol=1e-13)
    np.testing.assert_allclose((z**2.5).numpy(), n**2.5, rtol=1e-13)
    np.testing.assert_allclose((z / z.flip(0)).numpy(), n / n[::-1], rtol=1e-13)
    assert torch.sgn(torch.tensor([3 + 4j, 0j])).tolist() == [
        0.6000000238418579 + 0.800000011920929j,
        0j,
    ]
    assert (torch.zeros(1, dtype=torch.complex64) ** 0).tolist() == [1]


def test_equal_and_close():
    x = torch.tensor([1.0, NAN])
    assert (
        not torch.equal(x, x) and not torch.allclose(x, x) and torch.allclose(x, x, equal_nan=True)
    )
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2])) and not torch.equal(
        torch.ones(2), torch.ones(3)
    )
    assert torch.isclose(torch.tensor([1.0, INF]), torch.tensor([1.000001, INF])).tolist() == [
        True,
        True,
    ]


def test_fill_and_zero():
    x = torch.empty(4, 6)
    assert x.fill_(2).tolist() == [[2.0] * 6] * 4
    x[:, ::2].zero_()
    assert x.tolist() == [[0.0, 2.0] * 3] * 4
    with pytest.raises(RuntimeError, match="fill_ only supports a 0-dimensional value"):
        x.fill_(torch.ones(2))


@pytest.mark.parametrize("x", [-0.25, -7.75, -500000.25, -1e12 - 0.25])
def test_polygamma_far_below_zero(x):
    """By reflection: psi'(x) + psi'(1 - x) = (pi / sin(pi x))^2."""
    x = torch.tensor(x, dtype=torch.float64)
    both = torch.polygamma(1, x) + torch.polygamma(1, 1 - x)
    assert both.item() == pytest.approx(2 * math.pi**2, rel=1e-14)


def test_complex_numbers_and_their_parts():
    z = torch.tensor([3 + 4j])
    for write in (lambda: z.abs_(), lambda: torch.abs_(z)):
        with pytest.raises(RuntimeError, match="complex"):
            write()
    assert torch.abs(z, out=torch.empty(1, dtype=torch.complex64)).tolist() == [5]
    for make in (torch.complex, torch.polar):
        for dtype in (torch.int8, torch.bool, torch.bfloat16, torch.complex64):
            with pytest.raises(RuntimeError, match="Half, Float or Double"):
                make(torch.ones(2).to(dtype), torch.ones(2).to(dtype))
        with pytest.raises(RuntimeError, match="scalar type"):
            make(torch.ones(2), torch.ones(2).double())
