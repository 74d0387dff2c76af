"""Which expression of sizes a number is, from its values for several choices of the sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rushlight.export._expressions import Expression
from rushlight.export._sizes import expression_of

__all__ = ["Fitter"]

Values = tuple[Any, ...]
_DIVISORS = (2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 32, 64)


class Fitter:
    """Finds expressions. A row of values has one for each choice of the sizes.

    Args:
        symbols: by name, the values of the symbols.
    """

    def __init__(self, symbols: dict[str, Values]) -> None:
        self.choices = [
            {name: values[k] for name, values in symbols.items()}
            for k in range(len(next(iter(symbols.values()), (0,))))
        ]
        self.symbols = {Expression.symbol(name): values for name, values in symbols.items()}
        self.known: dict[Values, Expression] = {v: e for e, v in self.symbols.items()}

    def learn(self, name: str, operands: list[Values], result: Values) -> None:
        """An operation of the program: its result is that of known operands."""
        if result in self.known or _is_constant(result):
            return
        parts = [self.expression(v) for v in operands]
        if all(p is not None for p in parts):
            self._keep(expression_of(name, parts), result)

    def _keep(self, expression: Expression, values: Values) -> Expression | None:
        """The expression, if it has these values."""
        try:
            fits = all(
                _equal(expression.value(c), v) for c, v in zip(self.choices, values, strict=True)
            )
        except (ArithmeticError, ValueError):
            return None
        if fits:
            self.known.setdefault(values, expression)
        return expression if fits else None

    def expression(self, values: Values, near: Iterable[Values] = ()) -> Expression | None:
        """The expression with these values, None if none is found.

        Args:
            values: a row.
            near: rows of numbers that it may be made of, such as sizes of the arguments of an op.
        """
        if _is_constant(values):
            return Expression.of(values[0])
        if values in self.known:
            return self.known[values]
        atoms = dict(self.symbols)
        for row in near:
            found = self.known.get(row)
            if found is not None and not _is_constant(row):
                atoms.setdefault(found, row)
        if all(isinstance(v, int) for v in values):
            return self._integer(values, list(atoms.items())[:12])
        return self._float(values, list(atoms.items())[:12])

    # ---- forms ----

    def _integer(self, values: Values, atoms: list[tuple[Expression, Values]]) -> Any:
        for form in (self._affine, self._product, self._sum, self._quotient, self._extreme):
            for expression in form(values, atoms):
                found = self._keep(expression, values)
                if found is not None:
                    return found
        return None

    def _affine(self, values: Values, atoms: Any) -> Iterable[Expression]:
        for expr, row in atoms:
            step = row[1] - row[0]
            if step and (values[1] - values[0]) % step == 0:
                scale = (values[1] - values[0]) // step
                yield expr * scale + (values[0] - scale * row[0])

    def _product(self, values: Values, atoms: Any) -> Iterable[Expression]:
        rows = [*atoms]
        for i, (a, x) in enumerate(rows):
            for b, y in rows[i:]:
                xy = [p * q for p, q in zip(x, y, strict=True)]
                step = xy[1] - xy[0]
                if step and (values[1] - values[0]) % step == 0:
                    scale = (values[1] - values[0]) // step
                    yield a * b * scale + (values[0] - scale * xy[0])
        total, product = Expression.of(1), 1
        for expr, row in rows:
            total, product = total * expr, product * row[0]
        if product and values[0] % product == 0:
            yield total * (values[0] // product)

    def _sum(self, values: Values, atoms: Any) -> Iterable[Expression]:
        for i, (a, x) in enumerate(atoms):
            for b, y in atoms[i + 1 :]:
                for scale in (1, -1, 2, -2):
                    rest = tuple(v - p - scale * q for v, p, q in zip(values, x, y, strict=True))
                    if _is_constant(rest):
                        yield a + b * scale + rest[0]
        if len(values) > len(atoms) > 2:
            total = [sum(column) for column in zip(*(row for _, row in atoms), strict=True)]
            rest = tuple(v - t for v, t in zip(values, total, strict=True))
            if _is_constant(rest):
                yield sum((e for e, _ in atoms), Expression.of(rest[0]))
        yield from self._solved(values, atoms)

    def _solved(self, values: Values, atoms: Any) -> Iterable[Expression]:
        """A linear combination of two atoms and a number, by Cramer's rule."""
        if len(values) < 3:
            return
        for i, (a, x) in enumerate(atoms):
            for b, y in atoms[i + 1 :]:
                d1, d2 = (x[1] - x[0], y[1] - y[0]), (x[2] - x[0], y[2] - y[0])
                v1, v2 = values[1] - values[0], values[2] - values[0]
                det = d1[0] * d2[1] - d1[1] * d2[0]
                p, q = v1 * d2[1] - d1[1] * v2, d1[0] * v2 - v1 * d2[0]
                if det and p % det == 0 and q % det == 0:
                    p, q = p // det, q // det
                    yield a * p + b * q + (values[0] - p * x[0] - q * y[0])

    def _quotient(self, values: Values, atoms: Any) -> Iterable[Expression]:
        for expr, row in atoms:
            for by in _DIVISORS:
                for shift in range(by):
                    rest = {v - (r + shift) // by for v, r in zip(values, row, strict=True)}
                    if len(rest) == 1:
                        yield (expr + shift) // by + rest.pop()
            for scale in (2, 3, 4):
                for by in (2, 3, 4, 8):
                    rest = {v - (r * scale) // by for v, r in zip(values, row, strict=True)}
                    if len(rest) == 1:
                        yield (expr * scale) // by + rest.pop()
        for a, x in atoms:
            for b, y in atoms:
                if (
                    a is not b
                    and all(y)
                    and values == tuple(p // q for p, q in zip(x, y, strict=True))
                ):
                    yield a // b

    def _extreme(self, values: Values, atoms: Any) -> Iterable[Expression]:
        for i, (a, _) in enumerate(atoms):
            for b, _ in atoms[i + 1 :]:
                for name in ("Max", "Min"):
                    yield Expression.call(name, a, b)
        for expr, row in atoms:
            for name in ("Max", "Min"):
                for bound in {v for v, r in zip(values, row, strict=True) if v != r}:
                    yield Expression.call(name, expr, bound)

    def _float(self, values: Values, atoms: Any) -> Expression | None:
        forms = []
        for expr, row in atoms:
            forms += [
                (Expression.call("ToFloat", expr), [float(r) for r in row]),
                (Expression.call("IntTrueDiv", 1, expr), [1 / r for r in row]),
                (Expression.call("OpaqueUnaryFn_sqrt", expr), [math.sqrt(r) for r in row]),
                (
                    Expression.call("FloatPow", Expression.call("ToFloat", expr), -0.5),
                    [r**-0.5 for r in row],
                ),
            ]
        for expression, row in forms:
            scales = [v / r for v, r in zip(values, row, strict=True)]
            if all(math.isclose(s, scales[0], rel_tol=1e-12) for s in scales):
                scale = scales[0]
                if math.isclose(scale, 1, rel_tol=1e-12):
                    found = self._keep(expression, values)
                else:
                    found = self._keep(Expression.call("FloatMul", expression, scale), values)
                if found is not None:
                    return found
        return None


def _is_constant(values: Values) -> bool:
    return all(v == values[0] for v in values)


def _equal(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=1e-9) if isinstance(b, float) else a == b
