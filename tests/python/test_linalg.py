"""Matrix products: sizes around the limits between kernels, layouts, dtypes, threads, instruction sets."""

import numpy as np
import pytest

import rushlight as torch
from tests.python import choices
from tests.python.closeness import assert_same_bits

RNG = np.random.default_rng(0)
TOLERANCE = {torch.float64: 1e-11, torch.float32: 3e-5, torch.float16: 2e-2, torch.bfloat16: 6e-2}

# m, n, k: tiny, around the limits, one tile and several, one row or column, long sums of small results.
SIZES = [
    *(
        (1, 1, 1),
        (4, 4, 4),
        (16, 16, 16),
        (17, 15, 16),
        (15, 17, 33),
        (47, 49, 31),
        (64, 64, 64),
        (70, 129, 257),
    ),
    *((300, 270, 530), (1, 200, 300), (200, 1, 300), (1, 1, 5000), (3, 5, 9001), (100, 120, 8192)),
]


def numbers(*shape):
    return RNG.uniform(-1, 1, shape)


def laid_out(array, layout, dtype):
    """A tensor of these values whose memory lies in one of many ways."""
    t = torch.from_numpy(array.copy()).to(dtype)
    if layout == "rows":
        return t
    if layout == "columns":
        return t.t().contiguous().t()
    wide = torch.zeros(
        2 * t.shape[0], 3 * t.shape[1], dtype=dtype
    )  # neither rows nor columns touch
    view = wide[::2, ::3]
    view.copy_(t)
    return view


def close(actual, expected, dtype, k):
    scale = max(1.0, np.sqrt(k))
    np.testing.assert_allclose(
        actual.double().numpy(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale
    )


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_product(size, dtype):
    m, n, k = size
    a, b = (torch.from_numpy(numbers(*s)).to(dtype) for s in ((m, k), (k, n)))
    expected = a.double().numpy() @ b.double().numpy()
    close(a @ b, expected, dtype, k)


@pytest.mark.parametrize("left", ["rows", "columns", "apart"])
@pytest.mark.parametrize("right", ["rows", "columns", "apart"])
@pytest.mark.parametrize(
    "size",
    [
        (5, 7, 6),
        (20, 40, 30),
        (20, 140, 150),
        (90, 1, 40),
        (1, 90, 40),
        (130, 140, 150),
        (520, 1040, 33),
        (129, 300, 1031),
        (300, 257, 514),
        (500, 600, 2),
    ],
    ids=str,
)
def test_layouts(size, left, right):
    m, n, k = size
    a, b = numbers(m, k), numbers(k, n)
    for dtype in TOLERANCE:
        close(laid_out(a, left, dtype) @ laid_out(b, right, dtype), a @ b, dtype, k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [(3, 4, 5), (60, 70, 20), (130, 140, 30)], ids=str)
def test_batches_lie_anywhere(size, dtype):
    """Heads of attention: leading dimensions that do not lie at one stride, broadcast ones."""
    m, n, k = size
    x = torch.from_numpy(numbers(2, m, 3, k)).to(dtype).transpose(1, 2)
    y = torch.from_numpy(numbers(2, n, 3, k)).to(dtype).transpose(1, 2)
    for a, b in (
        (x, y.transpose(-1, -2)),
        (x[:, :1], y.transpose(-1, -2)),
        (x.unsqueeze(1), y.transpose(-1, -2).unsqueeze(0)),
        (x.flip(0), y[:1].transpose(-1, -2)),
        (x[:, :, 0:0], y.transpose(-1, -2)),
    ):
        expected = a.double().numpy() @ b.double().numpy()
        close(a @ b, expected, dtype, k)
        assert torch.equal(a @ b, a.contiguous() @ b.contiguous())


def test_few_rows_times_transposed_batches():
    x = torch.from_numpy(numbers(2, 17, 3, 50)).float().transpose(1, 2)
    y = torch.from_numpy(numbers(2, 90, 3, 50)).float().transpose(1, 2).transpose(-1, -2)
    for a, b in ((x, y), (x[:, :1], y), (x.unsqueeze(1), y), (x.flip(0), y[:1])):
        close(a @ b, a.double().numpy() @ b.double().numpy(), torch.float32, 50)


def test_gradients_of_batches_that_lie_anywhere():
    x = torch.from_numpy(numbers(2, 5, 3, 4)).requires_grad_()
    y = torch.from_numpy(numbers(6, 3, 4)).requires_grad_()

    def product(x, y):
        return x.transpose(1, 2) @ y.permute(1, 2, 0)

    assert torch.autograd.gradcheck(product, (x, y))
    assert torch.autograd.gradgradcheck(product, (x, y))


def test_expanded_and_reversed_batches():
    a, b = numbers(3, 4), numbers(5, 4, 6)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_allclose((x.expand(5, 3, 4) @ y).numpy(), a @ b)
    np.testing.assert_allclose(
        torch.bmm(y.transpose(1, 2), x.t().expand(5, 4, 3)).numpy(), b.transpose(0, 2, 1) @ a.T
    )


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str
)
def test_integers_wrap_around(dtype):
    info = torch.iinfo(dtype)
    a, b = (
        RNG.integers(info.min, info.max, s, dtype=str(dtype).split(".")[1], endpoint=True)
        for s in ((20, 30), (30, 17))
    )
    with np.errstate(over="ignore"):
        expected = (a[:, :, None] * b[None]).sum(1, dtype=a.dtype)
    np.testing.assert_array_equal((torch.from_numpy(a) @ torch.from_numpy(b)).numpy(), expected)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
@pytest.mark.parametrize("size", [(3, 60, 41), (60, 2, 41), (300, 270, 515)], ids=str)
def test_integers_add_multiples(size, dtype):
    m, n, k = size
    a, b = RNG.integers(-9, 9, (m, k)), RNG.integers(-9, 9, (k, n))
    start = RNG.integers(-9, 9, (m, n))
    expected = torch.from_numpy(3 * (a @ b) - 2 * start).to(dtype)
    for left in ("rows", "columns", "apart"):
        for right in ("rows", "columns", "apart"):
            x, y = laid_out(a, left, dtype), laid_out(b, right, dtype)
            result = torch.addmm(torch.from_numpy(start).to(dtype), x, y, beta=-2, alpha=3)
            assert torch.equal(result, expected)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("size", [(1, 90, 41), (90, 1, 41), (120, 140, 260)], ids=str)
def test_complex_layouts(size, dtype):
    m, n, k = size
    a, b, start = (numbers(*s) + 1j * numbers(*s) for s in ((m, k), (k, n), (m, n)))
    expected = (2 - 1j) * (a @ b) + 3j * start
    for left in ("rows", "columns", "apart"):
        for right in ("rows", "columns", "apart"):
            x, y = laid_out(a, left, dtype), laid_out(b, right, dtype)
            added = torch.addmm(torch.from_numpy(start).to(dtype), x, y, beta=3j, alpha=2 - 1j)
            np.testing.assert_allclose(added.numpy(), expected, rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex(dtype):
    a, b = numbers(20, 30) + 1j * numbers(20, 30), numbers(30, 25) + 1j * numbers(30, 25)
    x, y = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((y.t() @ x.t()).numpy(), b.T @ a.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sixteen_bits_round_once(dtype):
    a = torch.from_numpy(numbers(40, 600)).to(dtype)
    b = torch.from_numpy(numbers(600, 50)).to(dtype)
    exact = a.double() @ b.double()
    error = ((a @ b).double() - exact).abs() / exact.abs().clamp(min=0.5)
    assert error.max().item() < (2**-8 if dtype is torch.bfloat16 else 2**-10)


@pytest.mark.parametrize("size", [(3, 4, 5), (70, 80, 90), (6, 1, 9)], ids=str)
def test_beta_of_zero_does_not_read(size):
    m, n, k = size
    a, b = torch.from_numpy(numbers(m, k)), torch.from_numpy(numbers(k, n))
    nans = torch.full((m, n), float("nan"), dtype=torch.float64)
    assert torch.equal(torch.addmm(nans, a, b, beta=0), a @ b)
    assert torch.addmm(nans, a, b).isnan().all()
    assert torch.equal(nans.clone().addmm_(a, b, beta=0), a @ b)


def test_infinity_and_nan_pass_through():
    a = torch.zeros(20, 20)
    a[3, 4] = float("inf")
    product = a @ torch.ones(20, 20)
    assert product[3].isinf().all() and not product[:3].isinf().any()
    a[3, 5] = float("-inf")
    assert (a @ torch.ones(20, 20))[3].isnan().all()


def test_factors_that_share_memory_with_the_result():
    a = torch.from_numpy(numbers(20, 20))
    expected = a + a @ a
    np.testing.assert_allclose(a.clone().addmm_(a, a).numpy(), expected.numpy())
    b = a.clone()
    np.testing.assert_allclose(b.addmm_(b, b).numpy(), expected.numpy())
    c = a.clone()
    torch.mm(c, c, out=c)
    np.testing.assert_allclose(c.numpy(), (a @ a).numpy())


def test_result_into_columns():
    a, b = torch.from_numpy(numbers(30, 20)), torch.from_numpy(numbers(20, 40))
    out = torch.zeros(40, 30, dtype=torch.float64).t()
    address = out.data_ptr()
    torch.mm(a, b, out=out)
    assert out.data_ptr() == address and out.stride() == (1, 30)
    np.testing.assert_allclose(out.numpy(), (a @ b).numpy())


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.complex64], ids=str
)
@pytest.mark.parametrize(
    "size",
    [(300, 270, 200), (64, 512, 784), (128, 768, 3072), (1, 3000, 500), (10, 12, 30000)],
    ids=str,
)
def test_bits_do_not_depend_on_threads(size, dtype):
    m, n, k = size
    a, b = (torch.from_numpy(numbers(*s) * 3).to(dtype) for s in ((m, k), (k, n)))
    assert_same_bits(lambda: (a @ b, torch.bmm(a.expand(3, m, k), b.expand(3, k, n))))


def test_linear_with_its_bias():
    for shape, outputs in (
        ((7, 20), 30),
        ((300, 20), 30),
        ((2, 3, 20), 30),
        ((20,), 30),
        ((18, 60), 150),
    ):
        x, w, b = numbers(*shape), numbers(outputs, shape[-1]), numbers(outputs)
        result = torch.nn.functional.linear(*(torch.from_numpy(v).float() for v in (x, w, b)))
        np.testing.assert_allclose(result.numpy(), x @ w.T + b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("isa", choices.instruction_sets())
def test_instruction_sets_agree(isa):
    code = """
torch.manual_seed(0)
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    for m, n, k in ((9, 9, 9), (70, 80, 90), (1, 90, 50)):
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        error = ((a @ b).double() - a.double() @ b.double()).abs().max().item()
        assert error < {torch.float32: 1e-4, torch.float64: 1e-12, torch.bfloat16: 0.3}[dtype], (dtype, m, n, k, error)
print("fine")
"""
    assert choices.run(code, RUSHLIGHT_CPU=isa)[0] == "fine\n"


def test_a_line_says_how_a_product_ran():
    code = """
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int8, torch.complex64):
    for m, n, k in ((4, 4, 4), (64, 64, 64), (1, 64, 64), (300, 300, 300)):
        torch.ones(m, k, dtype=dtype) @ torch.ones(k, n, dtype=dtype)
        torch.ones(m, k, dtype=dtype) @ torch.ones(n, k, dtype=dtype).t()
"""
    lines = choices.run(code)[1]
    assert len(lines) == 56 and all(
        line.startswith("rushlight: matmul ") and line.endswith(" ran") for line in lines
    )


def test_a_refusal_says_why():
    (line,) = choices.run(
        "torch.ones(64, 64, dtype=torch.float64) @ torch.ones(64, 64, dtype=torch.float64)"
    )[1]
    assert (
        "tiny refused (too large)" in line
        and "oneDNN refused (not a 16-bit float)" in line
        and line.endswith("blocked ran")
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_in_a_wider_dtype(dtype):
    a, b = torch.randn(40, 300).to(dtype), torch.randn(300, 20).to(dtype)
    wide = torch.mm(a, b, torch.float32)
    assert wide.dtype is torch.float32 and torch.equal(wide, a.float() @ b.float())
    assert torch.equal(torch.bmm(a[None], b[None], torch.float32)[0], wide)
    start = torch.randn(40, 20).to(dtype)
    assert torch.allclose(
        torch.addmm(start, a, b, torch.float32, beta=2), wide + 2 * start.float(), atol=1e-4
    )
    with pytest.raises(RuntimeError, match="out_dtype"):
        torch.mm(a, b, torch.float64)
