"""Sizes that know where they come from: numbers with an expression, or with a log of their use."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from rushlight._sym import SymBool, SymFloat, SymInt
from rushlight.export._expressions import Expression

__all__ = ["FloatRange", "Log", "Range", "SizeBool", "SizeFloat", "SizeInt", "int_oo"]


class _Infinity(float):
    def __repr__(self) -> str:
        return "int_oo" if self > 0 else "-int_oo"

    def __neg__(self) -> _Infinity:
        return _Infinity(-float(self))

    __str__ = __repr__


int_oo = _Infinity("inf")


class Range:
    """What a size can be, from `lower` to `upper`."""

    def __init__(self, lower: int | float, upper: int | float) -> None:
        self.lower = -int_oo if lower == -math.inf else lower
        self.upper = int_oo if upper == math.inf else upper

    @property
    def bounded(self) -> bool:
        """Whether there is an upper end."""
        return self.upper != math.inf

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.lower <= value <= self.upper

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper}]"


class FloatRange(Range):
    """What a float can be."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.lower <= value <= self.upper

    def __repr__(self) -> str:
        return super().__repr__().replace("int_oo", "oo")


class Log:
    """What a program has done with sizes, in order: computed others, or asked a question.

    A row is the name of the operation, its operands, its result, and where that was. Of numbers
    that depend on values `unknowns` decides.
    """

    def __init__(self, where: Callable[[], Any], unknowns: Any) -> None:
        self.rows: list[tuple[str, tuple[Any, ...], Any, Any]] = []
        self.where, self.unknowns = where, unknowns

    def computed(self, name: str, operands: tuple[Any, ...], result: Any) -> Any:
        """Write down a result, and give it as a size that goes on writing."""
        self.rows.append((name, tuple(map(_plain, operands)), result, None))
        kind: Any = SizeFloat if isinstance(result, float) else SizeInt
        return kind(result, _expression_if_known(name, operands), self)

    def asked(self, name: str, operands: tuple[Any, ...], result: bool) -> bool:
        """Write down the answer to a question."""
        self.rows.append((name, tuple(map(_plain, operands)), result, self.where()))
        return result


def _expression_if_known(name: str, operands: tuple[Any, ...]) -> Expression | None:
    """What an operation gives, where the expressions of all its operands are known."""
    known = [v.expr if isinstance(v, _Size) else Expression.of(v) for v in operands]
    return None if any(e is None for e in known) else expression_of(name, known)


def _plain(value: Any) -> Any:
    if isinstance(value, SizeBool):
        return value.result
    return float(value) if isinstance(value, float) else int(value)


class _Size:
    """What ints and floats of this kind share."""

    expr: Expression | None
    log: Log | None

    __init__: Any = object.__init__  # `__new__` has done everything

    @property
    def node(self) -> Any:
        """Itself: it has `expr` and `hint`."""
        return self

    @property
    def hint(self) -> Any:
        """The number that it was in the example."""
        return _plain(self)

    def __repr__(self) -> str:
        return str(self.expr) if self.expr is not None else repr(_plain(self))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else format(_plain(self), spec)

    def __bool__(self) -> bool:
        return bool(self._ask("ne", (self, 0), _plain(self) != 0))

    def _ask(self, name: str, operands: tuple[Any, ...], result: bool) -> Any:
        if self.log is None:
            return result
        unknown = any(getattr(v, "expr", None) is not None for v in operands)
        return (
            SizeBool(name, operands, result, self.log)
            if unknown
            else self.log.asked(name, operands, result)
        )

    def _give(self, name: str, operands: tuple[Any, ...], result: Any) -> Any:
        log = next((v.log for v in operands if getattr(v, "log", None) is not None), None)
        if log is not None:
            return log.computed(name, operands, result)
        expression = _expression_if_known(name, operands)
        if expression is None:
            return result
        kind: Any = SizeFloat if isinstance(result, float) else SizeInt
        return kind(result, expression)


_OF_FLOATS = {"add": "FloatAdd", "sub": "FloatSub", "mul": "FloatMul", "truediv": "FloatTrueDiv"}


def expression_of(name: str, operands: list[Any]) -> Expression:
    """The expression that an operation on expressions gives.

    Of floats that are read from tensors it is one function after the other: a sum in another order
    would have other bits.
    """
    if any(symbol.startswith("zuf") for e in operands for symbol in e.symbols()):
        if name == "neg":
            return Expression.call("FloatMul", operands[0], -1.0)
        if name in _OF_FLOATS:
            return Expression.call(_OF_FLOATS[name], *operands)
    if name in ("add", "sub", "mul", "floordiv", "mod", "neg"):
        return getattr(operator, name)(*operands)
    if name == "pow" and isinstance(operands[1].number, int) and 0 <= operands[1].number < 17:
        return math.prod([operands[0]] * operands[1].number, start=Expression.of(1))
    names = {"truediv": "IntTrueDiv", "pow": "FloatPow", "sym_max": "Max", "sym_min": "Min"}
    names |= {"sym_float": "ToFloat", "sym_int": "TruncToInt", "sym_sqrt": "OpaqueUnaryFn_sqrt"}
    names |= {"floor": "FloorToInt", "ceil": "CeilToInt", "round": "RoundToInt", "abs": "Abs"}
    return Expression.call(names[name], *operands)


SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class SizeBool(SymBool):
    """A comparison with what depends on values of tensors.

    `torch._check` writes it down. Who asks for its truth gets it where the ranges of its symbols
    say it, and otherwise an error.
    """

    def __init__(self, name: str, operands: tuple[Any, ...], result: bool, log: Any = None) -> None:
        self.name, self.operands, self.result, self.log = name, operands, result, log

    def __bool__(self) -> bool:
        return self.result if self.log is None else self.log.unknowns.decided(self)

    def expect(self) -> None:
        """The program says that it holds."""
        self.log.unknowns.expected(self)

    def __str__(self) -> str:
        return f"{self.operands[0]} {SIGNS[self.name]} {self.operands[1]}"

    __repr__ = __str__


class SizeInt(_Size, SymInt, int):
    """An int that is a size; ops take it as the number that it is."""

    def __new__(cls, value: int, expr: Any = None, log: Any = None) -> SizeInt:
        self = int.__new__(cls, value)
        self.expr, self.log = expr, log
        return self

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __int__(self) -> int:
        return int.__add__(self, 0)

    __index__ = __int__

    def __reduce__(self):
        return int, (int(self),)


class SizeFloat(_Size, SymFloat, float):
    """A float that depends on sizes."""

    def __new__(cls, value: float, expr: Any = None, log: Any = None) -> SizeFloat:
        self = float.__new__(cls, value)
        self.expr, self.log = expr, log
        return self

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __float__(self) -> float:
        return float.__add__(self, 0.0)

    def __reduce__(self):
        return float, (float(self),)


def _define_result(kind: Any, base: Any, name: str) -> None:
    function = getattr(base, f"__{name}__")

    def method(self: Any, *others: Any) -> Any:
        if any(isinstance(v, bool) or not isinstance(v, int | float) for v in others):
            return NotImplemented
        result = function(self, *others)
        if result is NotImplemented or isinstance(result, complex):
            return result
        return self._give(name, (self, *others), result)

    setattr(kind, f"__{name}__", method)


def _define_reflected(kind: Any, base: Any, name: str) -> None:
    function = getattr(base, f"__r{name}__")

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, bool) or not isinstance(other, int | float):
            return NotImplemented
        result = function(self, other)
        if result is NotImplemented or isinstance(result, complex):
            return result
        return self._give(name, (other, self), result)

    setattr(kind, f"__r{name}__", method)


def _define_question(kind: Any, base: Any, name: str) -> None:
    function = getattr(base, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        result = function(self, other)
        if result is NotImplemented:
            return result
        return self._ask(name, (self, other), result)

    setattr(kind, f"__{name}__", method)


for _kind, _base in ((SizeInt, int), (SizeFloat, float)):
    for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow"):
        _define_result(_kind, _base, _name)
        _define_reflected(_kind, _base, _name)
    for _name in ("neg", "abs", "floor", "ceil", "round"):
        _define_result(_kind, _base, _name)
    for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
        _define_question(_kind, _base, _name)
