"""Expressions of sizes: sums of products of symbols and of what is no polynomial (`//`, max).

Their texts are those of PyTorch's files, which are sympy's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Expression", "parse", "sympy_text"]

Number = int | float
_MOST_TERMS = 2000


def _ceiling(a: Number, b: Number) -> int:
    return -int(-a // b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": _ceiling,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
    "ToFloat": float,
    "FloatPow": lambda a, b: float(a) ** b,
    "FloatTrueDiv": lambda a, b: a / b,
    "IntTrueDiv": lambda a, b: a / b,
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "TruncToInt": int,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "RoundToInt": round,
    "Abs": abs,
    "FloatMul": lambda a, b: a * b,
    "FloatAdd": lambda a, b: a + b,
    "FloatSub": lambda a, b: a - b,
}


@dataclass(frozen=True)
class Atom:
    """A factor: a symbol (its name, no arguments), or a function of expressions."""

    name: str
    args: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        if self.args is None:
            return self.name
        texts = [str(a) for a in self.args]
        if self.name in ("FloorDiv", "CleanDiv"):
            return f"({_grouped(self.args[0])}//{_grouped(self.args[1])})"
        return f"{self.name}({', '.join(texts)})"


def _grouped(value: Any) -> str:
    text = str(value)
    return f"({text})" if re.search(r"[ -]", text) else text


Monomial = tuple[Atom, ...]


class Expression:
    """A polynomial over atoms with integer coefficients; compared and hashed by what it says."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Number]) -> None:
        kept = {m: c for m, c in terms.items() if c != 0}
        self.terms: dict[Monomial, Number] = dict(sorted(kept.items(), key=_order))

    @staticmethod
    def symbol(name: str) -> Expression:
        """A symbol."""
        return Expression({(Atom(name),): 1})

    @staticmethod
    def of(value: Any) -> Expression:
        """A number as an expression; an expression as it is."""
        return value if isinstance(value, Expression) else Expression({(): value})

    @staticmethod
    def call(name: str, *args: Any) -> Expression:
        """A function of expressions, simplified where that is exact."""
        args = tuple(Expression.of(a) for a in args)
        numbers = [a.number for a in args]
        if all(n is not None for n in numbers) and name in _FUNCTIONS:
            return Expression.of(_FUNCTIONS[name](*numbers))
        by = numbers[-1]
        if name in ("FloorDiv", "CleanDiv") and isinstance(by, int) and by > 0:
            factors = args[0].terms
            if all(isinstance(c, int) and c % by == 0 for c in factors.values()):
                return Expression({m: c // by for m, c in factors.items()})
        if name in ("Max", "Min"):
            args = tuple(sorted(dict.fromkeys(args), key=str))
            if len(args) == 1:
                return args[0]
        return Expression({(Atom(name, args),): 1})

    # ---- questions ----

    @property
    def number(self) -> Number | None:
        """The number, if it is one."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def name(self) -> str | None:
        """The name, if it is a symbol alone."""
        atom = self.atom
        return atom.name if atom is not None and atom.args is None else None

    @property
    def atom(self) -> Atom | None:
        """The symbol or function, if it is one alone."""
        if len(self.terms) != 1:
            return None
        ((monomial, factor),) = self.terms.items()
        return monomial[0] if factor == 1 and len(monomial) == 1 else None

    def symbols(self) -> set[str]:
        """The names of all symbols in it."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom in monomial:
                if atom.args is None:
                    found.add(atom.name)
                else:
                    found.update(*(a.symbols() for a in atom.args))
        return found

    def functions(self) -> set[str]:
        """The names of all functions in it."""
        found: set[str] = set()
        for atom in (atom for monomial in self.terms for atom in monomial):
            if atom.args is not None:
                found.update([atom.name], *(a.functions() for a in atom.args))
        return found

    def value(self, symbols: Mapping[str, Number]) -> Number:
        """The number that it is for these values of the symbols.

        Raises:
            KeyError: a symbol is missing.
            ValueError: a function is not known.
        """
        total: Number = 0
        for monomial, factor in self.terms.items():
            product: Number = factor
            for atom in monomial:
                product *= _atom_value(atom, symbols)
            total += product
        return total

    # ---- arithmetic ----

    def __add__(self, other: Any) -> Expression:
        terms = dict(self.terms)
        for monomial, factor in Expression.of(other).terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Expression(terms)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: Any) -> Expression:
        return self + Expression.of(other) * -1

    def __rsub__(self, other: Any) -> Expression:
        return Expression.of(other) - self

    def __mul__(self, other: Any) -> Expression:
        terms: dict[Monomial, Number] = {}
        factor = Expression.of(other)
        if len(self.terms) * len(factor.terms) > _MOST_TERMS:
            raise ValueError(f"the expression of a size has more than {_MOST_TERMS} terms")
        for a, x in self.terms.items():
            for b, y in factor.terms.items():
                monomial = tuple(sorted((*a, *b), key=str))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return Expression(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Expression:
        return Expression.call("FloorDiv", self, other)

    def __mod__(self, other: Any) -> Expression:
        return Expression.call("Mod", self, other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float):
            return self.number == other
        return isinstance(other, Expression) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(tuple(self.terms.items()))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, factor in self.terms.items():
            piece = _term_text(monomial, abs(factor))
            if not text:
                text = f"-{piece}" if factor < 0 else piece
            else:
                text += f" {'-' if factor < 0 else '+'} {piece}"
        return text

    __repr__ = __str__


def _atom_value(atom: Atom, symbols: Mapping[str, Number]) -> Number:
    if atom.args is None:
        return symbols[atom.name]
    function = _FUNCTIONS.get(atom.name)
    if function is None:
        raise ValueError(f"the function {atom.name} of sizes is not known")
    return function(*(a.value(symbols) for a in atom.args))


def _order(item: tuple[Monomial, Number]) -> tuple[int, str]:
    """Higher powers first, numbers last."""
    return -len(item[0]), str(item[0])


def _term_text(monomial: Monomial, factor: Number) -> str:
    powers: dict[Atom, int] = {}
    for atom in monomial:
        powers[atom] = powers.get(atom, 0) + 1
    pieces = [str(a) if n == 1 else f"{a}**{n}" for a, n in powers.items()]
    if factor != 1 or not pieces:
        pieces.insert(0, str(factor))
    return "*".join(pieces)


# ---- texts of files ----


def _number_text(value: Number) -> str:
    return f"Integer({value})" if isinstance(value, int) else f"Float('{value!r}', precision=53)"


def _atom_text(atom: Atom) -> str:
    if atom.args is None:
        if atom.name.startswith("zuf"):  # a float that a tensor has
            return f"Symbol('{atom.name}')"
        positive = "" if atom.name.startswith("u") else "positive=True, "
        return f"Symbol('{atom.name}', {positive}integer=True)"
    texts = [sympy_text(a) for a in atom.args]
    if atom.name == "FloatSub":
        texts[1] = f"Mul(Integer(-1), {texts[1]})"
    name = {"FloatAdd": "Add", "FloatSub": "Add", "FloatMul": "Mul"}.get(atom.name, atom.name)
    return f"{name}({', '.join(texts)})"


def sympy_text(value: Expression) -> str:
    """An expression as files have it: "Add(Symbol('s0', positive=True, integer=True), …)"."""
    terms = []
    for monomial, factor in value.terms.items():
        powers: dict[Atom, int] = {}
        for atom in monomial:
            powers[atom] = powers.get(atom, 0) + 1
        factors = [] if factor == 1 and powers else [_number_text(factor)]
        for atom, n in powers.items():
            text = _atom_text(atom)
            factors.append(text if n == 1 else f"Pow({text}, Integer({n}))")
        terms.append(factors[0] if len(factors) == 1 else f"Mul({', '.join(factors)})")
    if not terms:
        return "Integer(0)"
    return terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


_TOKEN = re.compile(r"\s*(?:(-?\d+\.\d+(?:e-?\d+)?|-?\d+)|([A-Za-z_]\w*)|('[^'\\]*')|([(),=]))")
_DEEPEST, _LONGEST = 60, 20_000


class _Parser:
    """Reads the text of an expression; nothing is evaluated."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ValueError("the expression of a size is too long")
        self.tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"the expression of a size is not understood: {text[:80]!r}")
            self.tokens.append(found[0].strip())
            at = found.end()
        self.at = 0

    def take(self, wanted: str | None = None) -> str:
        if self.at >= len(self.tokens) or (wanted and self.tokens[self.at] != wanted):
            raise ValueError(f"the expression of a size ends early or lacks {wanted!r}")
        self.at += 1
        return self.tokens[self.at - 1]

    def value(self, depth: int = 0) -> Any:
        """A number, a text, or an expression."""
        if depth > _DEEPEST:
            raise ValueError("the expression of a size is too deep")
        token = self.take()
        if token[0] in "-0123456789":
            return float(token) if "." in token else int(token)
        if token[0] == "'":
            return token[1:-1]
        if self.at >= len(self.tokens) or self.tokens[self.at] != "(":
            return {"True": True, "False": False, "true": True, "false": False}.get(token, token)
        self.take("(")
        args = []
        while self.tokens[self.at : self.at + 1] != [")"]:
            if self.tokens[self.at + 1 : self.at + 2] == ["="]:
                self.at += 2
                self.value(depth + 1)  # an assumption: that a symbol is positive
            else:
                args.append(self.value(depth + 1))
            if self.tokens[self.at : self.at + 1] == [","]:
                self.at += 1
        self.take(")")
        return _made(token, args)


def _made(name: str, args: list[Any]) -> Any:
    """What a function of the text stands for."""
    if name == "Symbol" and len(args) == 1 and re.fullmatch(r"\w{1,100}", str(args[0])):
        return Expression.symbol(args[0])
    if name == "Integer" and len(args) == 1:
        return Expression.of(int(args[0]))
    if name == "Float" and args:
        return Expression.of(float(args[0]))
    if not args or not all(isinstance(a, Expression | int | float) for a in args):
        raise ValueError(f"the expression of a size is not understood at {name}")
    values = [Expression.of(a) for a in args]
    if name in ("Add", "Mul"):
        total = values[0]
        for value in values[1:]:
            total = total + value if name == "Add" else total * value
        return total
    power = values[1].number if name in ("Pow", "PowByNatural") and len(values) == 2 else None
    if isinstance(power, int) and 0 <= power <= 16:
        total = Expression.of(1)
        for _ in range(power):
            total = total * values[0]
        return total
    return Expression.call(name, *values)


def parse(text: str) -> Expression:
    """The expression of a text in a file.

    Raises:
        ValueError: it is no such text.
    """
    parser = _Parser(text)
    value = parser.value()
    if parser.at != len(parser.tokens) or isinstance(value, str):
        raise ValueError(f"the expression of a size is not understood: {text[:80]!r}")
    return Expression.of(value)
