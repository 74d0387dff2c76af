"""Values and gradients where numbers are infinite, zero or out of a square's reach: what the mathematics says, no NaN."""

import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F

INF = math.inf
DTYPES = (torch.float64, torch.float32)


def gradients(function, *values, dtype=torch.float64):
    """The values of a function of vectors, the gradients of their sum, and the gradients of that."""
    inputs = [torch.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    result = function(*inputs)
    first = torch.autograd.grad(result.sum(), inputs, create_graph=True)
    sum_of_first = sum(g.sum() for g in first)
    second = [torch.zeros_like(t) for t in inputs]
    if sum_of_first.requires_grad:
        found = torch.autograd.grad(sum_of_first, inputs, allow_unused=True)
        second = [g if g is not None else t for g, t in zip(found, second, strict=True)]
    return result.tolist(), [g.tolist() for g in first], [g.tolist() for g in second]


# Values at -inf, inf, -1000, 1000, and slopes.
ACTIVATIONS = {
    "gelu": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "gelu_tanh": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "silu": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "mish": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "hardswish": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "relu": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "softplus": ([0, INF, 0, 1000], [0, 1, 0, 1]),
    "logsigmoid": ([-INF, 0, -1000, 0], [1, 0, 1, 0]),
    "celu": ([-1, INF, -1, 1000], [0, 1, 0, 1]),
    "elu": ([-1, INF, -1, 1000], [0, 1, 0, 1]),
    "tanhshrink": ([-INF, INF, -999, 999], [1, 1, 1, 1]),
    "softsign": ([-1, 1, -1000 / 1001, 1000 / 1001], [0, 0, 1001**-2, 1001**-2]),
    "sigmoid": ([0, 1, 0, 1], [0, 0, 0, 0]),
    "hardsigmoid": ([0, 1, 0, 1], [0, 0, 0, 0]),
    "tanh": ([-1, 1, -1, 1], [0, 0, 0, 0]),
    "leaky_relu": ([-INF, INF, -10, 1000], [0.01, 1, 0.01, 1]),
}


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_at_infinity(name, dtype):
    plain = name.removesuffix("_tanh")
    options = {"approximate": "tanh"} if plain != name else {}
    values, slopes = ACTIVATIONS[name]
    call = lambda x: getattr(F, plain)(x, **options)
    found, (first,), (second,) = gradients(call, [-INF, INF, -1e3, 1e3], dtype=dtype)
    rough = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-6
    assert found == pytest.approx(values, rel=rough)
    assert first == pytest.approx(slopes, rel=rough, abs=1e-7)
    assert second == pytest.approx([0, 0, 0, 0], abs=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_numbers_whose_square_overflows(name):
    plain = name.removesuffix("_tanh")
    options = {"approximate": "tanh"} if plain != name else {}
    for dtype, size in ((torch.float32, 3e19), (torch.float64, 3e160)):
        call = lambda x: getattr(F, plain)(x, **options)
        values, first, second = gradients(call, [-size, size], dtype=dtype)
        assert all(map(math.isfinite, values + first[0] + second[0])), (values, first, second)
        assert call(torch.tensor(math.nan, dtype=dtype)).isnan()


def test_activations_take_nan_for_nan():
    for name in ACTIVATIONS:
        x = torch.tensor([math.nan] * 20, requires_grad=True)
        y = getattr(F, name.removesuffix("_tanh"))(x)
        assert y.isnan().all(), name


# ---- logarithms of sums ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums_of_two(name, dtype):
    a = [-INF, INF, -INF, INF, 0.0, 0.0, INF, 0.0]
    b = [-INF, INF, INF, -INF, -INF, INF, 0.0, 0.0]
    values, (of_a, of_b), second = gradients(getattr(torch, name), a, b, dtype=dtype)
    log2 = math.log(2) if name == "logaddexp" else 1.0
    assert values == pytest.approx([-INF, INF, INF, INF, 0, INF, INF, log2])
    assert of_a == pytest.approx([0, 0.5, 0, 1, 1, 0, 1, 0.5])
    assert of_b == pytest.approx([0, 0.5, 1, 0, 0, 1, 0, 0.5])
    assert not any(math.isnan(v) for each in second for v in each)


SUMS = {  # the elements, and their shares of the gradient
    (-INF, -INF): (0, 0),
    (INF, 0.0): (1, 0),
    (INF, -INF, 3.0): (1, 0, 0),
    (-INF, 0.0, 0.0): (0, 0.5, 0.5),
}


@pytest.mark.parametrize("elements", SUMS)
def test_logarithms_of_sums(elements):
    _, (first,), (second,) = gradients(lambda x: x.logsumexp(0), list(elements))
    assert first == pytest.approx(SUMS[elements])
    assert not any(map(math.isnan, second))
    last = lambda x: x.logcumsumexp(0)[-1]
    assert gradients(last, list(elements))[1][0] == pytest.approx(SUMS[elements])


def test_cumulative_logarithms_of_sums_begin_with_nothing():
    _, (first,), _ = gradients(lambda x: x.logcumsumexp(0), [-INF, -INF, 0.0, 0.0])
    assert first == pytest.approx([0, 0, 1.5, 0.5])


# ---- losses ----


def test_divergence_from_targets_of_zero():
    inputs, targets = [-INF, -INF, 0.0, -1.0], [0.0, 1.0, 0.0, 0.5]
    call = lambda x, t: F.kl_div(x, t, reduction="none")
    values, (of_input, _), _ = gradients(call, inputs, targets)
    assert values == pytest.approx([0, INF, 0, 0.5 * math.log(0.5) + 0.5])
    assert of_input == pytest.approx([0, -1, 0, -0.5])
    logs = [math.log(t) if t else -INF for t in targets]
    call = lambda x, t: F.kl_div(x, t, reduction="none", log_target=True)
    values, (of_input, of_target), _ = gradients(call, inputs, logs)
    assert values == pytest.approx([0, INF, 0, 0.5 * math.log(0.5) + 0.5])
    assert of_input == pytest.approx([0, -1, 0, -0.5])
    assert of_target[0] == of_target[2] == 0
    whole = torch.tensor([0.0, 1.0])
    assert F.kl_div(torch.tensor([-INF, 0.0]), whole, reduction="sum") == 0
    assert F.poisson_nll_loss(torch.tensor(-INF), torch.tensor(0.0)) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_margins_of_any_size(dtype):
    target = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, 1.0], dtype=dtype)
    call = lambda x: F.soft_margin_loss(x, target, reduction="none")
    values, (first,), _ = gradients(call, [-1e3, 1e3, 1e3, -1e3, -INF, INF], dtype=dtype)
    assert values == [1000, 1000, 0, 0, INF, 0]
    assert first == pytest.approx([-1, 1, 0, 0, -1, 0])
    assert F.soft_margin_loss(torch.tensor([2, -1]), torch.tensor([1, -1])) > 0  # integers


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_infinite_logits(dtype):
    target = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.5], dtype=dtype)
    call = lambda x: F.binary_cross_entropy_with_logits(x, target, reduction="none")
    values, (first,), _ = gradients(call, [-INF, -INF, INF, INF, 3.0], dtype=dtype)
    assert values == pytest.approx([INF, 0, 0, INF, 1.5 + math.log1p(math.exp(-3))])
    assert first[:4] == pytest.approx([-1, 0, 0, 1])
    sum_of_labels = F.multilabel_soft_margin_loss(
        torch.tensor([[INF, -INF]]), torch.tensor([[1.0, 0.0]])
    )
    assert sum_of_labels == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weight", [0.0, 1.0, 3.0])
def test_weighed_cross_entropy_of_infinite_logits(weight, dtype):
    target = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.25], dtype=dtype)
    pos_weight = torch.tensor(weight, dtype=dtype)
    call = lambda x: F.binary_cross_entropy_with_logits(
        x, target, reduction="none", pos_weight=pos_weight
    )
    logits = [-INF, -INF, INF, INF, -1e4, -20.0, 1.0]
    values, (first,), (second,) = gradients(call, logits, dtype=dtype)
    yes, no = math.log1p(math.exp(-1)), math.log1p(math.exp(-1)) + 1
    some = weight * 0.25 * yes + 0.75 * no
    worst = INF if weight else 0
    small = math.log1p(math.exp(-20))
    assert values == pytest.approx([worst, 0, 0, INF, weight * 1e4, small, some], rel=1e-6)
    chance = 1 / (1 + math.exp(-1))
    slope = 0.75 * chance - weight * 0.25 * (1 - chance)
    slopes = [-weight, 0, 0, 1, -weight, 1 / (1 + math.exp(20)), slope]
    assert first == pytest.approx(slopes, rel=1e-6)
    assert not any(map(math.isnan, second))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_with_chances_of_what_is_impossible(dtype):
    target = torch.tensor([[0.0, 0.25, 0.75], [0.5, 0.5, 0.0]], dtype=dtype)
    call = lambda x: F.cross_entropy(x.reshape(2, 3), target, reduction="none")
    values, (first,), _ = gradients(call, [-INF, 0.0, 0.0, -INF, 0.0, 0.0], dtype=dtype)
    assert values == [pytest.approx(math.log(2)), INF]
    assert first[:3] == pytest.approx([0, 0.25, -0.25])


# ---- angles and lengths ----


@pytest.mark.parametrize("size", [1e-200, 1e-300, 1.0, 1e200, 1e300])
def test_the_slope_of_an_angle(size):
    _, (of_y, of_x), _ = gradients(torch.atan2, [3 * size], [4 * size])
    assert of_y == pytest.approx([4 / 25 / size]) and of_x == pytest.approx([-3 / 25 / size])
    z = torch.tensor(complex(4 * size, 3 * size), dtype=torch.complex128, requires_grad=True)
    z.angle().backward()
    assert z.grad.imag.item() == pytest.approx(4 / 25 / size)


@pytest.mark.parametrize("power", [1, 2, 3, 5])
def test_powers_have_derivatives_of_all_orders(power):
    x = torch.tensor([0.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    y, factor = x**power, 1
    for order in range(1, power + 2):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        factor *= power - order + 1
        left = power - order
        expected = factor * x.detach() ** left if left >= 0 else torch.zeros_like(x)
        torch.testing.assert_close(y.detach(), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", ["asinh", "sinc", "special.i0e", "special.i1e"])
def test_slopes_of_large_numbers(name, dtype):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    x = torch.tensor([0.1, 1, 3, 20, 88, 300, 700, 3000, 6e4]).to(dtype)
    x = torch.cat([-x, x]).requires_grad_()
    wide = x.detach().double().requires_grad_()
    for t in (x, wide):
        function(t).sum().backward()
    shown = wide.grad.abs() > torch.finfo(dtype).smallest_normal * 4
    rtol = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 3e-5}[dtype]
    rtol = rtol if name != "sinc" else max(rtol, 2e-2)  # of angles that float32 rounds
    torch.testing.assert_close(x.grad.double()[shown], wide.grad[shown], rtol=rtol, atol=0)


def test_the_slope_of_an_angle_without_a_length():
    y, x = [0.0, -0.0, 0.0, INF, 1.0], [0.0, 0.0, -0.0, 1.0, INF]
    _, first, second = gradients(torch.atan2, y, x)
    assert first == [[0] * 5, [0] * 5]
    assert [v for each in second for v in each[:3]] == [0] * 6
    _, first, second = gradients(torch.hypot, [0.0, 3e-200], [0.0, 4e-200])
    assert first == [pytest.approx([0, 0.6]), pytest.approx([0, 0.8])]
    assert second[0][0] == second[1][0] == 0


def test_the_slope_of_a_half_precision_angle():
    _, (of_y, of_x), _ = gradients(torch.atan2, [300.0], [400.0], dtype=torch.float16)
    assert of_y == pytest.approx([4 / 2500], rel=1e-2) and of_x == pytest.approx(
        [-3 / 2500], rel=1e-2
    )


# ---- what no key is seen by ----


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["padding", "boolean", "added", "heads"])
def test_rows_that_attend_to_nothing_are_zero(kind, training):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).train(training)
    x = torch.randn(2, 3, 4, requires_grad=True)
    hidden = torch.tensor([[True] * 3, [False, True, False], [False] * 3])
    masks = {
        "padding": {"key_padding_mask": torch.tensor([[True] * 3, [False] * 3])},
        "boolean": {"attn_mask": hidden},
        "added": {"attn_mask": torch.zeros(3, 3).masked_fill(hidden, -INF)},
        "heads": {"attn_mask": hidden.repeat(4, 1, 1)},
    }[kind]
    results = {}
    for needed in (True, False):
        y, weights = layer(x, x, x, need_weights=needed, **masks)
        grads = torch.autograd.grad(y.square().sum(), [x, layer.in_proj_weight])
        results[needed] = (y, *grads)
        assert all(not t.isnan().any() for t in results[needed])
        if needed:
            alone = weights[0] if kind == "padding" else weights[:, 0]
            assert alone.eq(0).all()
            seen = weights[1] if kind == "padding" else weights[:, 1:]
            assert torch.allclose(seen.sum(-1), torch.ones(()))
    for ours, fused in zip(results[True], results[False], strict=True):
        assert torch.allclose(ours, fused, atol=1e-6)


# ---- products with zeros, draws, windows ----


def test_tangents_of_the_gradient_of_a_product_with_two_zeros():
    """Differences of gradients are the columns of the Hessian, whichever way it is computed."""
    index = torch.tensor([0, 0, 0, 0])
    f = lambda x: x.new_ones(1).scatter_reduce(0, index, x, "prod").sum()
    x = torch.tensor([0.0, 2.0, 0.0, 3.0], dtype=torch.float64)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected[0, 2] = expected[2, 0] = 6.0
    for hessian in (
        torch.func.jacfwd(torch.func.grad(f)),
        torch.func.jacrev(torch.func.grad(f)),
        torch.func.jacfwd(torch.func.jacfwd(f)),
    ):
        assert torch.equal(hessian(x), expected)


def test_draws_have_a_gradient_of_zeros():
    p = torch.tensor([0.5, 0.2], requires_grad=True)
    for draw in (torch.bernoulli(p), torch.bernoulli(p, 0.5), p.bernoulli()):
        assert draw.requires_grad and torch.autograd.grad(draw.sum(), p)[0].tolist() == [0, 0]
    assert not torch.bernoulli(p.detach()).requires_grad
    with torch.no_grad():
        assert not torch.bernoulli(p).requires_grad


def test_the_gradient_of_a_far_window_is_no_larger_than_what_is_there():
    x = torch.rand(3, requires_grad=True)
    for size, stride in (((0,), (1,)), ((2, 0), (1, 1)), ((0,), (2**40,))):
        x.grad = None
        x.as_strided(size, stride, 2**39).sum().backward()
        assert x.grad.tolist() == [0, 0, 0]
    empty = torch.empty(0, requires_grad=True)
    empty.as_strided((0,), (1,), 2**39).sum().backward()
    assert empty.grad.shape == (0,)
    whole = torch.arange(200.0)
    part = whole[10:13].requires_grad_()
    part.as_strided((3, 2), (45, 1), 10).sum().backward()  # 10, 11, and others
    assert part.grad.tolist() == [1, 1, 0]
    part.grad = None
    part.as_strided((40,), (2,), 12).sum().backward()
    assert part.grad.tolist() == [0, 0, 1]


def test_an_ellipsis_of_the_result_alone_stands_for_nothing():
    a, b = torch.rand(2, 3, requires_grad=True), torch.rand(3, 4)
    for equation in ("ab,bc->...ac", "ab,bc->a...c", "...ab,bc->...ac"):
        assert torch.allclose(torch.einsum(equation, a, b), a @ b)
    assert torch.einsum("ab->...", a).shape == ()
    (grad,) = torch.autograd.grad(torch.einsum("ab,bc->...ac", a, b).sum(), a)
    assert torch.allclose(grad, b.sum(1).expand(2, 3))


LABELS = {
    "cross_entropy": lambda x, t: F.cross_entropy(x, t),
    "smoothed": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    "weighed": lambda x, t: F.cross_entropy(x, t, weight=torch.full((3,), 2.0, dtype=x.dtype)),
    "nll_loss": lambda x, t: F.nll_loss(x.log_softmax(1), t),
    "nll_loss_2d": lambda x, t: F.nll_loss(x.log_softmax(1)[..., None, None], t[..., None, None]),
}


@pytest.mark.parametrize("name", LABELS)
def test_a_mean_over_ignored_samples_alone(name):
    """It is NaN for all logits, so that nothing changes it: all its derivatives are 0."""
    target = torch.full((2,), -100)
    x = torch.tensor([[1.0, 2, -1], [0, 3, 0.5]], dtype=torch.float64, requires_grad=True)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    loss = LABELS[name](x, target) * scale
    assert math.isnan(loss.item())
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    second = torch.autograd.grad(first.sin().sum(), [x, scale])
    for t in (first, *second):
        assert torch.equal(t, torch.zeros_like(t))
    tangent = torch.func.jvp(
        lambda x: LABELS[name](x, target), (x.detach(),), (torch.ones_like(x),)
    )[1]
    assert tangent.item() == 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_derivatives_of_losses_beside_ignored_samples(name, reduction):
    target = torch.tensor([1, -100, 0])
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    logits = (lambda x: x) if name == "cross_entropy" else (lambda x: x.log_softmax(1))
    f = lambda x, s: getattr(F, name)(logits(x), target, reduction=reduction) * s
    scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x, scale))
    assert torch.autograd.gradgradcheck(f, (x, scale))


def test_elu_of_an_infinite_slope():
    x = torch.tensor([-1.0, -0.0, 0.0, 2.0, INF])
    assert F.elu(x, INF).tolist() == [-INF, 0, 0, 2, INF]
    assert F.elu(x, -INF).tolist() == [INF, 0, 0, 2, INF]


@pytest.mark.parametrize("dtype", DTYPES)
def test_variances_without_degrees_of_freedom(dtype):
    x = torch.tensor([1.0, 2, 4], dtype=dtype)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.var(x, correction=3).item() == torch.std(x, correction=INF).item() == INF
    assert math.isnan(torch.var(x, correction=math.nan).item())


def test_numbers_that_are_none():
    x = torch.tensor([0.0, 1, -2])
    for order in (math.nan, torch.tensor(math.nan).item()):
        assert math.isnan(torch.linalg.vector_norm(x, order).item())
        assert math.isnan(torch.linalg.vector_norm(torch.zeros(3), order).item())
    y = x.clone().requires_grad_()
    torch.linalg.vector_norm(y, math.nan).backward()
    assert y.grad.isnan().all()
    for low, high in ((math.nan, 1), (-1, math.nan)):
        assert F.hardtanh(x, low, high).isnan().all() and x.clamp(low, high).isnan().all()
    assert not torch.kaiser_window(5, beta=800.0).isnan().any()
    assert torch.kaiser_window(4, beta=INF).isnan().any()
    with pytest.raises(RuntimeError, match="non-negative"):
        F.cosine_similarity(x, x, 0, eps=math.nan)
    rows = torch.tensor([[3.0, 4.0], [0.5, 8.0]])
    shortened = F.embedding(torch.tensor([0, 1]), rows, max_norm=1, norm_type=-INF)
    assert torch.allclose(shortened, torch.tensor([[1.0, 4 / 3], [0.5, 8.0]]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("place", [INF, -INF, 1e30, -1e30, 3e38])
def test_samples_of_far_places_are_the_padding(place, mode, dtype):
    """Beside zeros nothing is there, however far; and the border is the border."""
    for dims in (2, 3) if mode != "bicubic" else (2,):
        for aligned in (True, False):
            image = (
                torch.arange(1.0, 1 + 2**dims, dtype=dtype).view(1, 1, *[2] * dims).requires_grad_()
            )
            grid = torch.zeros(1, *[1] * dims, dims, dtype=dtype)
            grid[..., 0] = place
            grid.requires_grad_()
            y = F.grid_sample(image, grid, mode, "zeros", aligned)
            y.sum().backward()
            assert y.item() == 0 and not image.grad.any() and not grid.grad.any()
            if mode != "bicubic":  # whose taps beyond the border add up to it up to rounding
                ends = F.grid_sample(image, grid, mode, "border", aligned).item()
                near = grid.detach().clone()
                near[..., 0] = 1 if place > 0 else -1
                if aligned or mode == "nearest":
                    assert ends == F.grid_sample(image, near, mode, "border", aligned).item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2.0**-70, 2.0**70])
def test_slopes_of_quotients_whose_square_has_no_number(size, dtype):
    """d/dc (a + b / c) = -b / c², where c² alone overflows or vanishes."""
    a, b, c = (torch.full((2,), v, dtype=dtype, requires_grad=True) for v in (1.0, 3 * size, size))
    torch.addcdiv(a, b, c, value=2).sum().backward()
    assert c.grad.tolist() == [-6 / size] * 2
    assert b.grad.tolist() == [2 / size] * 2


def test_hardswish_of_the_largest_numbers():
    for dtype, most in ((torch.float32, 3e38), (torch.float64, 1e308), (torch.bfloat16, 3e38)):
        x = torch.tensor([most, -most, 3, -3], dtype=dtype)
        assert F.hardswish(x).tolist() == [x[0].item(), 0, 3, 0]


@pytest.mark.parametrize(
    "name",
    [
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
    ],
)
def test_degrees_are_cut_toward_zero(name):
    """2.9 is 2, and -0.9 is 0."""
    function = getattr(torch.special, name)
    x = torch.tensor([0.25, -0.5, 2.0])
    for degree in (0.0, 1.0, 2.0, 3.0):
        assert function(x, degree + 0.9).tolist() == function(x, degree).tolist()
    assert function(x, -0.9).tolist() == [1, 1, 1]
    assert function(x, -1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.uint8])
def test_contractions_over_one_number_keep_the_dtype(dtype):
    a, b = torch.ones(2, 1, dtype=dtype), torch.ones(3, 4, dtype=dtype)
    assert torch.equal(torch.tensordot(a, b, dims=1), torch.full((2, 4), 3, dtype=dtype))
    assert torch.equal(torch.tensordot(b, a, dims=([0], [1])), torch.full((4, 2), 3, dtype=dtype))
