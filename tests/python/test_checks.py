"""`_check` and its kin, reductions by number, gradients of convolutions, stream arguments."""

import pytest

import rushlight as rl
from rushlight.nn import _reduction
from rushlight.nn import functional as F


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (rl._check, RuntimeError),
        (rl._check_index, IndexError),
        (rl._check_value, ValueError),
        (rl._check_type, TypeError),
        (rl._check_not_implemented, NotImplementedError),
    ],
)
def test_conditions(check, error):
    check(True, lambda: 1 / 0)
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    with pytest.raises(error, match=r"tensor\(\[0, 1\]\)"):
        check(False, lambda: rl.arange(2))
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(rl.tensor(True))
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "words")


def test_conditions_of_sizes_and_tensors():
    rl._check_is_size(3, max=3)
    with pytest.raises(RuntimeError):
        rl._check_is_size(-1)
    rl._check_tensor_all(rl.tensor([True]))
    with pytest.raises(ValueError, match="all of them"):
        rl._check_tensor_all_with(ValueError, rl.tensor([False]), lambda: "all of them")
    with pytest.raises(RuntimeError):
        rl._check_tensor_all(rl.tensor([True, False]))
    with pytest.raises(TypeError, match="must be a tensor"):
        rl._check_tensor_all(True)
    with pytest.raises(TypeError, match=r"dtype torch.bool"):
        rl._check_tensor_all(rl.ones(1))
    with pytest.raises(KeyError):
        rl._check_with(KeyError, False, lambda: "none")


def test_reductions_by_number():
    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value"):
        _reduction.get_enum("all")
    assert _reduction.legacy_get_string(None, None) == "mean"
    assert _reduction.legacy_get_enum(False, True, emit_warning=False) == 2
    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert _reduction.legacy_get_string(True, False) == "none"


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2, "padding": 2}]
)
def test_gradients_of_convolutions(dims, settings):
    rl.manual_seed(0)
    x = rl.randn(2, 4, *[8, 7, 6][:dims], dtype=rl.float64, requires_grad=True)
    weight = rl.randn(6, 4 // settings.get("groups", 1), *[3] * dims, dtype=rl.float64)
    weight.requires_grad_()
    out = getattr(F, f"conv{dims}d")(x, weight, **settings)
    grad = rl.randn_like(out)
    by_input, by_weight = rl.autograd.grad(out, (x, weight), grad)
    own = getattr(rl.nn.grad, f"conv{dims}d_input")(x.shape, weight, grad, **settings)
    rl.testing.assert_close(own.detach(), by_input)
    own = getattr(rl.nn.grad, f"conv{dims}d_weight")(x, weight.shape, grad, **settings)
    rl.testing.assert_close(own.detach(), by_weight)


def test_streams_of_capsules_are_numbers():
    with pytest.raises(TypeError, match="stream must be"):
        rl.ones(1).__dlpack__(stream=object())


def test_schedules_keep_their_numbers():
    rate, top = rl.tensor(0.1), rl.tensor(0.2)
    optimizer = rl.optim.SGD([rl.nn.Parameter(rl.ones(1))], lr=rate, momentum=0.9)
    low, high = rl.tensor(0.8), rl.tensor(0.9)
    rl.optim.lr_scheduler.CyclicLR(optimizer, rate, top, base_momentum=low, max_momentum=high)
    for number in (rate, top, low, high):
        number.mul_(0.5)
    group = optimizer.param_groups[0]
    assert group["max_momentum"].item() == pytest.approx(0.9)
    assert group["base_momentum"].item() == pytest.approx(0.8)


def test_states_of_old_one_cycle_schedules():
    kind = rl.optim.lr_scheduler.OneCycleLR
    optimizer = rl.optim.SGD([rl.nn.Parameter(rl.ones(1))], lr=0.1, momentum=0.9)
    schedule = kind(optimizer, max_lr=1.0, total_steps=10)
    state = schedule.state_dict()
    del state["_anneal_func_type"]
    schedule.load_state_dict({**state, "anneal_func": kind._annealing_linear})
    assert schedule._anneal_func_type == "linear"
