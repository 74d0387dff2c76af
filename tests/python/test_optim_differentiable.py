"""Optimisers with `differentiable=True`: the same steps, and gradients through them."""

import pytest

import rushlight as rl
from rushlight.autograd import gradcheck

WAYS = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [{"lr": 0.1}, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "maximize": True}],
    "AdamW": [{"lr": 0.1}],
    "RMSprop": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "centered": True}],
    "Adagrad": [{"lr": 0.1, "lr_decay": 0.1}],
    "Adadelta": [{"lr": 0.1, "weight_decay": 0.1}],
    "Adamax": [{"lr": 0.1}],
    "NAdam": [{"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{"lr": 0.1}, {"lr": 0.1, "weight_decay": 0.1}],
    "Rprop": [{"lr": 0.1}],
    "ASGD": [{"lr": 0.1, "t0": 3, "weight_decay": 0.1}],
}
CASES = [(name, settings) for name, all_settings in WAYS.items() for settings in all_settings]


def steps(name, settings, start, grads, differentiable):
    p = start.clone() if differentiable else rl.nn.Parameter(start.clone())
    optimizer = getattr(rl.optim, name)([p], differentiable=differentiable, **settings)
    for grad in grads:
        p.grad = grad
        optimizer.step()
    return p


@pytest.mark.parametrize("dtype", [rl.float64, rl.complex128])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_recorded_steps_are_the_fused_ones(name, settings, dtype):
    rl.manual_seed(0)
    start = rl.randn(5, dtype=dtype)
    grads = [rl.randn(5, dtype=dtype) for _ in range(7)]
    fused = steps(name, settings, start, grads, False)
    recorded = steps(name, settings, start, grads, True)
    near = 1e-6 if name == "NAdam" else 1e-9  # it keeps a product in float32
    rl.testing.assert_close(recorded, fused.detach(), rtol=near, atol=near)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_gradients_through_two_steps(name, settings):
    rl.manual_seed(0)
    start = rl.randn(3, dtype=rl.float64, requires_grad=True)
    grads = [rl.rand(3, dtype=rl.float64).add(0.5).requires_grad_() for _ in range(2)]
    assert gradcheck(lambda p, *g: steps(name, settings, p, g, True), (start, *grads))


def test_fused_and_differentiable_exclude_each_other():
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        rl.optim.Adam([rl.nn.Parameter(rl.ones(1))], fused=True, differentiable=True)


def test_gradients_reach_expanded_gradients():
    """A gradient that is one number for all elements is read where it lies."""
    start, grad = rl.rand(3, dtype=rl.float64), rl.rand(1, dtype=rl.float64, requires_grad=True)
    assert gradcheck(lambda g: steps("SGD", {"lr": 0.1}, start, [g.expand(3)], True), (grad,))


def test_recorded_steps_check_their_lists():
    p = rl.ones(2)
    optimizer = rl.optim.Adam([p], differentiable=True)
    p.grad = rl.ones(2)
    optimizer.step()
    optimizer.state[p]["exp_avg"] = rl.zeros(3)
    with pytest.raises(RuntimeError, match=r"exp_avgs\[0\] has shape \[3\]"):
        optimizer.step()
