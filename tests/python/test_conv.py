"""Convolutions and pooling: sizes that reach every kernel, layouts, dtypes, threads."""

import math
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.python import choices
from tests.python.closeness import assert_near, assert_same_bits

RNG = np.random.default_rng(0)
LAST = torch.channels_last

# input, weight, options: many and few channels, wide and narrow rows, one image and many, depthwise, 1x1.
CASES = [
    ((4, 16, 20, 20), (24, 16, 3, 3), {"padding": 1}),
    ((3, 20, 14, 14), (40, 20, 3, 3), {"padding": 1, "stride": 2}),
    ((1, 8, 40, 50), (12, 8, 3, 3), {"padding": 2, "dilation": 2}),
    ((2, 3, 33, 35), (16, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((6, 1, 28, 28), (6, 1, 5, 5), {"padding": 2}),
    ((3, 12, 19, 21), (12, 1, 3, 3), {"padding": 1, "groups": 12}),
    ((3, 12, 19, 21), (24, 1, 3, 3), {"padding": 1, "groups": 12, "stride": 2}),
    # Winograd: tiles of several images in a panel, over the edges, several blocks of rows.
    ((3, 20, 17, 20), (24, 20, 3, 3), {}),
    ((2, 18, 33, 30), (33, 18, 3, 3), {"padding": 2}),
    ((1, 300, 60, 70), (16, 300, 3, 3), {"padding": 1}),
    # Depthwise: several parts of an image, strides and dilations that split the frame, two outputs each.
    ((2, 5, 130, 90), (5, 1, 5, 3), {"padding": 2, "groups": 5}),
    ((1, 33, 10, 10), (33, 1, 5, 5), {"padding": 2, "stride": 2, "groups": 33}),
    ((2, 6, 21, 30), (12, 1, 3, 3), {"padding": 3, "stride": 3, "dilation": 2, "groups": 6}),
    ((1, 7, 5, 5), (7, 1, 7, 7), {"padding": 3, "groups": 7}),
    # One long row, in parts.
    ((1, 1, 1, 20_000), (1, 1, 3, 50), {"padding": 1}),
    ((2, 4, 1, 30_000), (2, 2, 1, 3), {"stride": 3, "dilation": 5, "groups": 2}),
    ((4, 12, 9, 11), (18, 4, 2, 3), {"groups": 3}),
    ((5, 30, 8, 9), (20, 30, 1, 1), {}),
    ((5, 30, 8, 9), (20, 30, 1, 1), {"stride": 2}),
    ((9, 70, 5, 5), (64, 70, 3, 3), {"padding": 1}),
    ((2, 64, 30, 30), (64, 64, 3, 3), {"padding": 1}),
    # One product for the batch: small images, many channels, windows that reach beyond the padding.
    ((3, 40, 5, 6), (130, 40, 3, 3), {"padding": 1}),
    ((5, 20, 8, 8), (128, 20, 3, 2), {"padding": 2, "stride": 2, "dilation": 2}),
    ((3, 70, 9, 11), (144, 70, 1, 1), {"stride": 2}),
    # Windows of one element with strides: the pixels that they meet, of rows and columns that end
    # between two of them.
    ((3, 9, 31, 17), (20, 9, 1, 1), {"stride": 2}),
    ((1, 40, 13, 16), (21, 40, 1, 1), {"stride": 3}),
    # The weight's gradient by blocks of channels, the last one smaller.
    ((4, 20, 17, 18), (200, 20, 3, 3), {"padding": 1}),
    # Many small images side by side, the last ones fewer than a vector has lanes.
    ((64, 6, 14, 14), (16, 6, 5, 5), {}),
    ((46, 3, 9, 10), (8, 3, 3, 4), {"padding": 2, "stride": 2, "dilation": 2}),
    ((32, 6, 7, 8), (9, 2, 2, 3), {"padding": 4, "groups": 3}),
    ((30, 5, 6, 1), (7, 5, 1, 7), {"padding": 3}),
    # One window.
    ((6, 40, 4, 4), (9, 40, 4, 4), {}),
    ((3, 7, 2, 5), (2, 7, 2, 5), {"stride": 2}),
]
TRANSPOSED = [
    ((3, 16, 9, 10), (16, 12, 4, 4), {"stride": 2, "padding": 1}),
    ((2, 6, 7, 7), (6, 5, 3, 3), {"stride": 3, "padding": 1, "output_padding": 2}),
    ((2, 6, 7, 7), (6, 5, 3, 3), {"dilation": 2, "groups": 2, "stride": 2}),
    ((4, 32, 16, 16), (32, 32, 3, 3), {"padding": 1}),
    ((2, 33, 23, 20), (33, 17, 3, 3), {"padding": 2}),
    ((2, 33, 23, 20), (33, 17, 3, 3), {}),
    ((1, 3, 5, 5), (3, 4, 2, 2), {"stride": 5}),
    # More output padding than the stride: the last elements belong to no window.
    ((2, 6, 7, 6), (6, 5, 3, 3), {"dilation": 3, "stride": 2, "output_padding": 2}),
    ((4, 130, 4, 4), (130, 20, 4, 4), {"stride": 2, "padding": 1}),
    ((6, 50, 1, 1), (50, 20, 4, 3), {}),
    ((40, 7, 5, 6), (7, 5, 4, 3), {"stride": 3, "padding": 1, "output_padding": 2}),
    ((2, 6, 70, 80), (6, 2, 4, 3), {"groups": 6, "stride": 2, "padding": 1, "output_padding": 1}),
    ((1, 9, 12, 7), (9, 1, 2, 3), {"groups": 9, "stride": 3, "dilation": 2}),
    ((2, 20, 5, 6), (20, 9, 1, 1), {"stride": 3, "output_padding": 1}),
    ((46, 4, 5, 3), (4, 6, 2, 4), {"groups": 2, "dilation": 2, "padding": 1, "stride": 3}),
]


def numbers(*shape):
    return RNG.uniform(-1, 1, shape)


def correlate(x, w, stride=1, padding=0, dilation=1, groups=1):
    """The definition, in float64."""
    n, _, _, _ = x.shape
    outputs, channels, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    h = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    v = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    result = np.zeros((n, outputs, h, v))
    per = outputs // groups
    for g in range(groups):
        inputs = x[:, g * channels : (g + 1) * channels]
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + (h - 1) * stride + 1, stride)
                columns = slice(j * dilation, j * dilation + (v - 1) * stride + 1, stride)
                taps = w[g * per : (g + 1) * per, :, i, j]
                result[:, g * per : (g + 1) * per] += np.einsum(
                    "nchw,oc->nohw", inputs[:, :, rows, columns], taps
                )
    return result


def close(actual, expected, tolerance):
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(
        actual.detach().double().numpy(), expected, rtol=0, atol=tolerance * scale
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv2d(case, dtype):
    shape, weight, options = case
    x, w, b = (torch.from_numpy(numbers(*s)).to(dtype) for s in (shape, weight, weight[:1]))
    expected = (
        correlate(x.double().numpy(), w.double().numpy(), **options)
        + b.double().numpy()[:, None, None]
    )
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 1e-2}[dtype]
    result = F.conv2d(x, w, b, **options)
    close(result, expected, tolerance)
    for memory_format in (LAST, torch.contiguous_format):
        other = F.conv2d(
            x.contiguous(memory_format=LAST),
            w.contiguous(memory_format=memory_format),
            b,
            **options,
        )
        assert other.is_contiguous(memory_format=LAST) or shape[1] == 1  # which is both
        close(other, expected, tolerance)


@pytest.mark.parametrize(
    "case",
    [(F.conv2d, *c) for c in CASES] + [(F.conv_transpose2d, *c) for c in TRANSPOSED],
    ids=str,
)
def test_gradients_are_adjoint(case):
    """<conv(x, w), g> is linear in x and in w: the gradients must give it back."""
    function, shape, weight, options = case
    x = torch.from_numpy(numbers(*shape)).float().requires_grad_()
    w = torch.from_numpy(numbers(*weight)).float().requires_grad_()
    y = function(x, w, **options)
    g = torch.from_numpy(numbers(*y.shape)).float()
    dx, dw = torch.autograd.grad(y, (x, w), g)
    product = (y.double() * g.double()).sum().item()
    size = (y.double() * g.double()).abs().sum().item()
    assert abs((dx.double() * x.double()).sum().item() - product) < 1e-5 * size
    assert abs((dw.double() * w.double()).sum().item() - product) < 1e-5 * size
    # Against float64, element by element.
    x64, w64 = (t.detach().double().requires_grad_() for t in (x, w))
    ex, ew = torch.autograd.grad(function(x64, w64, **options), (x64, w64), g.double())
    close(dx, ex.numpy(), 1e-5)
    close(dw, ew.numpy(), 1e-5)


@pytest.mark.parametrize(("channels", "size"), [(64, 16), (256, 14), (512, 7)])
def test_roundings_of_sums_over_many_channels(channels, size):
    """Winograd's tiles cost some of float32's digits, which more channels must not add to."""
    torch.manual_seed(0)
    x = torch.rand(2, channels, size, size, requires_grad=True)
    w = (torch.randn(channels, channels, 3, 3) / channels).requires_grad_()
    g = torch.randn(2, channels, size, size)
    y = F.conv2d(x, w, padding=1)
    found = (y, *torch.autograd.grad(y, (x, w), g))
    a, b = (t.detach().double().requires_grad_() for t in (x, w))
    z = F.conv2d(a, b, padding=1)
    for ours, exact in zip(found, (z, *torch.autograd.grad(z, (a, b), g.double())), strict=True):
        distance = (ours.double() - exact).norm() / exact.norm()
        assert distance < (1.2e-6 if channels > 256 else 2e-6)


def test_gradients_of_channels_last_images():
    x = torch.randn(4, 16, 20, 20)
    w = torch.randn(24, 16, 3, 3)
    g = torch.randn(4, 24, 20, 20)
    results = []
    for memory_format in (torch.contiguous_format, LAST):
        a = x.clone().contiguous(memory_format=memory_format).requires_grad_()
        b = w.clone().contiguous(memory_format=memory_format).requires_grad_()
        results.append(
            torch.autograd.grad(
                F.conv2d(a, b, padding=1), (a, b), g.contiguous(memory_format=memory_format)
            )
        )
    for one, other in zip(*results, strict=True):
        assert_near(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_is_the_adjoint(case):
    shape, weight, options = case
    x, w = torch.from_numpy(numbers(*shape)), torch.from_numpy(numbers(*weight))
    y = F.conv_transpose2d(x, w, **options)
    z = torch.from_numpy(numbers(*y.shape))
    options = {k: v for k, v in options.items() if k != "output_padding"}
    back = F.conv2d(z, w, **options)[:, :, : shape[2], : shape[3]]
    assert abs((y * z).sum().item() - (x * back).sum().item()) < 1e-9 * max(
        1.0, (y * z).abs().sum().item()
    )


@pytest.mark.parametrize("case", [*CASES[:2], CASES[4], CASES[5], *CASES[-11:]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_bits_do_not_depend_on_threads(case, dtype):
    shape, weight, options = case
    x = torch.from_numpy(numbers(*shape)).to(dtype).requires_grad_()
    w = torch.from_numpy(numbers(*weight)).to(dtype).requires_grad_()

    def run():
        y = F.conv2d(x, w, **options)
        return y, *torch.autograd.grad(y, (x, w), torch.ones_like(y))

    assert_same_bits(run)


def test_transposed_bits_do_not_depend_on_threads():
    x, w = torch.randn(5, 32, 16, 16), torch.randn(32, 16, 4, 4)
    assert_same_bits(lambda: F.conv_transpose2d(x, w, stride=2, padding=1))


def test_bits_do_not_depend_on_the_batch():
    """An image's result is the same alone and in company, where the same way is taken."""
    x, w = torch.randn(6, 64, 30, 30), torch.randn(64, 64, 3, 3)
    whole = F.conv2d(x, w, padding=1)
    part = F.conv2d(x[2:5], w, padding=1)
    assert torch.equal(whole[2:5], part)


@pytest.mark.parametrize(
    "function", [F.conv1d, F.conv2d, F.conv_transpose2d], ids=lambda f: f.__name__
)
def test_second_derivatives_of_complex_convolutions(function):
    """Against differences of the first derivative along a random direction."""
    dims = 1 if function is F.conv1d else 2
    shapes = [(2, 3, *(5,) * dims), (3, 3, *(2,) * dims)]
    x, w = (torch.from_numpy(numbers(*s) + 1j * numbers(*s)).requires_grad_() for s in shapes)
    u, v = (torch.from_numpy(numbers(*s) + 1j * numbers(*s)) for s in shapes)

    def gradients(x, w):
        loss = (function(x, w, stride=2).abs() ** 2).sum()
        return torch.autograd.grad(loss, (x, w), create_graph=True)

    def along(x, w):
        dx, dw = gradients(x, w)
        return ((dx * u.conj()).real).sum() + ((dw * v.conj()).real).sum()

    hx, hw = torch.autograd.grad(along(x, w), (x, w))
    h = 1e-6
    with_more = gradients(*(t.detach().add(h * d).requires_grad_() for t, d in ((x, u), (w, v))))
    with_less = gradients(*(t.detach().sub(h * d).requires_grad_() for t, d in ((x, u), (w, v))))
    for second, more, less in zip((hx, hw), with_more, with_less, strict=True):
        close_complex = ((more - less) / (2 * h) - second).abs().max().item()
        assert close_complex < 1e-5 * max(1.0, second.abs().max().item())


@pytest.mark.parametrize("size", [6, 40])
def test_weight_gradients_where_an_element_is_infinite(size):
    """Only the taps that it lies under, of its channel, are infinite."""
    x = torch.randn(2, 3, size, size)
    x[0, 1, 0, size - 1] = float("inf")
    w = torch.randn(3, 1, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, groups=3)
    (dw,) = torch.autograd.grad(y, w, torch.ones_like(y))
    assert dw.isinf().nonzero().tolist() == [[1, 0, 0, 2]] and not dw.isnan().any()


@pytest.mark.parametrize("channels", [8, 32])
def test_infinite_elements_stay_where_they_are(channels):
    x = torch.zeros(2, channels, 20, 40)
    x[0, 0, 10, 10] = float("inf")
    y = F.conv2d(x, torch.ones(24, channels, 3, 3), padding=1)
    assert y.isinf().sum().item() == 24 * 9 and not y.isnan().any()


def test_each_way_runs():
    """The shapes of this file reach every candidate that the list names."""
    code = """
def run(x, w, **options):
    x, w = torch.ones(*x, requires_grad=True), torch.ones(*w, requires_grad=True)
    F.conv2d(x, w, **options).sum().backward()
run((2, 8, 9, 9), (8, 8, 1, 1))
run((2, 8, 4, 4), (8, 8, 4, 4))
run((2, 8, 19, 19), (8, 8, 1, 1), stride=2)
run((2, 8, 9, 9), (8, 1, 3, 3), groups=8)
run((2, 32, 20, 20), (32, 32, 3, 3))
run((2, 200, 6, 6), (200, 200, 3, 3), stride=2)
run((64, 3, 9, 9), (8, 3, 3, 3), stride=2)
run((2, 128, 30, 30), (128, 128, 5, 5))
run((1, 3, 40, 40), (8, 3, 5, 5))
"""
    lines = [line for line in choices.run(code)[1] if "convolution" in line]
    ran = {
        line[: line.rindex(" ran")].rpartition("),")[2].rpartition(":")[2].strip() for line in lines
    }
    expected = {"matrix product", "one window", "picked pixels", "depthwise", "Winograd", "columns"}
    expected |= {"images side by side", "oneDNN", "windows"}
    assert ran == expected


@pytest.mark.parametrize("way", ["", "columns", "images side by side", "oneDNN", "windows"])
@pytest.mark.parametrize("length", [2, 3, 5])
def test_lanes_without_pixels_multiply_no_leftovers(way, length):
    """Processors multiply denormal numbers slowly, and memory that was freed may hold such."""
    x, w = torch.randn(8, 64, length), torch.randn(64, 64, 3)

    def took(left):
        least = math.inf
        for _ in range(20):
            for n in (100, 1_000, 10_000, 100_000, 1_000_000):
                torch.full((n,), left)
            start = time.perf_counter()
            F.conv1d(x, w, stride=1, padding=1)
            least = min(least, time.perf_counter() - start)
        return least

    torch._force_convolution(way)
    try:
        assert took(1e-40) < 5 * took(1.0)
    except NotImplementedError:
        assert way in ("oneDNN", "images side by side")  # which do not take this shape
    finally:
        torch._force_convolution("")


@pytest.mark.parametrize(
    "way",
    [
        "one window",
        "picked pixels",
        "Winograd",
        "columns",
        "images side by side",
        "oneDNN",
        "depthwise",
        "windows",
    ],
)
def test_every_way_is_right_where_it_is_not_the_fastest(way):
    """All cases that a way can take, with its kernels forced on them."""
    taken = 0
    for shape, weight, options in CASES:
        x, w = (torch.from_numpy(numbers(*s)).float().requires_grad_() for s in (shape, weight))
        y = F.conv2d(x, w, **options)
        g = torch.from_numpy(numbers(*y.shape)).float()
        expected = torch.autograd.grad(y, (x, w), g, retain_graph=True)
        torch._force_convolution(way)
        try:
            for run, wanted in (
                (lambda: F.conv2d(x, w, **options), y),  # noqa: B023
                (lambda: torch.autograd.grad(y, x, g, retain_graph=True)[0], expected[0]),  # noqa: B023
                (lambda: torch.autograd.grad(y, w, g, retain_graph=True)[0], expected[1]),  # noqa: B023
            ):
                try:
                    found = run()
                except NotImplementedError:
                    continue
                taken += 1
                close(found, wanted.detach().double().numpy(), 1e-5)
        finally:
            torch._force_convolution("")
    assert taken >= 3
    with pytest.raises(RuntimeError, match="no way to convolve"):
        torch._force_convolution("by hand")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_integers(dtype):
    x, w = RNG.integers(-9, 9, (2, 3, 7, 8)), RNG.integers(-9, 9, (4, 3, 3, 3))
    y = F.conv2d(torch.from_numpy(x).to(dtype), torch.from_numpy(w).to(dtype), padding=1)
    np.testing.assert_array_equal(y.numpy(), correlate(x, w, padding=1))


@pytest.mark.parametrize("isa", choices.instruction_sets())
def test_instruction_sets_agree(isa):
    code = """
torch.manual_seed(0)
for n, c, o, s, g in ((2, 16, 24, 1, 1), (3, 6, 6, 2, 6), (1, 3, 9, 1, 1), (31, 3, 8, 1, 1)):
    x, w = torch.randn(n, c, 20, 22, requires_grad=True), torch.randn(o, c // g, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, None, s, 1, 1, g)
    grads = torch.autograd.grad(y, (x, w), torch.ones_like(y))
    a, b = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    z = F.conv2d(a, b, None, s, 1, 1, g)
    for p, q in zip((y, *grads), (z, *torch.autograd.grad(z, (a, b), torch.ones_like(z)))):
        assert (p.double() - q).abs().max().item() < 1e-3
print("fine")
"""
    assert choices.run(code, RUSHLIGHT_CPU=isa)[0] == "fine\n"


def test_convolutions_do_not_run_the_reference():
    code = """
for n, c, o, g in ((4, 16, 24, 1), (1, 16, 24, 1), (4, 8, 8, 8), (2, 1, 3, 1)):
    x, w = torch.ones(n, c, 20, 20, requires_grad=True), torch.ones(o, c // g, 3, 3, requires_grad=True)
    F.conv2d(x, w, None, 1, 1, 1, g).sum().backward()
"""
    lines = [line for line in choices.run(code)[1] if "convolution" in line]
    assert len(lines) == 12 and not any("reference ran" in line for line in lines)


# ---- pooling ----


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 3, 1, 1, 2, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
        lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    ],
    ids=["max", "max3", "dilated", "avg", "avg3", "adaptive1", "adaptive", "adaptive_max"],
)
def test_pooling_of_channels_last_images(function, dtype):
    x = torch.randn(3, 20, 13, 14).to(dtype)
    results = []
    for memory_format in (torch.contiguous_format, LAST):
        a = x.clone().contiguous(memory_format=memory_format).requires_grad_()
        y = function(a)
        assert y.is_contiguous(memory_format=memory_format) or y.shape[2:] == (1, 1)
        (grad,) = torch.autograd.grad(y, a, torch.ones_like(y))
        results.append((y, grad))
    for one, other in zip(*results, strict=True):
        assert_near(one, other)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32], ids=str
)
@pytest.mark.parametrize("width", [5, 16, 33, 70])
@pytest.mark.parametrize(
    "options", [(2, 2, 0, 1), (3, 1, 1, 1), (3, 3, 0, 2), (2, 4, 1, 3), (4, 5, 2, 1)]
)
def test_max_pool_against_its_definition(options, width, dtype):
    kernel, stride, padding, dilation = options
    x = torch.from_numpy(RNG.permutation(2 * 3 * 11 * width).reshape(2, 3, 11, width))
    x = (x % 200 - 100).to(dtype)
    y, at = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    plain = x.double().numpy()
    padded = np.pad(
        plain, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=-np.inf
    )
    taps = [
        padded[:, :, i * dilation :, j * dilation :][
            :, :, : (y.shape[2] - 1) * stride + 1 : stride, : (y.shape[3] - 1) * stride + 1 : stride
        ]
        for i in range(kernel)
        for j in range(kernel)
    ]
    np.testing.assert_array_equal(y.double().numpy(), np.max(taps, axis=0))
    found = np.take_along_axis(plain.reshape(2, 3, -1), at.numpy().reshape(2, 3, -1), axis=2)
    np.testing.assert_array_equal(found.reshape(y.shape), y.double().numpy())


def test_max_pool_of_special_values():
    x = torch.full((1, 1, 4, 4), float("-inf"))
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert y.isinf().all() and at.flatten().tolist() == [0, 2, 8, 10]
    x[0, 0, 1, 1] = float("nan")
    x[0, 0, 0, 0] = 5.0
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert y[0, 0, 0, 0].isnan() and at[0, 0, 0, 0].item() == 5


def test_pooling_bits_do_not_depend_on_threads():
    x = torch.randn(5, 30, 33, 35, requires_grad=True)
    for function in (
        lambda: F.max_pool2d(x, 3, 2, 1),
        lambda: F.avg_pool2d(x, 3, 2, 1),
        lambda: F.adaptive_avg_pool2d(x, 5),
    ):

        def run(function=function):
            y = function()
            return y, *torch.autograd.grad(y, x, torch.ones_like(y))

        assert_same_bits(run)


@pytest.mark.parametrize("dilation", [2**63 - 1, 2**62, 2**41])
def test_padding_by_name_with_a_dilation_too_large(dilation):
    x, w = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 3)
    with pytest.raises(RuntimeError, match="dilation .* too large"):
        torch.nn.functional.conv2d(x, w, padding="same", dilation=dilation)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64]
)
def test_no_channels_give_the_bias(dtype):
    bias = torch.arange(1, 4).to(dtype)
    y = torch.nn.functional.conv2d(
        torch.ones(2, 0, 5, 4, dtype=dtype), torch.ones(3, 0, 2, 2, dtype=dtype), bias
    )
    assert y.shape == (2, 3, 4, 3)
    assert y.eq(bias.reshape(3, 1, 1)).all()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_images_without_pixels(dims):
    shape = (2, 3, 0, *(4,) * (dims - 1))
    x = torch.ones(shape, requires_grad=True)
    weight = torch.ones(4, 3, *(2,) * dims, requires_grad=True)
    bias = torch.ones(4, requires_grad=True)
    out = getattr(torch.nn.functional, f"conv{dims}d")(x, weight, bias, padding=1)
    grads = torch.autograd.grad(out.sum(), (x, weight, bias), create_graph=True)
    assert grads[0].shape == x.shape
    assert not grads[1].any()
    assert grads[2].tolist() == [out[:, 0].numel()] * 4


def test_gradients_of_no_channels():
    x = torch.ones(2, 0, 5, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.ones(3, 0, 2, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.ones(3, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.conv2d(x, weight, bias).sum().backward()
    assert x.grad.shape == x.shape and weight.grad.shape == weight.shape
    assert bias.grad.tolist() == [24.0, 24.0, 24.0]


@pytest.mark.parametrize("dilation", [2**20, 2**31, 2**33])
def test_taps_far_outside_of_the_image(dilation):
    """Padding by name lets the middle of three taps see the image, whatever the dilation."""
    x = torch.randn(2, 2, 5, 6, requires_grad=True)
    weight = torch.randn(3, 2, 3, 3, requires_grad=True)
    y = torch.nn.functional.conv2d(x, weight, padding="same", dilation=dilation)
    middle = torch.nn.functional.conv2d(x, weight[:, :, 1:2, 1:2])
    assert torch.allclose(y, middle, atol=1e-6)
    inner = torch.autograd.grad(y.sum(), (x, weight))
    outer = torch.autograd.grad(middle.sum(), (x, weight))
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(inner, outer, strict=True))


def test_an_old_name_of_transposed_convolutions():
    from rushlight.nn.modules.conv import _ConvTransposeMixin

    class Mine(_ConvTransposeMixin):
        _dimensions = 2

        def _convolve(self, *args):
            return F.conv_transpose2d(*args)

    with pytest.warns(FutureWarning, match="deprecated internal class"):
        mine = Mine(3, 4, 3, stride=2)
    x = torch.randn(2, 3, 5, 5)
    theirs = torch.nn.ConvTranspose2d(3, 4, 3, stride=2)
    theirs.load_state_dict(mine.state_dict())
    assert torch.equal(mine(x), theirs(x))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.int64]
)
@pytest.mark.parametrize("images, pixels", [(1, 1), (1, 7), (3, 5), (2, 40)])
@pytest.mark.parametrize("channels", [(3, 5), (64, 20), (300, 40)])
def test_biases_of_pixels(dtype, images, pixels, channels):
    """A bias is added to all pixels of a channel, however the product is computed."""
    before, after = channels
    torch.manual_seed(0)
    make = (
        torch.randn
        if dtype.is_floating_point or dtype.is_complex
        else lambda *s, dtype: torch.randint(-9, 9, s)
    )
    x = make(images, before, pixels, pixels, dtype=dtype)
    w, b = make(after, before, 1, 1, dtype=dtype), make(after, dtype=dtype)
    plain = torch.nn.functional.conv2d(x, w)
    found = torch.nn.functional.conv2d(x, w, b)
    tolerance = {torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.complex64: 1e-5}.get(dtype, 1e-9)
    assert torch.allclose(found, plain + b[:, None, None], rtol=tolerance, atol=tolerance * before)
    last = x.to(memory_format=torch.channels_last)
    assert torch.allclose(
        torch.nn.functional.conv2d(last, w, b), found, rtol=tolerance, atol=tolerance * before
    )
