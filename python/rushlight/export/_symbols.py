"""Symbols of sizes: those of arguments, and those that only values of tensors say (u0, u1 …)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from rushlight._subclasses.fake_tensor import DataDependentOutputException
from rushlight.export._expressions import Expression
from rushlight.export._sizes import FloatRange, Range, SizeBool, SizeFloat, SizeInt, _plain
from rushlight.export.dynamic_shapes import Dim

__all__ = ["Outside", "Symbol", "Unknowns", "interval", "slope"]

_PRIMES = (17, 23, 29, 37, 43, 53, 61, 71, 79, 89, 97, 107, 113, 127, 137, 149, 157, 167, 179, 191)


@dataclass
class Symbol:
    """An open size: where it is in the arguments, what it was there, what it can be."""

    name: str
    hint: int
    range: Range
    source: str  # L['x'].size()[0]
    dim: Dim | None = None
    auto: bool = False
    excluded: set[int] = field(default_factory=set)
    asked: Any = ()  # the frames of the question that has made the range narrower
    most: float | None = None  # of what values say: what it was at most in the first run

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.dim.__name__ if self.dim is not None else self.source

    @property
    def is_unknown(self) -> bool:
        """Whether only values of tensors say what it is."""
        return self.most is not None

    @property
    def is_float(self) -> bool:
        """Whether it is a float, which a tensor says."""
        return isinstance(self.range, FloatRange)

    def choices(self, count: int, at: int) -> list[Any]:
        """Sizes that it can have beside that of the example, different ones for each symbol."""
        found: list[Any] = []
        if self.is_float:
            return [n + 0.375 + at / 64 for n in _PRIMES[:count]]
        least = max(self.range.lower, 2)
        tried = itertools.chain(
            _PRIMES[(5 * at) % 7 :],
            range(self.hint + 1, self.hint + 40),
            range(int(least), int(least) + 40),
            range(2) if self.is_unknown else (),
        )
        for n in tried:
            if n in self.range and n not in self.excluded and n != self.hint and n not in found:
                found.append(n)
            if len(found) == count:
                return found
        high = self.range.upper
        if self.range.bounded and high not in (*found, self.hint) and high >= 2:
            found.append(int(high))
        return found


def slope(difference: Expression) -> int | None:
    """The factor of the only symbol, if the expression is a line."""
    factors = [(monomial, c) for monomial, c in difference.terms.items() if monomial]
    if len(factors) != 1 or len(factors[0][0]) != 1 or factors[0][0][0].args is not None:
        return None
    return factors[0][1] if isinstance(factors[0][1], int) else None


def interval(name: str, difference: Expression, symbol: str, scale: int) -> tuple[Any, Any]:
    """The sizes for which a line fulfils a comparison with 0."""
    rest = -difference.value({symbol: 0})  # scale * size, compared with it
    low, high = -math.inf, math.inf
    if scale < 0:
        scale, rest = -scale, -rest
        name = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(name, name)
    if name == "gt":
        low = rest // scale + 1
    elif name == "ge":
        low = -(-rest // scale)
    elif name == "lt":
        high = -(-rest // scale) - 1
    elif name == "le":
        high = rest // scale
    elif name == "eq" and rest % scale == 0:
        low = high = rest // scale
    return low, high


class Outside(Exception):
    """A number that a run has chosen is none of those that the program allows later."""


def _first_of(allowed: Range, at: int) -> int:
    """A number of a range, no 0 and no 1 where there are others; several symbols have others."""
    tried = [n for n in (7, 5, 3, 2) if n in allowed]
    ends = [int(n) for n in (allowed.upper, allowed.lower) if math.isfinite(n)]
    found = tried or ends or [0]
    return found[at % len(found)]


def _within(allowed: Range, wanted: int) -> int:
    """A number of a range, another one for each that is wanted: no 0, 1 or end where others are."""
    low = int(max(allowed.lower, 2))
    high = int(allowed.upper) if allowed.bounded else low + 100
    if high - low < 2:
        low = int(max(allowed.lower, high - 4))
    return low + wanted % max(high - low, 1)


class Unknowns:
    """What one run takes for the numbers that only values of tensors say.

    Args:
        sizes: the numbers of the run by symbol; it gains those of new symbols.
        symbols: those of all runs; it gains new ones.
    """

    def __init__(self, sizes: dict[str, int], symbols: dict[str, Symbol]) -> None:
        self.sizes, self.symbols = sizes, symbols
        self.checks: list[tuple[str, tuple[Any, ...]]] = []  # that are more than a range
        self._count = self._floats = 0

    def new_float(self, log: Any) -> SizeFloat:
        """The number that stands for the next float that a tensor has."""
        name = f"zuf{self._floats}"
        if name not in self.symbols:
            anything = FloatRange(-math.inf, math.inf)
            hint: Any = 2.625 + self._floats
            self.symbols[name] = Symbol(name, hint, anything, name, most=math.inf)
        self._floats += 1
        value: Any = self.sizes.setdefault(name, self.symbols[name].hint)
        return SizeFloat(value, Expression.symbol(name), log)

    def new_bool(self, log: Any) -> SizeBool:
        """What stands for the next truth value that a tensor has: whether a number is 1."""
        number = self.new(0, 1, log)
        return SizeBool("eq", (number, 1), int(number) == 1, log)

    def new(self, lower: float, upper: float, log: Any) -> SizeInt:
        """The number that stands for the next one, which is within these bounds."""
        at, name = self._count, f"u{self._count}"
        self._count += 1
        symbol = self.symbols.get(name)
        if symbol is None:
            known = Range(lower, upper)
            symbol = Symbol(name, _first_of(known, at), known, name, most=upper)
            self.symbols[name] = symbol
        elif symbol.most != upper and symbol.range.upper == symbol.most:
            symbol.most, symbol.range = math.inf, Range(symbol.range.lower, math.inf)
        value = self.sizes[name] = int(min(self.sizes.get(name, symbol.hint), upper))
        return SizeInt(value, Expression.symbol(name), log)

    # ---- what the program says and asks ----

    def _difference(self, question: SizeBool) -> Expression | None:
        left, right = (
            getattr(v, "expr", None) if isinstance(v, SizeInt | SizeFloat) else Expression.of(v)
            for v in question.operands
        )
        return None if left is None or right is None else left - right

    def expected(self, question: SizeBool) -> None:
        """The program says that a comparison holds: a range is narrower, or a check is left.

        Raises:
            Outside: the numbers of this run do not fulfil it; others are set.
        """
        difference = self._difference(question)
        here = difference  # in terms of what is unknown, other sizes as they are in this run
        if here is None:
            a, b = (getattr(v, "expr", None) or Expression.of(_plain(v)) for v in question.operands)
            here = a - b
        scale = slope(here)
        name = next(iter(here.symbols()), "")
        if scale is None or question.name == "ne" or self.symbols[name].is_float:
            self.checks.append((question.name, tuple(map(_plain, question.operands))))
            return
        symbol = self.symbols[name]
        low, high = interval(question.name, here, name, scale)
        allowed = Range(max(low, symbol.range.lower), min(high, symbol.range.upper))
        if allowed.lower > allowed.upper:
            raise RuntimeError(f"{question} holds for no {name} in {symbol.range}")
        if difference is not None:
            symbol.range = allowed
        else:
            self.checks.append((question.name, tuple(map(_plain, question.operands))))
        if self.sizes[name] not in allowed:
            self.sizes[name] = _within(allowed, self.sizes[name])
            if symbol.hint not in symbol.range:
                symbol.hint = self.sizes[name]
            raise Outside

    def decided(self, question: SizeBool) -> bool:
        """The truth of a comparison by the ranges of its symbols.

        Raises:
            DataDependentOutputException: they do not say it.
        """
        difference = self._difference(question)
        low, high = (-math.inf, math.inf) if difference is None else self._bounds(difference)
        compare = {
            "ge": (low >= 0, high < 0),
            "gt": (low > 0, high <= 0),
            "le": (high <= 0, low > 0),
            "lt": (high < 0, low >= 0),
            "eq": (low == high == 0, low > 0 or high < 0),
            "ne": (low > 0 or high < 0, low == high == 0),
        }
        holds, fails = compare[question.name]
        if not holds and not fails:
            raise DataDependentOutputException(question)
        return holds

    def _bounds(self, difference: Expression) -> tuple[float, float]:
        """Between which numbers a sum of symbols is; anything else may be any number."""
        low = high = 0.0
        for monomial, factor in difference.terms.items():
            ends = [1.0, 1.0]
            for atom in monomial:
                if atom.args is not None or len(monomial) > 1:
                    return -math.inf, math.inf
                known = self.symbols[atom.name].range
                ends = [float(known.lower), float(known.upper)]
            low, high = low + min(factor * e for e in ends), high + max(factor * e for e in ends)
        return low, high
