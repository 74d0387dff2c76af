"""Steps of optimisers as functions, beside PyTorch's."""

import importlib

import pytest

import rushlight

torch = pytest.importorskip("torch")

CASES = {
    "sgd": ["momentum_buffer_list"],
    "adam": ["exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps"],
    "adamw": ["exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps"],
    "adagrad": ["state_sums", "state_steps"],
    "adadelta": ["square_avgs", "acc_deltas", "state_steps"],
    "adamax": ["exp_avgs", "exp_infs", "state_steps"],
    "asgd": ["axs", "mus", "etas", "state_steps"],
    "nadam": ["exp_avgs", "exp_avg_sqs", "mu_products", "state_steps"],
    "radam": ["exp_avgs", "exp_avg_sqs", "state_steps"],
    "rmsprop": ["square_avgs", "grad_avgs", "momentum_buffer_list", "state_steps"],
    "rprop": ["prevs", "step_sizes", "state_steps"],
}
SETTINGS = {
    "sgd": {"momentum": 0.9, "dampening": 0.1, "nesterov": False},
    "adam": {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8},
    "adamw": {"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8},
    "adagrad": {"lr_decay": 0.1, "eps": 1e-8},
    "adadelta": {"rho": 0.9, "eps": 1e-6},
    "adamax": {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8},
    "asgd": {"lambd": 1e-2, "t0": 1, "alpha": 0.75},
    "nadam": {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "momentum_decay": 0.01},
    "radam": {"beta1": 0.9, "beta2": 0.9, "eps": 1e-8},
    "rmsprop": {"alpha": 0.9, "eps": 1e-8, "momentum": 0.5, "centered": True},
    "rprop": {"step_size_min": 1e-6, "step_size_max": 1.0, "etaminus": 0.5, "etaplus": 1.2},
}


def _run(module, name, maximize):
    function = getattr(importlib.import_module(f"{module.__name__}.optim._functional"), name)
    assert function is getattr(importlib.import_module(f"{module.__name__}.optim.{name}"), name)
    module.manual_seed(0)
    shapes = [(3, 4), (5,), (), (0, 2)]
    params = [module.randn(s) for s in shapes]
    states = []
    for state in CASES[name]:
        if state in ("state_steps", "mus", "etas", "mu_products"):
            made = [module.tensor(0.0 if state == "state_steps" else 0.5) for _ in shapes]
        elif name == "sgd":
            made = [None] * len(shapes)
        else:
            made = [
                module.full(s, 0.1) if state == "step_sizes" else module.zeros(s) for s in shapes
            ]
        states.append(made)
    settings = dict(SETTINGS[name], maximize=maximize)
    if name != "rprop":
        settings.update(lr=0.1, weight_decay=0.05)
    for _ in range(3):
        grads = [module.randn(s) for s in shapes]
        assert function(params, grads, *states, **settings) is None
    return params, states


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_steps_are_pytorchs(name, maximize):
    ours, theirs = _run(rushlight, name, maximize), _run(torch, name, maximize)
    compared = 0
    for a, b in [*zip(ours[0], theirs[0], strict=True)] + [
        pair
        for own, other in zip(ours[1], theirs[1], strict=True)
        for pair in zip(own, other, strict=True)
    ]:
        assert a.numpy() == pytest.approx(b.numpy(), rel=1e-5, abs=1e-6)
        compared += a.numel()
    assert compared > 30


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adagrad"])
def test_scales_and_infinities(name):
    function = getattr(rushlight.optim._functional, name)
    settings = dict(SETTINGS[name], maximize=False, lr=0.1, weight_decay=0.0)

    def step(grad, **more):
        states = [[None if name == "sgd" else rushlight.zeros(())] for _ in CASES[name]]
        p = rushlight.ones(2)
        if name != "sgd":
            states[:-1] = [[rushlight.zeros(2)] for _ in states[:-1]]
        function([p], [rushlight.full((2,), grad)], *states, **settings, **more)
        return p

    assert step(8.0, grad_scale=rushlight.tensor(4.0)).equal(step(2.0))
    assert step(8.0, found_inf=rushlight.tensor(1.0)).equal(rushlight.ones(2))
    assert not step(8.0, found_inf=rushlight.tensor(0.0)).equal(rushlight.ones(2))
