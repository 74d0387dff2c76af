"""Schedules one after the other and at once, against their rates written out."""

import copy
import inspect
import itertools
import math
import re

import pytest

import rushlight as torch
from docs import pictures
from rushlight import nn, optim
from rushlight.optim import lr_scheduler as s


def cosine(t, length):
    return (1 + math.cos(math.pi * t / length)) / 2


def one_cycle(t):
    """Of OneCycleLR(o, 1.0, 20): 5 steps up, 14 down."""
    low, end = 1 / 25, 1 / 25e4
    return 1 + (low - 1) * cosine(t, 5) if t <= 5 else end + (1 - end) * cosine(t - 5, 14)


# name: (the schedule, its rate after t steps of an initial rate of 1)
FACTORS = {
    "step": (lambda o: s.StepLR(o, 2, 0.5), lambda t: 0.5 ** (t // 2)),
    "steps": (lambda o: s.MultiStepLR(o, [0, 2], 0.5), lambda t: 0.5 ** (1 + (t >= 2))),
    "constant": (lambda o: s.ConstantLR(o, 0.1, 2), lambda t: 1 if t >= 2 else 0.1),
    "linear": (lambda o: s.LinearLR(o, 0.25, 1.0, 3), lambda t: min(0.25 * (t + 1), 1)),
    "exponential": (lambda o: s.ExponentialLR(o, 0.9), lambda t: 0.9**t),
    "polynomial": (lambda o: s.PolynomialLR(o, 9, 2.0), lambda t: (1 - min(t, 9) / 9) ** 2),
    "cosine": (lambda o: s.CosineAnnealingLR(o, 9), lambda t: cosine(t, 9)),
}
# These set rates whatever they are: times the initial one, or not (the last two).
OTHERS = {
    "lambda": (lambda o: s.LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 1 / (t + 1)),
    "restarts": (lambda o: s.CosineAnnealingWarmRestarts(o, 3), lambda t: cosine(t % 3, 3)),
    "cyclic": (
        lambda o: s.CyclicLR(o, 0.2, 1.0, 2, cycle_momentum=False),
        lambda t: 0.2 + 0.4 * (2 - abs(t % 4 - 2)),
    ),
    "one": (lambda o: s.OneCycleLR(o, 1.0, 20, cycle_momentum=False), one_cycle),
}
ALL = FACTORS | OTHERS
PAIRS = list(itertools.product(ALL, ALL))
STEPS = 9


def optimizer():
    return optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)


def part(name, o):
    """A schedule, and its rates with the initial rate that the optimiser has for it."""
    made = ALL[name][0](o)
    base = 1.0 if name in ("cyclic", "one") else o.param_groups[0]["initial_lr"]
    return made, lambda t: base * ALL[name][1](t)


def run(o, schedule, steps=STEPS):
    seen = [o.param_groups[0]["lr"]]
    for _ in range(steps):
        o.step()
        schedule.step()
        seen.append(o.param_groups[0]["lr"])
        assert schedule.get_last_lr() == seen[-1:]
    return seen


def after(first, second, milestone):
    return lambda t: first(t) if t < milestone else second(t - milestone)


def written_out(rate):
    return pytest.approx([rate(t) for t in range(STEPS + 1)], abs=1e-12)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_one_after_the_other(one, two):
    for milestone in (0, 1, 4):
        o = optimizer()
        (a, first), (b, second) = part(one, o), part(two, o)
        schedule = s.SequentialLR(o, [a, b], [milestone])
        assert run(o, schedule) == written_out(after(first, second, milestone))


@pytest.mark.parametrize("one", ALL)
def test_sequences_within_sequences(one):
    o = optimizer()
    (a, first), (b, second), (c, third) = part(one, o), part("constant", o), part("linear", o)
    schedule = s.SequentialLR(o, [a, s.SequentialLR(o, [b, c], [3])], [2])
    assert run(o, schedule) == written_out(after(first, after(second, third, 3), 2))
    o = optimizer()
    (a, first), (b, second), (c, third) = part(one, o), part("constant", o), part("linear", o)
    schedule = s.SequentialLR(o, [s.SequentialLR(o, [a, b], [3]), c], [6])
    assert run(o, schedule) == written_out(after(after(first, second, 3), third, 6))
    o = optimizer()
    (a, first), (b, second), (c, third) = part("constant", o), part(one, o), part("step", o)
    schedule = s.SequentialLR(o, [a, b, c], [0, 4])
    assert run(o, schedule) == written_out(after(second, third, 4))


def both(first, second, one, two):
    """The rates of two schedules at once: a factor is what it changes from step to step."""

    def rate(t):
        if two in OTHERS:
            return second(t)
        if one in FACTORS:
            return first(t) * FACTORS[two][1](t)
        factor = FACTORS[two][1]
        return first(t) * (factor(t) / factor(t - 1) if t else factor(0))

    return rate


@pytest.mark.parametrize(("one", "two"), [p for p in PAIRS if p[1] not in ("cyclic", "one")])
def test_two_at_once(one, two):
    o = optimizer()
    (a, first), (b, second) = part(one, o), part(two, o)
    # The second one has moved the rate that the first one had set, as it was made.
    schedule = s.ChainedScheduler([a, b])
    assert run(o, schedule, 8) == pytest.approx(
        [both(first, second, one, two)(t) for t in range(9)], abs=1e-12
    )


@pytest.mark.parametrize(("one", "two"), itertools.product(FACTORS, FACTORS))
def test_chains_in_sequences_and_sequences_in_chains(one, two):
    o = optimizer()
    (a, first), (b, second), (c, third) = part(one, o), part(two, o), part("constant", o)
    chain = both(first, second, one, two)
    schedule = s.SequentialLR(o, [s.ChainedScheduler([a, b]), c], [4])
    assert run(o, schedule) == written_out(after(chain, third, 4))
    o = optimizer()
    (a, _), (b, _), (c, third) = part(one, o), part(two, o), part("constant", o)
    schedule = s.SequentialLR(o, [c, s.ChainedScheduler([a, b])], [3])
    assert run(o, schedule) == written_out(after(third, chain, 3))
    for order in (1, -1):
        o = optimizer()
        (a, _), (b, _), (c, _) = part(one, o), part(two, o), part("constant", o)
        schedule = s.ChainedScheduler([c, s.SequentialLR(o, [a, b], [4])][::order])
        sequence = after(first, second, 4)
        assert run(o, schedule) == written_out(lambda t, s=sequence: third(t) * s(t))


def copies(o, make, k):
    """A schedule after k steps, and one that goes on from its state."""
    schedule = make(o)
    run(o, schedule, k)
    other = optimizer()
    again = make(other)
    again.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other.load_state_dict(copy.deepcopy(o.state_dict()))
    return schedule, other, again


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_states_go_on(one, two):
    makers = [
        lambda o: s.SequentialLR(o, [ALL[one][0](o), ALL[two][0](o)], [3]),
        lambda o: s.ChainedScheduler([ALL[one][0](o), ALL[two][0](o)]),
    ]
    if one in FACTORS:
        makers.append(
            lambda o: s.ChainedScheduler(
                [ALL[one][0](o), s.SequentialLR(o, [ALL["constant"][0](o), ALL[two][0](o)], [3])]
            )
        )
    for make, k in itertools.product(makers, (0, 2, 3, 4)):
        o = optimizer()
        schedule, other, again = copies(o, make, k)
        assert run(o, schedule, 5) == run(other, again, 5)


@pytest.mark.parametrize(("one", "two"), [p for p in PAIRS if not {"cyclic", "one"} & set(p)])
def test_sequences_begin_at_any_epoch(one, two):
    for k in (0, 1, 3, 5):
        o = optimizer()
        o.param_groups[0]["initial_lr"] = 1.0
        (a, first), (b, second) = part(one, o), part(two, o)
        schedule = s.SequentialLR(o, [a, b], [3], last_epoch=k - 1)
        assert schedule.last_epoch == k
        rate = after(first, second, 3)
        assert run(o, schedule, 4) == pytest.approx([rate(t) for t in range(k, k + 5)], abs=1e-12)


def test_rates_of_every_group_and_tensors():
    p, q = (nn.Parameter(torch.ones(1)) for _ in range(2))
    o = optim.SGD([{"params": [p]}, {"params": [q], "lr": torch.tensor(0.5)}], lr=1.0)
    kept = o.param_groups[1]["lr"]
    schedule = s.ChainedScheduler(
        [s.ExponentialLR(o, 0.5), s.SequentialLR(o, [s.ConstantLR(o, 0.5, 9), s.StepLR(o, 9)], [1])]
    )
    seen = []
    for _ in range(3):
        seen.append([float(g["lr"]) for g in o.param_groups])
        o.step()
        schedule.step()
    assert seen == [[0.5, 0.25], [0.5, 0.25], [0.25, 0.125]]
    assert o.param_groups[1]["lr"] is kept


@pytest.mark.parametrize("kind", [s.LambdaLR, s.MultiplicativeLR])
def test_a_state_of_other_functions_is_refused(kind):
    def scheduled(groups):
        parameters = [{"params": [nn.Parameter(torch.ones(1))]} for _ in range(groups)]
        return kind(optim.SGD(parameters, lr=1.0), lambda t: 0.5)

    ours, state = scheduled(1), scheduled(2).state_dict()
    before = dict(ours.__dict__)
    with pytest.raises(ValueError, match=r"has 1 functions, .* the state is of 2"):
        ours.load_state_dict(state)
    assert ours.__dict__ == before


# ---- what docstrings say ----


@pytest.mark.parametrize("name", pictures.SCHEDULES)
def test_docstrings_say_the_rate_and_when_to_step(name):
    """A formula of a docstring gives the rates that the schedule sets."""
    cls = getattr(s, name, None) or getattr(optim.swa_utils, name)
    said = " ".join(cls.__doc__.partition("Args:")[0].split())
    assert "When to step: after each" in said
    formula = re.search(r"Rate after t steps: `([^`]+)`(?:, with `(\w+) = ([^`]+)`)?", said)
    if formula is None:  # in words
        assert "Rate after t steps: " in said
        return
    given = inspect.signature(cls).bind(None, **pictures.values_of(pictures.SCHEDULES[name]))
    given.apply_defaults()
    for t, rate in enumerate(pictures.rates(name)):
        names = {**given.arguments, "lr": 1.0, "t": t, "cos": math.cos, "pi": math.pi}
        if formula[2]:
            names[formula[2]] = eval(formula[3], names)
        assert rate == pytest.approx(eval(formula[1], names)), t


def test_every_schedule_says_when_to_step():
    for name in s.__all__:
        assert "When to step: after each" in getattr(s, name).__doc__, name
