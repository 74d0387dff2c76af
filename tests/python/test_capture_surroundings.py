"""What a captured step depends on beside its arguments: after any change it does what the step does."""

from __future__ import annotations

import argparse
import copy
import gc
import types
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import capture

from .test_capture import assert_same_bits

CONSTANTS = types.ModuleType("program_of_constants")
CONSTANTS.scale = CONSTANTS.offset = 1.0
scale = 1.0


class Settings:
    shared = 1.0  # of the class

    def __init__(self):
        self.own = 1.0
        self.parts = {"weights": [1.0, 2.0], "names": {"a"}}


class Tanh(nn.Module):
    pass


class Case:
    """A network, its optimiser and a step that uses all that a program may have."""

    def __init__(self, optimizer="adam"):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), Tanh(), nn.Linear(8, 4), nn.Dropout(0.0))
        make = {
            "adam": lambda p: torch.optim.Adam(p, lr=0.05),
            "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        }[optimizer]
        self.optimizer = make(self.model.parameters())
        self.settings = Settings()
        self.arguments = argparse.Namespace(scale=1.0)
        self.extra = torch.ones(4)
        self.count, self.history = 0, []
        self.closed = 1.0

        def set_closed(value):
            nonlocal closed
            closed = value

        closed = 1.0
        self.set_closed = set_closed
        self.call_closed = lambda x: x * closed

    def factor(self):
        s = self.settings
        return s.own * s.shared * s.parts["weights"][0] * len(s.parts["names"]) * scale

    def step(self, x):
        self.optimizer.zero_grad()
        y = shifted(self.call_closed(self.model(x)) * self.factor() * CONSTANTS.scale)
        loss = (y * self.arguments.scale + self.extra).square().mean()
        loss.backward()
        self.optimizer.step()
        self.count += 1  # what a step counts does not matter to it
        self.history.append(loss)
        return loss


def swap(case):
    torch.utils.swap_tensors(case.model[0].weight, nn.Parameter(torch.ones(8, 4)))


def zero_gradient(parameter):
    parameter.grad.zero_()


def set_global(case):
    global scale
    scale = 3.0


CHANGES = {
    "nothing": lambda c: None,
    "a frozen parameter": lambda c: c.model[0].weight.requires_grad_(False),
    "a parameter put in its place": lambda c: setattr(c.model[0], "bias", None),
    "a parameter gone": lambda c: c.model[0]._parameters.__setitem__("bias", None),
    "swapped tensors": swap,
    "states gone": lambda c: c.optimizer.state.clear(),
    "a state gone": lambda c: c.optimizer.state.pop(c.model[0].weight),
    "a state replaced": lambda c: c.optimizer.state.__setitem__(
        c.model[0].weight, copy.deepcopy(c.optimizer.state[c.model[0].weight])
    ),
    "a parameter taken from a group": lambda c: c.optimizer.param_groups[0]["params"].pop(0),
    "a group replaced": lambda c: c.optimizer.param_groups.__setitem__(
        0, dict(c.optimizer.param_groups[0], lr=0.5)
    ),
    "a learning rate": lambda c: c.optimizer.param_groups[0].update(lr=0.5),
    "a submodule replaced": lambda c: c.model.__setitem__(1, nn.ReLU()),
    "a submodule appended": lambda c: c.model.append(nn.Linear(4, 4)),
    "a submodule gone": lambda c: c.model.__delitem__(1),
    "a submodule of the dict": lambda c: c.model._modules.__setitem__("1", nn.Sigmoid()),
    "a method of an object": lambda c: setattr(c.model[1], "forward", lambda x: x * 2),
    "a method of a class": lambda c: setattr(Tanh, "forward", lambda self, x: x * 3),
    "another class": lambda c: setattr(c.model[1], "__class__", nn.Sigmoid),
    "a mode": lambda c: c.model.eval(),
    "a setting": lambda c: setattr(c.model[3], "p", 0.5),
    "a hook": lambda c: c.model[1].register_forward_hook(lambda m, a, y: y * 5),
    "a hook before": lambda c: c.model[1].register_forward_pre_hook(lambda m, a: (a[0] * 5,)),
    "a hook of backward": lambda c: c.model[1].register_full_backward_hook(
        lambda m, a, b: (a[0] * 5,)
    ),
    "a hook of a tensor": lambda c: c.model[0].weight.register_hook(lambda g: g * 0),
    "a hook behind a gradient": lambda c: c.model[0].weight.register_post_accumulate_grad_hook(
        zero_gradient
    ),
    "a hook before a step": lambda c: c.optimizer.register_step_pre_hook(
        lambda o, a, k: [p.grad.zero_() for p in o.param_groups[0]["params"]] and None
    ),
    "a step of the optimiser": lambda c: setattr(c.optimizer, "step", lambda: None),
    "an attribute": lambda c: setattr(c.settings, "own", 2.0),
    "an attribute of a class": lambda c: setattr(Settings, "shared", 2.0),
    "an item of a list": lambda c: c.settings.parts["weights"].__setitem__(0, 2.0),
    "a member of a set": lambda c: c.settings.parts["names"].add("b"),
    "an argument of the program": lambda c: setattr(c.arguments, "scale", 2.0),
    "a closure": lambda c: c.set_closed(2.0),
    "a global": set_global,
    "another name of a module": lambda c: setattr(CONSTANTS, "offset", 2.0),
    "a module of the program": lambda c: setattr(CONSTANTS, "scale", 2.0),
    "a tensor replaced": lambda c: setattr(c, "extra", torch.zeros(4)),
    "a tensor written": lambda c: c.extra.zero_(),
}


def plain_tanh(self, x):
    return x.tanh()


def shifted(x):
    return x + CONSTANTS.offset  # another name of the module than the step's own


def reset():
    """What changes change beside a case."""
    global scale
    scale = Settings.shared = CONSTANTS.scale = CONSTANTS.offset = 1.0
    Tanh.forward = plain_tanh


@pytest.fixture(autouse=True)
def undo():
    yield
    reset()


def run(change, wrap, optimizer):
    reset()
    case = Case(optimizer)
    step = wrap(case.step)
    generator = torch.Generator().manual_seed(1)
    results = []
    for i in range(12):
        if i == 6:
            torch.manual_seed(2)
            change(case)
        results.append(step(torch.randn(5, 4, generator=generator)).detach().clone())
    return step, results + [p.detach() for p in case.model.parameters()]


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name, optimizer):
    _, expected = run(CHANGES[name], lambda step: step, optimizer)
    step, got = run(CHANGES[name], capture, optimizer)
    assert_same_bits(got, expected)
    assert step.replays >= (9 if name in ("nothing", "a tensor written") else 3)


def test_hooks_of_all_modules_and_optimisers():
    results = []
    for wrap in (lambda step: step, capture):
        handles = []

        def change(case, handles=handles):
            handles.append(nn.modules.module.register_module_forward_hook(lambda m, a, y: y * 2))

        try:
            results.append(run(change, wrap, "adam")[1])
        finally:
            for handle in handles:
                handle.remove()
    assert_same_bits(*results)


def test_what_steps_leave_behind_is_not_kept_alive():
    case = Case()
    step = capture(case.step)
    for _ in range(6):
        step(torch.ones(5, 4))
    assert step.replays >= 2
    kept = [weakref.ref(loss) for loss in case.history if loss.grad_fn is not None]
    assert kept
    case.history.clear()
    gc.collect()
    assert [ref() for ref in kept] == [None] * len(kept)


@pytest.mark.parametrize("wrap", [capture, lambda f: torch.compile(f, mode="reduce-overhead")])
def test_a_step_that_can_reach_itself_is_collected(wrap):
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(3, 3)
            self.step = wrap(self.step)

        def step(self, x):
            with torch.no_grad():
                return self.model(x)

    trainer = Trainer()
    for _ in range(6):
        trainer.step(torch.ones(2, 3))
    gone = [weakref.ref(trainer), weakref.ref(trainer.model)]
    del trainer
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_reduce_overhead_sees_changes():
    for name in ("a frozen parameter", "a submodule replaced", "a closure", "a hook"):
        wrap = lambda step: torch.compile(step, mode="reduce-overhead")
        assert_same_bits(
            run(CHANGES[name], wrap, "adam")[1], run(CHANGES[name], lambda step: step, "adam")[1]
        )


def test_steps_that_name_captured_steps():
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(3, 3)
            self.step = capture(self.step)

        def step(self, x):
            with torch.no_grad():
                return self.model(x)

    trainer = Trainer()
    x = torch.ones(2, 3)
    for _ in range(6):
        assert torch.equal(trainer.step(x), trainer.model(x))
    assert trainer.step.replays >= 3


# ---- what is around a call ----


def compiled(function):
    return torch.compile(function, mode="reduce-overhead")


def test_arguments_that_want_gradients_later():
    f = compiled(lambda x: x.sin().sum())
    for _ in range(6):
        f(torch.zeros(2))
    for _ in range(4):
        x = torch.zeros(2, requires_grad=True)
        f(x).backward()
        assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("wrap", [capture, compiled])
def test_transforms_see_the_step(wrap):
    f = wrap(lambda x: x.sin().sum())
    x = torch.zeros(3)
    for _ in range(6):
        f(x)
    for _ in range(4):
        assert torch.func.grad(f)(x).tolist() == [1, 1, 1]
        assert torch.func.jvp(f, (x,), (torch.ones(3),))[1].item() == 3
        assert torch.vmap(f)(torch.ones(2, 3)).shape == (2,)


def test_modes_see_the_step():
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    f = compiled(lambda x: x.sin() + torch.ones(2))
    for _ in range(6):
        f(torch.zeros(2))
    for _ in range(3):
        seen.clear()
        with Mode():
            f(torch.zeros(2))
        assert seen


def test_default_devices_are_heeded():
    f = compiled(lambda: torch.ones(2))
    for _ in range(6):
        assert not f().is_meta
    with torch.device("meta"):
        assert f().is_meta


@pytest.mark.parametrize("kind", ["subclass", "sparse", "nested", "quantised", "array"])
def test_other_arguments_run_as_written(kind):
    class Sub(torch.Tensor):
        pass

    value = {
        "subclass": lambda: torch.ones(3).as_subclass(Sub),
        "sparse": lambda: torch.eye(3).to_sparse(),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
        "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.quint8),
        "array": lambda: np.ones(3),
    }[kind]()
    f = compiled(lambda x: x)
    for _ in range(6):
        assert type(f(value)) is type(value)
    with pytest.raises(TypeError, match="expected dense tensors"):
        capture(lambda x: x)(value)


def test_what_calls_leave_behind_is_left_behind():
    class Holder:
        pass

    holder, kept = Holder(), []

    def attribute(x):
        holder.h = x * 2
        return x + 1

    def appends(x):
        kept.append(x * 3)
        return x + 1

    def marks(x):
        x.requires_grad_()
        return x.detach() + 1

    for step in (attribute, appends, marks):
        f = compiled(step)
        kept.clear()
        for i in range(8):
            x = torch.full((2,), float(i))
            f(x)
            if step is attribute:
                assert holder.h.tolist() == [2 * i, 2 * i]
            elif step is appends:
                assert len(kept) == i + 1
            else:
                assert x.requires_grad


def test_an_argument_that_the_step_finds_itself():
    h = torch.ones(2)

    def step(x):
        h.add_(1)
        return x * 2

    f = capture(step)
    with pytest.raises(RuntimeError, match="also finds by itself"):
        for _ in range(8):
            f(h)


def test_recordings_leave_memory_to_chains():
    """An address that was asked for is known outside, and ops on its memory are noted no more."""

    class Held:
        pass

    held = Held()
    held.weight, held.sparse = torch.ones(20_000), torch.eye(3).to_sparse()
    x = torch.ones(20_000)
    step = capture(lambda x: torch.relu(x * held.weight + 1) if held.sparse is not None else x)
    for _ in range(6):
        step(x)
    assert step.replays >= 3
    explained = torch._dynamo.explain(lambda x: torch.relu(x * held.weight + 1))(x)
    assert "1 chain of 3 steps" in str(explained)
