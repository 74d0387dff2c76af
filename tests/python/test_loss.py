"""Losses and embeddings: definitions, ignored and weighted classes, spatial targets, 16 bits."""

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


def definition(x, t, weight=None, ignore=-100, smoothing=0.0):
    """Losses of samples and their weights, from log probabilities (N, C) in float64."""
    weight = np.ones(x.shape[1]) if weight is None else weight
    logp = (
        x
        - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
        - x.max(1, keepdims=True)
    )
    losses, weights = np.zeros(len(t)), np.zeros(len(t))
    for i, c in enumerate(t):
        if c != ignore:
            weights[i] = weight[c]
            losses[i] = (
                -(1 - smoothing) * weight[c] * logp[i, c]
                - smoothing / x.shape[1] * (weight * logp[i]).sum()
            )
    return losses, weights


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (3, 3000), (2, 5, 3), (2, 3, 9, 40)])
def test_cross_entropy(shape, weighted, smoothing):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) * 3
    classes = shape[1]
    t = rng.integers(0, classes, (shape[0], *shape[2:]))
    t.flat[1] = 2  # ignored below
    w = rng.random(classes) + 0.1 if weighted else None
    flat = np.moveaxis(x, 1, -1).reshape(-1, classes)
    losses, weights = definition(flat, t.ravel(), w, 2, smoothing)
    expected = {
        "none": losses.reshape(t.shape),
        "sum": losses.sum(),
        "mean": losses.sum() / weights.sum(),
    }
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        given = torch.tensor(w).to(dtype) if weighted else None
        for reduction, value in expected.items():
            loss = F.cross_entropy(
                torch.tensor(x).to(dtype),
                torch.tensor(t),
                given,
                ignore_index=2,
                reduction=reduction,
                label_smoothing=smoothing,
            )
            assert loss.dtype is dtype
            np.testing.assert_allclose(
                loss.double().numpy(), value, rtol=tolerance, atol=30 * tolerance
            )


def test_cross_entropy_is_log_softmax_and_nll_loss():
    x = torch.randn(40, 7, 11, requires_grad=True)
    t = torch.randint(0, 7, (40, 11))
    together = F.cross_entropy(x, t)
    (g1,) = torch.autograd.grad(together, x)
    apart = F.nll_loss(x.log_softmax(1), t)
    (g2,) = torch.autograd.grad(apart, x)
    assert torch.allclose(together, apart) and torch.allclose(g1, g2, atol=1e-7)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (3, 3000), (2, 5, 3), (2, 3, 9, 40)])
def test_large_logits_keep_their_digits(shape, weighted, smoothing):
    torch.manual_seed(0)
    t = torch.randint(shape[1], (shape[0], *shape[2:]))
    weight = torch.rand(shape[1]) + 0.1 if weighted else None

    def loss(x, weight):
        return F.cross_entropy(x, t, weight, label_smoothing=smoothing)

    def of_slices(x):
        return torch.vmap(lambda x, t: F.cross_entropy(x, t, label_smoothing=smoothing))(x, both)

    both = torch.stack([t, t])

    for base in (0, 1e2, -1e4, 1e6):
        x = torch.randn(shape) * 2 + base
        wide = x.double().requires_grad_()
        right = loss(wide, weight.double() if weighted else None)
        right.backward()
        x.requires_grad_()
        found = loss(x, weight)
        found.backward()
        assert abs(found.item() - right.item()) <= 1e-6 * abs(right.item())
        error = (x.grad.double() - wide.grad).abs().max() / wide.grad.abs().max()
        assert error <= 1e-6
        if not weighted:
            stacked = torch.stack([x.detach(), x.detach() + 1])
            torch.testing.assert_close(of_slices(stacked)[0], found.detach())
            grads = torch.func.grad(lambda s: of_slices(s)[0])(stacked)
            torch.testing.assert_close(grads[0], x.grad)


def test_losses_of_confident_predictions():
    x = torch.tensor([[-10.0, 10.0, -5.0], [-60, 60, 0]], requires_grad=True)
    F.cross_entropy(x, torch.tensor([1, 1]), reduction="sum").backward()
    wide = x.detach().double().requires_grad_()
    F.cross_entropy(wide, torch.tensor([1, 1]), reduction="sum").backward()
    others = torch.tensor([0, 2])
    torch.testing.assert_close(
        x.grad[:, others].double(), wide.grad[:, others], rtol=1e-5, atol=1e-30
    )
    y = torch.linspace(-80, 80, 65, requires_grad=True)
    wide = y.detach().double().requires_grad_()
    for target in (0.0, 1.0, 0.3):
        y.grad = wide.grad = None
        for t in (y, wide):
            F.binary_cross_entropy_with_logits(
                t, torch.full_like(t, target), reduction="sum"
            ).backward()
        torch.testing.assert_close(y.grad.double(), wide.grad, rtol=2e-6, atol=1e-35)


def test_extreme_logits():
    x = torch.tensor([[1e4, -1e4], [float("-inf"), 0.0]], requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, 1]), reduction="none")
    assert loss.tolist() == [2e4, 0]
    loss.sum().backward()
    assert x.grad.tolist() == [[1, -1], [0, 0]]
    assert F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100])).isnan()
    assert (
        F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100]), reduction="sum").item() == 0
    )
    assert F.cross_entropy(torch.ones(0, 3), torch.ones(0, dtype=torch.long)).isnan()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_thread_count_changes_no_bit(count):
    before = torch.get_num_threads()
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((300, 700)).astype(np.float32)).requires_grad_()
    t = torch.from_numpy(rng.integers(0, 700, 300))
    table = torch.from_numpy(rng.standard_normal((50, 64)).astype(np.float32)).requires_grad_()
    words = torch.from_numpy(rng.integers(0, 50, (40, 25)))

    def run():
        loss = F.cross_entropy(x, t)
        rows = F.embedding(words, table)
        return [
            loss,
            *torch.autograd.grad(loss, x),
            *torch.autograd.grad((rows * rows).sum(), table),
        ]

    torch.set_num_threads(1)
    alone = run()
    torch.set_num_threads(count)
    together = run()
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_binary_cross_entropy():
    p = np.array([0.0, 1e-30, 0.3, 1.0], dtype=np.float32)
    y = np.array([1.0, 1.0, 0.4, 0.0], dtype=np.float32)
    losses = F.binary_cross_entropy(torch.tensor(p), torch.tensor(y), reduction="none")
    np.testing.assert_allclose(losses.numpy()[[0, 3]], 100)
    np.testing.assert_allclose(
        losses[2].item(), -(0.4 * np.log(0.3) + 0.6 * np.log(0.7)), rtol=1e-6
    )
    for bad in (1.5, -0.1, float("nan")):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            F.binary_cross_entropy(torch.tensor([bad]), torch.tensor([1.0]))
    x = torch.tensor([-200.0, 200.0, 0.5])
    np.testing.assert_allclose(
        F.binary_cross_entropy_with_logits(
            x, torch.tensor([1.0, 0.0, 1.0]), reduction="none"
        ).numpy(),
        [200, 200, np.log1p(np.exp(-0.5))],
        rtol=1e-6,
    )


def test_embedding_padding_and_frequency():
    table = torch.ones(4, 3, requires_grad=True)
    words = torch.tensor([[1, 2, 1], [1, 0, 2]])
    F.embedding(words, table, padding_idx=0).sum().backward()
    assert table.grad[:, 0].tolist() == [0, 3, 2, 0]
    table.grad = None
    F.embedding(words, table, scale_grad_by_freq=True).sum().backward()
    assert table.grad[:, 0].tolist() == [1, 1, 1, 0]


def test_the_limit_of_variances_has_no_part_in_derivatives_of_either_mode():
    x, y = torch.randn(2, 4, dtype=torch.float64)
    variance = torch.tensor([0.1, 0.2, 0.5, 2.0], dtype=torch.float64)

    def loss(v):
        return F.gaussian_nll_loss(x, y, v, eps=0.3, reduction="sum")

    seen = variance.clamp_min(0.3)
    expected = (1 / seen - (x - y).square() / seen.square()) / 2
    assert torch.allclose(torch.func.jacrev(loss)(variance), expected)
    assert torch.allclose(torch.func.jacfwd(loss)(variance), expected)


def test_embedding_renorm():
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    F.embedding(torch.tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.norm(dim=1).numpy(), [1, 0.5, 10], rtol=1e-5)


def test_embedding_of_halves_adds_in_float():
    table = torch.zeros(2, 4, dtype=torch.float16, requires_grad=True)
    rows = F.embedding(torch.zeros(5000, dtype=torch.long), table)
    (grad,) = torch.autograd.grad(rows, table, torch.full_like(rows, 0.1))
    assert grad[0, 0].item() == pytest.approx(500, rel=1e-3)
