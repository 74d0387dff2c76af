"""The steps that docstrings of optimisers write down, done with numbers, are those that are taken."""

import inspect
import math

import pytest

import rushlight as torch

STEPS = 12
DATA = [0.5, -1.5, 0.8, 0.9, -0.2, 0.3, 0.3, 0.4, -0.6, 1.0, 1.1, -0.1]  # gradients


def taken(optimizer, **settings):
    """The parameter, which begins as 1, behind each step."""
    p = torch.nn.Parameter(torch.ones(1, 1, dtype=torch.float64))
    made, path = optimizer([p], **settings), []
    for g in DATA:
        p.grad = torch.full_like(p, g)
        made.step()
        path.append(p.item())
    return path


def sgd(lr=0.1, momentum=0.9, dampening=0.2, nesterov=False):
    p, v = 1.0, None
    for g in DATA:
        v = g if v is None else momentum * v + (1 - dampening) * g
        p -= lr * (g + momentum * v if nesterov else v)
        yield p


def means(b1=0.9, b2=0.999):
    m = v = 0.0
    for t, g in enumerate(DATA, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        yield t, g, m, v


def adam(lr=0.1, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0):
    p = 1.0
    for t, _, m, v in means(b1, b2):
        p *= 1 - lr * weight_decay
        p -= lr * (m / (1 - b1**t)) / (math.sqrt(v / (1 - b2**t)) + eps)
        yield p


def adamax(lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    p, u = 1.0, 0.0
    for t, g, m, _ in means(b1, b2):
        u = max(b2 * u, abs(g) + eps)
        p -= lr / (1 - b1**t) * m / u
        yield p


def nadam(lr=0.1, b1=0.9, b2=0.999, eps=1e-8, momentum_decay=0.004):
    def mu(t):
        return b1 * (1 - 0.96 ** (t * momentum_decay) / 2)

    def product(t):
        return math.prod(map(mu, range(1, t + 1)))

    p = 1.0
    for t, g, m, v in means(b1, b2):
        step = mu(t + 1) * m / (1 - product(t + 1)) + (1 - mu(t)) * g / (1 - product(t))
        p -= lr * step / (math.sqrt(v / (1 - b2**t)) + eps)
        yield p


def radam(lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    p, a = 1.0, 2 / (1 - b2) - 1
    for t, _, m, v in means(b1, b2):
        r = a - 2 * t * b2**t / (1 - b2**t)
        step = m / (1 - b1**t)
        if r > 5:
            step *= math.sqrt(1 - b2**t) / (math.sqrt(v) + eps)
            step *= math.sqrt((r - 4) * (r - 2) * a / ((a - 4) * (a - 2) * r))
        p -= lr * step
        yield p


def adagrad(lr=0.1, lr_decay=0.5, eps=1e-10):
    p, s = 1.0, 0.0
    for t, g in enumerate(DATA, 1):
        s += g * g
        p -= lr / (1 + (t - 1) * lr_decay) * g / (math.sqrt(s) + eps)
        yield p


def adadelta(lr=1.0, rho=0.9, eps=1e-6):
    p, u, v = 1.0, 0.0, 0.0
    for g in DATA:
        v = rho * v + (1 - rho) * g * g
        d = math.sqrt(u + eps) / math.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d * d
        p -= lr * d
        yield p


def rmsprop(lr=0.1, alpha=0.9, eps=1e-8, momentum=0.5, centered=True):
    p, v, a, b = 1.0, 0.0, 0.0, 0.0
    for g in DATA:
        v, a = alpha * v + (1 - alpha) * g * g, alpha * a + (1 - alpha) * g
        b = momentum * b + g / (math.sqrt(v - a * a if centered else v) + eps)
        p -= lr * b
        yield p


def rprop(lr=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 0.15)):
    p, s, h = 1.0, lr, 0.0
    for g in DATA:
        factor = etas[1] if g * h > 0 else etas[0] if g * h < 0 else 1
        s = min(max(s * factor, step_sizes[0]), step_sizes[1])
        h = 0.0 if g * h < 0 else g
        p -= s * math.copysign(1, h) if h else 0
        yield p


def asgd(lr=0.1, lambd=0.1, alpha=0.75):
    p = 1.0
    for t, g in enumerate(DATA, 1):
        e = lr / (1 + lambd * lr * (t - 1)) ** alpha
        p = p * (1 - lambd * e) - e * g
        yield p


def adafactor(lr=0.1, beta2_decay=-0.8, least=1e-3, d=1.0):
    p, v = 1.0, 0.0
    for t, g in enumerate(DATA, 1):
        k = t**beta2_decay
        v = (1 - k) * v + k * g * g
        u = g / math.sqrt(v)
        p -= max(least, abs(p)) * min(lr, 1 / math.sqrt(t)) * u / max(1, abs(u) / d)
        yield p


CASES = [
    ("SGD", sgd(), {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    ("SGD", sgd(dampening=0, nesterov=True), {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", adam(), {"lr": 0.1}),
    ("AdamW", adam(weight_decay=0.2), {"lr": 0.1, "weight_decay": 0.2}),
    ("Adamax", adamax(), {"lr": 0.1}),
    ("NAdam", nadam(), {"lr": 0.1}),
    ("RAdam", radam(), {"lr": 0.1}),
    ("Adagrad", adagrad(), {"lr": 0.1, "lr_decay": 0.5}),
    ("Adadelta", adadelta(), {}),
    ("RMSprop", rmsprop(), {"lr": 0.1, "alpha": 0.9, "momentum": 0.5, "centered": True}),
    ("Rprop", rprop(), {"lr": 0.1, "step_sizes": (1e-6, 0.15)}),
    ("ASGD", asgd(), {"lr": 0.1, "lambd": 0.1}),
    ("Adafactor", adafactor(), {"lr": 0.1}),
]


@pytest.mark.parametrize(("name", "said", "settings"), CASES)
def test_the_formula_is_the_step(name, said, settings):
    assert taken(getattr(torch.optim, name), **settings) == pytest.approx(list(said), rel=1e-7)


def test_averages_of_asgd():
    p = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    made, ax = torch.optim.ASGD([p], lr=0.1, t0=4), 1.0
    for t, g in enumerate(DATA, 1):
        p.grad = torch.full_like(p, g)
        made.step()
        ax += (p.item() - ax) / max(1, t - 1 - 4)
    assert made.state[p]["ax"].item() == pytest.approx(ax)


def test_docstrings_say_the_step():
    for name in torch.optim.__all__:
        kind = getattr(torch.optim, name)
        if inspect.isclass(kind) and name != "Optimizer":
            assert "\nStep" in (inspect.getdoc(kind) or ""), name
