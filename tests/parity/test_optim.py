"""Optimisers and schedules against PyTorch's: steps, states, texts and messages."""

import copy
import sys

import pytest

import rushlight
from tests.parity.compare import assert_alike, assert_outcomes_alike, outcome, plain

torch = pytest.importorskip("torch")

SETTINGS = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.3}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.2}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"maximize": True, "centered": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.2, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.8), "weight_decay": 0.1}),
    ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.2, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.2, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.1, "weight_decay": 0.1, "d": 1.5, "eps": (1e-8, 1e-2), "maximize": True},
    ),
]


def parameters(m, dtype="float32"):
    values = [[[0.5, -1.0], [2.0, 0.25]], [1.0, -2.0, 3.0], [0.125]]
    return [m.nn.Parameter(m.tensor(v, dtype=getattr(m, dtype))) for v in values]


def give_gradients(m, params, step):
    """Gradients of a step; the last parameter has none at every other."""
    for k, p in enumerate(params):
        numbers = [((7 * i + 3 * step + k) % 11 - 5) / 4 for i in range(p.numel())]
        grad = m.tensor(numbers, dtype=p.dtype).reshape(p.shape)
        p.grad = None if k == 2 and step % 2 else grad


def trained(m, name, options, dtype="float32", steps=6):
    """Parameters and state after some steps, of which the last ones are made by a loaded copy."""
    params = parameters(m, dtype)
    optimizer = getattr(m.optim, name)(params, **options)
    text = repr(optimizer)
    for step in range(steps // 2):
        give_gradients(m, params, step)
        optimizer.step()
    second = getattr(m.optim, name)(params, **options)
    second.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for step in range(steps // 2, steps):
        give_gradients(m, params, step)
        second.step()
    return plain([text, [p.detach() for p in params], second.state_dict()])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, options", SETTINGS)
def test_steps(name, options, dtype):
    assert_alike(trained(rushlight, name, options, dtype), trained(torch, name, options, dtype))


def test_transposed_parameters():
    def run(m):
        p = m.nn.Parameter(m.arange(6.0).reshape(2, 3).t())
        optimizer = m.optim.Adam([p], lr=0.1)
        for step in range(3):
            p.grad = m.arange(6.0).reshape(3, 2) - step
            optimizer.step()
        return plain([p.detach(), list(p.stride()), optimizer.state_dict()["state"]])

    assert_alike(run(rushlight), run(torch))


def leaf(m, n=2):
    return m.nn.Parameter(m.ones(n))


def hooks(m):
    log, p = [], leaf(m)
    optimizer = m.optim.SGD([p], 0.1)
    p.grad = m.ones(2)
    space = sys.modules[m.optim.__name__ + ".optimizer"]
    handles = [
        optimizer.register_step_pre_hook(lambda o, a, k: log.append(("pre", len(a)))),
        optimizer.register_step_post_hook(lambda o, a, k: log.append(("post", len(a)))),
        optimizer.register_state_dict_pre_hook(lambda o: log.append("state pre")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "x": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: log.append(sorted(s))),
        optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded")),
        space.register_optimizer_step_pre_hook(lambda o, a, k: log.append("all pre")),
        space.register_optimizer_step_post_hook(lambda o, a, k: log.append("all post")),
    ]
    optimizer.step()
    log.append(optimizer.step(lambda: m.tensor(3.0)))
    optimizer.load_state_dict(optimizer.state_dict())
    for handle in handles:
        handle.remove()
    optimizer.step()
    return log, list(optimizer.state_dict()), p.detach()


def own_optimizer(m):
    class Mine(m.optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad, alpha=-group["lr"])

    p = leaf(m)
    optimizer = Mine([p])
    p.grad = m.ones(2)
    optimizer.step()
    return p.detach(), repr(optimizer)


_LINES = """
m.optim.SGD([], 0.1)
m.optim.SGD(leaf(m), 0.1)
m.optim.SGD([leaf(m)], -1)
m.optim.SGD([leaf(m)], 0.1, momentum=-1)
m.optim.SGD([leaf(m)], 0.1, weight_decay=-1)
m.optim.SGD([leaf(m)], 0.1, nesterov=True)
m.optim.SGD([leaf(m)], lr=m.ones(2))
m.optim.SGD([leaf(m) * 2], 0.1)
m.optim.SGD([3], 0.1)
m.optim.SGD([{"params": {leaf(m)}}], 0.1)
m.optim.SGD([{"params": [leaf(m)]}, 3], 0.1)
m.optim.SGD([(p := leaf(m)), p], 0.1)
m.optim.SGD([{"params": (p := leaf(m))}, {"params": p}], 0.1)
m.optim.SGD({"a": leaf(m)}, 0.1)
m.optim.SGD([("a", leaf(m)), ("b", leaf(m))], 0.1)
m.optim.SGD([("a", leaf(m)), leaf(m)], 0.1)
m.optim.SGD([("a", leaf(m))], 0.1).state_dict()
m.optim.SGD([("a", leaf(m))], 0.1).add_param_group({"params": [leaf(m)]})
m.optim.SGD([leaf(m), leaf(m)], 0.1).load_state_dict(m.optim.SGD([leaf(m)], 0.1).state_dict())
m.optim.SGD([m.ones(2)], 0.1)
m.optim.SGD(iter([leaf(m)]), 0.1).step(lambda: 5)
m.optim.Adam([leaf(m)], lr=-1)
m.optim.Adam([leaf(m)], eps=-1)
m.optim.Adam([leaf(m)], betas=(1.0, 0.9))
m.optim.Adam([leaf(m)], betas=(0.9, -0.1))
m.optim.Adam([leaf(m)], weight_decay=-1)
m.optim.Adam([leaf(m)], fused=True, foreach=True)
m.optim.Adam([leaf(m)], lr=m.tensor(0.1), foreach=True)
m.optim.RMSprop([leaf(m)], alpha=-1)
m.optim.RMSprop([leaf(m)], momentum=-1)
m.optim.Adagrad([leaf(m)], lr_decay=-1)
m.optim.Adadelta([leaf(m)], rho=2)
m.optim.lr_scheduler.StepLR(3, 1)
m.optim.lr_scheduler.StepLR(m.optim.SGD([leaf(m)], 0.1), 1).step()
m.optim.lr_scheduler.StepLR(m.optim.SGD([leaf(m)], 0.1), 1).get_lr()
m.optim.lr_scheduler.LambdaLR(m.optim.SGD([leaf(m)], 0.1), [1, 2])
m.optim.lr_scheduler.OneCycleLR(m.optim.SGD([leaf(m)], 0.1), 1)
m.optim.lr_scheduler.OneCycleLR(m.optim.Adagrad([leaf(m)], 0.1), 1.0, 3)
m.optim.lr_scheduler.LinearLR(m.optim.SGD([leaf(m)], 0.1), 2.0)
m.optim.lr_scheduler.ReduceLROnPlateau(m.optim.SGD([leaf(m)], 0.1), factor=2.0)
m.optim.lr_scheduler.ReduceLROnPlateau(m.optim.SGD([leaf(m)], 0.1), "x")
m.optim.lr_scheduler.CosineAnnealingWarmRestarts(m.optim.SGD([leaf(m)], 0.1), 0)
m.optim.lr_scheduler.ChainedScheduler([])
"""
CASES = {"hooks": hooks, "own optimiser": own_optimizer}
CASES |= {line: eval(f"lambda m: {line}", {"leaf": leaf}) for line in _LINES.split("\n") if line}


@pytest.mark.parametrize("name", CASES)
def test_behaviour(name):
    assert_outcomes_alike(outcome(CASES[name], rushlight), outcome(CASES[name], torch))


SCHEDULES = [
    "StepLR(o, 3)",
    "MultiStepLR(o, [2, 5, 5], 0.5)",
    "ExponentialLR(o, 0.9)",
    "LambdaLR(o, [lambda e: 0.9**e, lambda e: e + 1])",
    "MultiplicativeLR(o, lambda e: 0.9)",
    "ConstantLR(o, 0.5, 3)",
    "LinearLR(o, 0.1, 0.7, 4)",
    "PolynomialLR(o, 6, 2.0)",
    "CosineAnnealingLR(o, 5)",
    "CosineAnnealingLR(o, 4, 0.01)",
    "CosineAnnealingWarmRestarts(o, 2, 2, 0.01)",
    "OneCycleLR(o, [0.5, 1.0], epochs=3, steps_per_epoch=4)",
    'OneCycleLR(o, 0.5, 12, anneal_strategy="linear", three_phase=True)',
    "OneCycleLR(o, 0.5, 12, cycle_momentum=False)",
    'CyclicLR(o, 0.01, 0.5, 3, 2, mode="triangular2")',
    'CyclicLR(o, 0.01, 0.5, 2, mode="exp_range", gamma=0.9, cycle_momentum=False)',
    "SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [3])",
    "SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 4), L.CosineAnnealingLR(o, 6)], [4])",
    "ChainedScheduler([L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)])",
    "SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [0])",
    "SequentialLR(o, [L.StepLR(o, 2), L.ExponentialLR(o, 0.9), L.ConstantLR(o, 0.5, 4)], [3, 3])",
    "SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.MultiplicativeLR(o, lambda e: 0.5)], [3])",
]
# Parts of a sequence and of a chain: each with each.
PARTS = [line for line in SCHEDULES[:10] if "LambdaLR" not in line] + [
    "LambdaLR(o, lambda e: 0.9**e)",
    "CosineAnnealingWarmRestarts(o, 2, 2, 0.01)",
]
SCHEDULES += [
    around % (one, two)
    for one in PARTS
    for two in PARTS
    for around in ("SequentialLR(o, [L.%s, L.%s], [4])", "ChainedScheduler([L.%s, L.%s])")
]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("line", SCHEDULES)
def test_schedules(line, kind):
    def run(m):
        params = parameters(m)
        options = {"momentum": 0.9} if kind == "SGD" else {}
        groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.1}]
        o = getattr(m.optim, kind)(groups, lr=0.3, **options)
        space = m.optim.lr_scheduler
        schedule = eval(f"L.{line}", {"L": space, "o": o})
        seen = []
        for _ in range(12):
            seen.append([g["lr"] for g in o.param_groups])
            seen.append(schedule.get_last_lr())
            seen.append([g.get("momentum", g.get("betas")) for g in o.param_groups])
            o.step()
            schedule.step()
        state = schedule.state_dict()
        schedule.load_state_dict(copy.deepcopy(state))
        return seen, sorted(state)

    assert_alike(outcome(run, rushlight), outcome(run, torch))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max", "patience": 2, "threshold_mode": "abs", "threshold": 0.1, "cooldown": 1},
        {"patience": 1, "min_lr": 0.05, "factor": 0.5},
    ],
)
def test_plateau(options):
    def run(m):
        optimizer = m.optim.SGD([leaf(m)], 0.3)
        schedule = m.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        seen = []
        for i in range(30):
            schedule.step(((7 * i) % 13) / 13)
            seen.append(optimizer.param_groups[0]["lr"])
        return seen, schedule.state_dict()

    assert_alike(outcome(run, rushlight), outcome(run, torch))


# ---- LBFGS, Muon and averages --------------------------------------------------------------------


def minimised(m, options, rounds=3):
    """Rosenbrock's function and a least-squares problem, a few steps of LBFGS each."""
    x = m.nn.Parameter(m.tensor([-1.5, 2.0], dtype=m.float64))
    w = m.nn.Parameter(m.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=m.float64))
    target = m.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=m.float64)
    optimizer = m.optim.LBFGS([x, w], **options)
    calls = []

    def closure():
        optimizer.zero_grad()
        rosenbrock = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss = rosenbrock + ((w @ w - target) ** 2).sum()
        loss.backward()
        calls.append(1)
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(rounds)]
    state = optimizer.state[x]
    return [losses, x.tolist(), w.tolist(), len(calls), state["func_evals"], state["n_iter"]]


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.01},
        {"lr": 0.01, "max_iter": 4, "history_size": 2},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 3, "lr": 0.5},
        {"line_search_fn": "strong_wolfe", "max_eval": 7},
    ],
)
def test_lbfgs(options):
    # 60 iterations of Rosenbrock's function make 1e-15 into 1e-5.
    assert_alike(minimised(rushlight, options), minimised(torch, options), 1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"lr": 0.1, "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}]
)
def test_muon(options):
    def run(m):
        params = parameters(m)[:1]
        optimizer = m.optim.Muon(params, **options)
        for step in range(3):
            give_gradients(m, params, step)
            optimizer.step()
        return plain([repr(optimizer), [p.detach() for p in params]])

    assert_alike(run(rushlight), run(torch), 2e-2)  # the iteration is in bfloat16


@pytest.mark.parametrize("kind", ["swa", "ema", "own", "buffers"])
def test_averaged_models(kind):
    def run(m):
        swa = __import__(f"{m.__name__}.optim.swa_utils", fromlist=["x"])
        model = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.BatchNorm1d(3))
        options = {
            "swa": {},
            "ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.7)},
            "own": {"avg_fn": lambda a, p, n: 0.5 * a + 0.5 * p},
            "buffers": {"use_buffers": True},
        }[kind]
        average = swa.AveragedModel(model, **options)
        optimizer = m.optim.SGD(model.parameters(), lr=0.1)
        schedule = swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
        rates = []
        for i in range(4):
            give_gradients(m, list(model.parameters()), i)
            optimizer.step()
            average.update_parameters(model)
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        batches = [m.arange(8.0).reshape(4, 2), (m.ones(2, 2), m.zeros(2))]
        swa.update_bn(batches, average)
        return plain([average, average.state_dict(), rates])

    assert_alike(outcome(run, rushlight), outcome(run, torch), 1e-4)
