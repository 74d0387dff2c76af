"""What docstrings of distributions say: density, mean, variance and support, and that formulas give what classes give."""

import inspect
import math
import re

import pytest

import rushlight as torch
from rushlight import distributions
from tests.python.distribution_cases import CASES, arguments, make

FORMULAS = {
    "pi": math.pi,
    **{name: getattr(torch, name) for name in ("exp", "log", "cos", "abs", "atanh")},
    "sqrt": lambda x: x**0.5,
    "gamma": lambda x: torch.lgamma(torch.as_tensor(x)).exp(),
    "beta": lambda a, b: (torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)).exp(),
    "binomial": lambda n, k: torch.exp(
        torch.lgamma(torch.as_tensor(n) + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    ),
    "i0": torch.special.i0,
    "i1": torch.special.i1,
    "prod": lambda x: x.prod(-1),
    "sum": lambda x: x.sum(-1),
}


def said_of(cls):
    """The rows of a docstring that say what a distribution is: word → text."""
    text = " ".join(
        inspect.cleandoc(cls.__doc__).split("\n\n    Args:")[0].split("Args:")[0].split()
    )
    rows = re.split(r"(?:^|(?<=\. ))(Density|Probability|Mean|Variance|Support): ", text)
    return dict(zip(rows[1::2], rows[2::2], strict=True))


def with_short_names(rows, names):
    """The names, and those that formulas of the rows define, such as `z = (x - loc) / scale`."""
    names = dict(names)
    for name, formula in re.findall(r"`(\w+) = ([^`]+)`", " ".join(rows.values())):
        names[name] = eval(formula, FORMULAS, names)
    return names


def test_every_distribution_says_what_it_is():
    base = (distributions.Distribution, distributions.ExponentialFamily)
    for name in distributions.__all__:
        cls = getattr(distributions, name)
        if isinstance(cls, type) and issubclass(cls, base[0]) and cls not in base:
            kind, *others = said_of(cls)
            assert kind in ("Density", "Probability"), name
            assert others == ["Mean", "Variance", "Support"], name


@pytest.mark.parametrize(("name", "case"), CASES)
def test_formulas_of_docstrings_are_right(name, case):
    """What stands in backticks, evaluated, is what the class gives; limits are said in words."""
    made, rows = make(torch, name, case), said_of(getattr(distributions, name))
    torch.manual_seed(0)
    x = made.sample((3,))
    names = {**arguments(torch, name, case), **made.arg_constraints}
    names = {key: getattr(made, key) for key in names} | {"x": x.double()}
    names, kind = with_short_names(rows, names), next(iter(rows))
    for word, found in {
        kind: lambda: made.log_prob(x).exp(),
        "Mean": lambda: made.mean,
        "Variance": lambda: made.variance,
    }.items():
        formula = re.match(r"(?:of each \w+ )?`([^`]+)`", rows[word])
        if formula:
            said = torch.as_tensor(eval(formula[1], FORMULAS, names), dtype=torch.float64)
            said, right = torch.broadcast_tensors(said, found().double())
            fits = said.isfinite() & right.isfinite()
            assert fits.any(), word
            torch.testing.assert_close(said[fits], right[fits], rtol=1e-5, atol=1e-8)
