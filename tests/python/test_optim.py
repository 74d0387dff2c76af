"""Optimisers and schedules: updates by hand, groups, states, hooks."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight._table import ops


def parameter(*values):
    return nn.Parameter(torch.tensor(values))


def steps(optimizer, p, *gradients):
    for gradient in gradients:
        p.grad = torch.tensor(gradient)
        optimizer.step()
    return p.tolist()


@pytest.mark.parametrize(
    "name, options, expected",
    [
        ("SGD", {"lr": 0.1}, [0.5, -2.2]),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, [0.23, -2.29]),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, [-0.1930, -2.4610]),
        ("SGD", {"lr": 0.1, "weight_decay": 0.5}, [0.4175, -2.0]),
        ("SGD", {"lr": 0.1, "maximize": True}, [1.5, -1.8]),
        ("Adam", {"lr": 0.1}, [0.8030, -2.2]),
        ("Adam", {"lr": 0.1, "amsgrad": True}, [0.8030, -2.2]),
        ("AdamW", {"lr": 0.1}, [0.8011, -2.1959]),
        ("RMSprop", {"lr": 0.1}, [-0.5566, -3.7089]),
        ("Adagrad", {"lr": 0.1}, [0.8445, -2.1707]),
        ("Adadelta", {"lr": 1.0}, [0.9943, -2.0064]),
    ],
)
def test_two_steps(name, options, expected):
    p = parameter(1.0, -2.0)
    optimizer = getattr(optim, name)([p], **options)
    assert steps(optimizer, p, [3.0, 1.0], [2.0, 1.0]) == pytest.approx(expected, abs=2e-4)


def test_parameters_stay_what_they_are():
    p = parameter(1.0)
    version, pointer = p._version, p.data_ptr()
    steps(optim.Adam([p]), p, [1.0])
    assert p.is_leaf and p.requires_grad and p.data_ptr() == pointer and p._version > version


def test_parameters_without_gradient_are_skipped():
    p, q = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([p, q], lr=0.5, weight_decay=1.0)
    steps(optimizer, p, [2.0])
    assert p.item() == -0.5 and q.item() == 1 and not optimizer.state


def test_any_layout():
    """A transposed parameter, one of a strided view, and an expanded gradient."""
    flat = torch.zeros(8)
    for p in (
        nn.Parameter(torch.zeros(3, 2).t()),
        nn.Parameter(flat[::2].reshape(4)),
        nn.Parameter(torch.zeros(2, 3)),
    ):
        optimizer = optim.Adam([p], lr=0.1)
        p.grad = torch.ones(1).expand(p.shape)
        optimizer.step()
        assert torch.allclose(p, torch.full(p.shape, -0.1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    p = nn.Parameter(torch.ones(3, dtype=getattr(torch, dtype)))
    optimizer = optim.AdamW([p], lr=0.25)
    p.grad = torch.ones_like(p)
    optimizer.step()
    assert p.dtype is getattr(torch, dtype) and p[0].item() == pytest.approx(0.75, abs=0.01)


def test_groups():
    p, q = parameter(1.0), parameter(1.0)
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    (p + q).backward()
    optimizer.step()
    assert p.item() == pytest.approx(0.9) and q.item() == 0.5
    optimizer.add_param_group({"params": parameter(2.0)})
    assert optimizer.param_groups[2]["lr"] == 0.1


def test_text():
    assert repr(optim.SGD([parameter(1.0)], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_state(copied):
    p, q = parameter(1.0, 2.0), parameter(1.0, 2.0)
    first, second = optim.Adam([p]), optim.Adam([q])
    steps(first, p, [1.0, 2.0])
    state = first.state_dict()
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["param_groups"][0]["params"] == [0]
    second.load_state_dict(copied(state))
    q.data.copy_(p.data)
    assert steps(first, p, [0.5, 0.5]) == steps(second, q, [0.5, 0.5])
    assert second.state[q]["step"].item() == 2


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: optim.SGD([], 0.1), ValueError, "empty parameter list"),
        (lambda: optim.SGD(parameter(1.0), 0.1), TypeError, "should be an iterable of Tensors"),
        (lambda: optim.SGD([parameter(1.0)], -1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([parameter(1.0) * 2], 0.1), ValueError, "can't optimize a non-leaf"),
        (lambda: optim.SGD([3], 0.1), TypeError, "can only optimize Tensors"),
        (
            lambda: optim.Adam([parameter(1.0)], betas=(1.0, 0.9)),
            ValueError,
            "Invalid beta parameter at index 0: 1.0",
        ),
        (
            lambda: optim.SGD([parameter(1.0)], 0.1, nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum above 0",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_fused_steps_check_their_lists():
    step = ops.sgd_step_
    options = {
        "lr": 0.1,
        "momentum": 0.0,
        "dampening": 0.0,
        "weight_decay": 0.0,
        "nesterov": False,
        "maximize": False,
        "first": False,
    }
    for params, grads in (
        ([torch.ones(2)], [torch.ones(3)]),
        ([torch.ones(2)], []),
        ([torch.ones(2)], [torch.ones(2, dtype=torch.float64)]),
        ([torch.ones(1).expand(2)], [torch.ones(2)]),
    ):
        with pytest.raises(RuntimeError):
            step(params, grads, [], **options)


def test_closure_and_hooks():
    p = parameter(1.0)
    optimizer, log = optim.SGD([p], lr=0.5), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("after"))

    def closure():
        log.append("closure")
        optimizer.zero_grad()
        loss = (p * 3).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 3
    assert p.item() == -0.5 and log == ["before", "closure", "after"]


def test_zero_grad():
    p = parameter(1.0)
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = torch.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0
    optimizer.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize(
    "make, rates",
    [
        (lambda s, o: s.StepLR(o, 2, 0.1), [1, 1, 0.1, 0.1, 0.01]),
        (lambda s, o: s.MultiStepLR(o, [1, 3], 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
        (lambda s, o: s.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda s, o: s.LambdaLR(o, lambda e: 1 / (e + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (lambda s, o: s.LinearLR(o, 0.2, 1.0, 4), [0.2, 0.4, 0.6, 0.8, 1.0]),
        (lambda s, o: s.CosineAnnealingLR(o, 4), [1, 0.8536, 0.5, 0.1464, 0.0]),
        (
            lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.5)], [2]),
            [0.1, 0.1, 1.0, 0.5, 0.25],
        ),
    ],
)
def test_schedules(make, rates):
    optimizer = optim.SGD([parameter(1.0)], lr=1.0)
    schedule = make(optim.lr_scheduler, optimizer)
    seen = []
    for _ in rates:
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert seen == pytest.approx(rates, abs=1e-4)


def test_plateau():
    optimizer = optim.SGD([parameter(1.0)], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    for measure in (3.0, 2.0, 2.0, 2.0, 1.0):
        schedule.step(measure)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_order_of_calls_is_watched():
    schedule = optim.lr_scheduler.StepLR(optim.SGD([parameter(1.0)], lr=1.0), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RMSprop", "LBFGS", "ASGD", "NAdam"])
def test_steps_leave_a_loaded_state_alone(name):
    """What was loaded belongs to the caller, who may load it again."""
    p = nn.Parameter(torch.ones(3))
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}

    def stepped(optimizer):
        def loss():
            optimizer.zero_grad()
            total = (p * p).sum()
            total.backward()
            return total

        optimizer.step(loss)
        return optimizer

    make = getattr(optim, name)
    state = stepped(make([p], lr=0.1, **options)).state_dict()
    state["state"]["extra"] = {"t": torch.ones(1)}
    kept = copy.deepcopy(state)
    other = make([p], lr=0.1, **options)
    other.load_state_dict(state)
    stepped(other)
    other.state["extra"]["t"].zero_()
    other.param_groups[0]["lr"] = 5.0
    assert str(state) == str(kept)


COMPLEX = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.1, "lr_decay": 0.5}),
    ("Adadelta", {"lr": 1.0, "maximize": True}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
    ("Rprop", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1}),
]


@pytest.mark.parametrize("name, options", COMPLEX)
def test_complex_numbers_step_as_two_real_ones(name, options):
    torch.manual_seed(0)
    p = nn.Parameter(torch.randn(3, dtype=torch.complex64))
    q = nn.Parameter(torch.view_as_real(p.detach()).clone())
    pairs = [getattr(optim, name)([each], **options) for each in (p, q)]
    for _ in range(8):
        p.grad = torch.randn(3, dtype=torch.complex64)
        q.grad = torch.view_as_real(p.grad).clone()
        for optimizer in pairs:
            optimizer.step()
    torch.testing.assert_close(torch.view_as_real(p.detach()), q.detach())


@pytest.mark.parametrize("differentiable", [False, True])
def test_variances_of_gradients_are_not_negative(differentiable):
    """Of equal gradients rounding leaves a negative one, of large ones the squares overflow."""
    sizes = torch.tensor([1e200, 0.1, 1 / 3, 1e-3, 1e-200, 0.0], dtype=torch.float64)
    weights = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    weights = weights.clone() if differentiable else weights  # which is no leaf, and may be written
    options = {"centered": True, "lr": 1e-3, "alpha": 0.9, "differentiable": differentiable}
    optimizer = torch.optim.RMSprop([weights], **options)
    for _ in range(500):
        weights.grad = sizes.clone()
        optimizer.step()
    assert weights.isfinite().all(), weights


@pytest.mark.parametrize(
    "name",
    [
        "Adadelta",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "SGD",
        "ASGD",
        "Rprop",
    ],
)
@pytest.mark.parametrize("size", [1e200, 1e-200, 0.0, 1e155])
def test_steps_along_extreme_gradients_are_numbers(name, size):
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([weights], lr=1e-3)
    for _ in range(10):
        weights.grad = torch.tensor([size, -size, 1.0], dtype=torch.float64)
        optimizer.step()
    assert not weights.isnan().any(), weights


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "name",
    [
        "NAdam",
        "ASGD",
        "Adam",
        "AdamW",
        "RAdam",
        "Adamax",
        "Adadelta",
        "Adagrad",
        "RMSprop",
        "Rprop",
    ],
)
def test_states_go_on_in_parameters_of_other_dtypes(name, dtype):
    def made(dtype):
        parameter = torch.nn.Parameter(torch.ones(3, dtype=dtype))
        parameter.grad = torch.ones(3, dtype=dtype)
        return parameter, getattr(torch.optim, name)([parameter], lr=0.125)

    source, optimizer = made(torch.float32)
    for _ in range(2):
        optimizer.step()
    parameter, other = made(dtype)
    with torch.no_grad():
        parameter.copy_(source)
    other.load_state_dict(optimizer.state_dict())
    optimizer.step()
    other.step()
    torch.testing.assert_close(parameter.float(), source, rtol=2e-2, atol=1e-2)
    assert other.state[parameter]["step"].dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bfloat16, int, float])
@pytest.mark.parametrize(
    "name",
    [
        "Adam",
        "AdamW",
        "NAdam",
        "RAdam",
        "Adamax",
        "Adagrad",
        "RMSprop",
        "ASGD",
        "Adadelta",
        "Rprop",
    ],
)
def test_loaded_counts_of_any_dtype(name, dtype):
    """PyTorch's have the default dtype of the program that saved them; old files have numbers."""

    def made():
        parameter = nn.Parameter(torch.ones(3))
        parameter.grad = torch.tensor([1.0, -2, 3])
        return parameter, getattr(optim, name)([parameter])

    parameter, optimizer = made()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    count = state["state"][0]["step"]
    state["state"][0]["step"] = dtype(count) if isinstance(dtype, type) else count.to(dtype)
    other_parameter, other = made()
    other_parameter.data.copy_(parameter.data)
    other.load_state_dict(state)
    optimizer.step()
    other.step()
    assert torch.equal(parameter, other_parameter)
    assert other.state[other_parameter]["step"].item() == 2
