"""Whole training runs: the same seed gives PyTorch's weights, batches, losses and results."""

import pytest

import rushlight
from tests.parity.compare import assert_alike, plain

torch = pytest.importorskip("torch")


def small_net(m):
    return m.nn.Sequential(m.nn.Linear(6, 16), m.nn.ReLU(), m.nn.LayerNorm(16), m.nn.Linear(16, 3))


def conv_net(m):
    return m.nn.Sequential(
        m.nn.Conv2d(1, 4, 3, padding=1, bias=False),
        m.nn.BatchNorm2d(4),
        m.nn.GELU(),
        m.nn.MaxPool2d(2),
        m.nn.Flatten(),
        m.nn.Linear(36, 3),
    )


def word_net(m):
    return m.nn.Sequential(m.nn.Embedding(7, 5), m.nn.Flatten(), m.nn.Linear(20, 3))


def samples(m, shape, whole):
    """Inputs that a rule connects with three classes."""
    x = m.randint(0, 7, (40, *shape)) if whole else m.randn(40, *shape)
    return x, x.reshape(40, -1).to(m.float32).sum(1).abs().to(m.int64) % 3


def trained(m, make, shape, whole, name, options):
    """Losses of four epochs and the state afterwards."""
    m.manual_seed(3)
    x, y = samples(m, shape, whole)
    net = make(m)
    optimizer = getattr(m.optim, name)(net.parameters(), **options)
    schedule = m.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    loader = m.utils.data.DataLoader(m.utils.data.TensorDataset(x, y), 8, shuffle=True)
    losses = []
    for _ in range(4):
        for inputs, labels in loader:
            loss = m.nn.functional.cross_entropy(net(inputs), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            m.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    net.eval()
    return plain([losses, net.state_dict(), net(x)])


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"lr": 0.01}),
        ("AdamW", {"lr": 0.01, "amsgrad": True}),
    ],
)
@pytest.mark.parametrize(
    "make, shape, whole",
    [(small_net, (6,), False), (conv_net, (1, 6, 6), False), (word_net, (4,), True)],
)
def test_runs(make, shape, whole, name, options):
    ours = trained(rushlight, make, shape, whole, name, options)
    theirs = trained(torch, make, shape, whole, name, options)
    # Rounding differs from kernel to kernel and grows from step to step.
    assert_alike(ours, theirs, tolerance=2e-2)
