"""What an exported module asks of its arguments before it runs."""

from __future__ import annotations

import math
import re
from typing import Any

from rushlight import Tensor, nn
from rushlight.export._expressions import Expression
from rushlight.export._sizes import SizeInt
from rushlight.utils import _pytree as pytree

__all__ = ["GuardsFn", "check_call", "range_guards", "static_guards"]

# All that conditions call; those with other functions are left out (`range_guards`).
_SPACE: dict[str, Any] = {
    "Max": max,
    "Min": min,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "ToFloat": float,
    "IntTrueDiv": lambda a, b: a / b,
    "FloatPow": lambda a, b: a**b,
    "FloatMul": lambda a, b: a * b,
}
_PLAIN = (int, float, bool, str, type(None))


class GuardsFn(nn.Module):
    """Raises AssertionError where an argument differs from what was exported.

    Args:
        names: of the arguments, in order.
        guards: conditions on them in Python: "x.size()[0] == 2".
    """

    is_impure = True  # a graph keeps its call

    def __init__(self, names: list[str], guards: list[str]) -> None:
        super().__init__()
        self._names, self._guards = names, guards
        source = f"lambda {', '.join(names)}: ({''.join(f'{g}, ' for g in guards)})"
        code = compile(source, "<guards of an exported module>", "eval")
        self._conditions = eval(code, dict(_SPACE))

    def forward(self, *args: Any) -> None:
        """Check the arguments."""
        try:
            held = self._conditions(*args)
        except (IndexError, AttributeError, TypeError) as error:
            raise AssertionError(f"Guard failed: {self._first_failing(args, error)}") from error
        for guard, fine in zip(self._guards, held, strict=True):
            if not fine:
                raise AssertionError(f"Guard failed: {guard}")

    def _first_failing(self, args: tuple[Any, ...], error: Exception) -> str:
        space = dict(zip(self._names, args, strict=True))
        for guard in self._guards:
            try:
                if not eval(guard, dict(_SPACE), space):
                    return guard
            except (IndexError, AttributeError, TypeError):
                return guard
        return str(error)


def static_guards(name: str, value: Any) -> list[str]:
    """Conditions that an argument has the fixed sizes of `value`, or is that number."""
    if isinstance(value, Tensor):
        sizes = enumerate(value.shape)
        return [f"{name}.size()[{i}] == {n}" for i, n in sizes if not isinstance(n, SizeInt)]
    if isinstance(value, SizeInt):
        return []
    if value is None or isinstance(value, bool):
        return [f"{name} is {value}"]
    if isinstance(value, float) and not math.isfinite(value):
        return []
    return [f"{name} == {value!r}"] if isinstance(value, _PLAIN) else []


def range_guards(inputs: list[Any], ranges: dict[Any, Any]) -> list[str]:
    """Conditions on open sizes: their ranges, and how they depend on each other.

    Args:
        inputs: the nodes of the arguments.
        ranges: by expression, what a size can be.
    """
    of_symbol: dict[str, str] = {}
    sizes = [
        (f"{node.name}.size()[{i}]", n.expr)
        for node in inputs
        if isinstance(node.meta["val"], Tensor)
        for i, n in enumerate(node.meta["val"].shape)
        if isinstance(n, SizeInt) and n.expr is not None
    ]
    sizes += [
        (node.name, node.meta["val"].expr)
        for node in inputs
        if isinstance(node.meta["val"], SizeInt)
    ]
    guards, settled = [], set()
    for text, expr in sizes:
        if expr.name is not None and expr.name not in of_symbol:
            of_symbol[expr.name] = text
            settled.add(text)
            guards += _within(text, ranges.get(expr), 1, 0)
    for text, expr in sizes:  # what stands in no size alone: 2*n is even
        name, factor, rest = _linear(expr)
        if name is not None and name not in of_symbol:
            shifted = f"({text} - {rest})" if rest else text
            of_symbol[name] = f"({shifted} // {factor})"
            settled.add(text)
            guards += [f"{shifted} % {factor} == 0"] if factor > 1 else []
            guards += _within(text, ranges.get(Expression.symbol(name)), factor, rest)
    for text, expr in sizes:
        known = text not in settled and expr.symbols() <= set(of_symbol)
        if known and expr.functions() <= set(_SPACE):
            guards.append(f"{text} == {python_text(expr, of_symbol)}")
    return guards


def _within(text: str, known: Any, factor: int, rest: int) -> list[str]:
    """Conditions that a size is `factor` times a number of a range, and `rest`."""
    guards = []
    if known is not None and factor * known.lower + rest > 0:
        guards.append(f"{text} >= {factor * known.lower + rest}")
    if known is not None and known.bounded:
        guards.append(f"{text} <= {factor * known.upper + rest}")
    return guards


def _linear(expr: Any) -> tuple[str | None, int, int]:
    """The name, the factor and the rest of `factor * name + rest`; None for anything else."""
    rest = expr.terms.get((), 0)
    others = {m: c for m, c in expr.terms.items() if m}
    name = Expression(dict.fromkeys(others, 1)).name
    factor = next(iter(others.values()), 0)
    if name is None or not isinstance(factor, int) or not isinstance(rest, int) or factor <= 0:
        return None, 0, 0
    return name, factor, rest


def python_text(expr: Any, of_symbol: dict[str, str]) -> str:
    """An expression in Python, in terms of the sizes that its symbols are."""
    text = str(expr)
    for name, size in of_symbol.items():
        text = re.sub(rf"\b{re.escape(name)}\b", size, text)
    return text


def check_call(in_spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call in the order of the spec of all arguments.

    Raises:
        ValueError: arguments are not built like those that were exported.
    """
    _, spec_kwargs = in_spec.children()
    expected: list[str] = list(spec_kwargs.context or ())
    if set(expected) != set(kwargs):
        raise ValueError(
            f"kwarg keyword mismatch: {list(kwargs)} were passed by name, and {expected} when the "
            "program was exported"
        )
    ordered = {name: kwargs[name] for name in expected}
    _, given = pytree.tree_flatten((args, ordered))
    if given != in_spec:
        raise ValueError(
            f"the arguments do not fit the exported input tree spec, {in_spec}: theirs is {given}. "
            "Pass as many arguments, in the same containers, as those that were exported."
        )
    return ordered
