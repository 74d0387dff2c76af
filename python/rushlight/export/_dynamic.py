"""Export with open sizes: the program runs for several choices, and the graphs are compared.

Each run is on fake tensors with ordinary numbers as sizes, so no op knows of symbols. What differs
between the graphs is an expression of the sizes, which `Fitter` finds from the values; one choice
more than it needs verifies. What the program asks of sizes (`x.shape[0] > 5`) is written down in
the order in which it asks, and becomes a condition on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight._dynamo.exc import UserError
from rushlight.export._fakes import NotingMode
from rushlight.export._sizes import Log, Range, SizeInt
from rushlight.export._symbols import Outside, Symbol, Unknowns
from rushlight.export._trace import Traced, program_frames, trace
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    GuardOnDataDependentSymNode,
)
from rushlight.fx.node import Node, map_aggregate

__all__ = ["Run", "Solver"]


@dataclass
class Run:
    """One run: its graph, what it did with sizes, or the error that it ended in."""

    sizes: dict[str, int]
    log: Log
    traced: Traced | None = None
    error: Exception | None = None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the graph."""
        return [] if self.traced is None else list(self.traced.tracer.graph.nodes)

    def same_steps(self, other: Run) -> bool:
        """Whether both have run the same ops on the same values, but for numbers."""
        if self.error or other.error or len(self.nodes) != len(other.nodes):
            return False
        pairs = zip(self.nodes, other.nodes, strict=True)
        alike = all(
            a.name == b.name
            and a.target == b.target
            and _shape(a.args) == _shape(b.args)
            and _shape(a.kwargs) == _shape(b.kwargs)
            for a, b in pairs
        )
        return alike and self.same_answers(other) and self.same_constants(other)

    def same_answers(self, other: Run) -> bool:
        """Whether the program has asked the same questions and got the same answers."""
        rows = [[(r[0], r[2] if r[3] else None) for r in run.log.rows] for run in (self, other)]
        return rows[0] == rows[1]

    def same_constants(self, other: Run) -> bool:
        """Whether the tensors that the program has written down are equal."""
        assert self.traced and other.traced
        graphs = [
            [str(m.graph) for m in run.traced.tracer.root.children() if hasattr(m, "graph")]
            for run in (self, other)
            if run.traced
        ]
        if graphs[0] != graphs[1]:  # those that operators take hold numbers only
            return False
        mine, theirs = self.traced.tracer.constants, other.traced.tracer.constants
        return mine.keys() == theirs.keys() and all(
            a is theirs[name]
            or (a.shape == theirs[name].shape and rushlight.equal(a, theirs[name]))
            for name, a in mine.items()
        )


def _shape(value: Any) -> Any:
    """An argument with every number replaced: what must be the same in all runs."""

    def kind(part: Any) -> Any:
        if isinstance(part, Node):
            return part.name
        if isinstance(part, int | float) and not isinstance(part, bool):
            return "number"
        return str(part)

    return map_aggregate(value, kind)


class Violations:
    """What the program has asked of sizes that it was told are open."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fixes: dict[str, str] = {}
        self.names: list[str] = []

    def add(self, symbol: Symbol, line: str, fix: str | None = None) -> None:
        """One more, and what `dynamic_shapes` should say instead."""
        self.lines.append(line)
        self.names.append(symbol.label)
        if fix is not None:
            self.fixes[symbol.label] = fix

    def check(self) -> None:
        """Raise UserError if there are any."""
        if not self.lines:
            return
        names = ", ".join(dict.fromkeys(self.names))
        lines = "".join(f"\n  - {line}" for line in dict.fromkeys(self.lines))
        fixes = "".join(f"\n  {name} = {fix}" for name, fix in self.fixes.items())
        hint = f"\n\nSuggested fixes:{fixes}" if fixes else ""
        raise UserError(f"Constraints violated ({names})!{lines}{hint}")


class Solver:
    """Runs a module for several choices of its open sizes, until the runs agree.

    Args:
        mod: the module.
        names: of the leaves of its arguments.
        leaves: the example's.
        in_spec: the containers of the leaves.
        specs: for each leaf, the dimensions that stay open; -1 is a number itself.
        preserved: as in `trace`.
    """

    def __init__(
        self,
        mod: nn.Module,
        names: list[str],
        leaves: list[Any],
        in_spec: Any,
        specs: list[dict[int, Any]],
        preserved: tuple[str, ...],
    ) -> None:
        self.mod, self.names, self.leaves, self.in_spec = mod, names, leaves, in_spec
        self.preserved = preserved
        self.symbols: dict[str, Symbol] = {}
        # (leaf, dimension) to symbol, factor and number: the size is symbol * factor + number.
        self.places: dict[tuple[int, int], tuple[str, int, int]] = {}
        self.violations = Violations()
        self._roots: dict[str, str] = {}
        for i, said in enumerate(specs):
            for dim, spec in said.items():
                self._open(i, dim, spec)
        self.violations.check()

    # ---- symbols ----

    def _open(self, leaf: int, dim: int, spec: Any) -> None:
        value = self.leaves[leaf]
        size = int(value) if dim == -1 else value.shape[dim]
        name = self.names[leaf]
        source = f"L['{name}']" if dim == -1 else f"L['{name}'].size()[{dim}]"
        if not isinstance(spec, Dim):
            if spec.kind != "STATIC":
                self._open_by_hint(leaf, dim, size, source, spec)
            return
        hint, rest = divmod(size - spec.shift, spec.scale)
        root = spec.root
        if rest or hint < 0 or hint not in Range(root.min, root.max):
            raise ConstraintViolationError(
                f"Constraints violated ({spec.__name__})! {source} is {size} in the example: "
                f"{size} not in range [{spec.min}, {spec.max}] of {spec!r}"
            )
        symbol = self._roots.get(root.__name__)
        first = self.symbols[symbol].dim if symbol is not None else root
        if first is not None and (first.min, first.max) != (root.min, root.max):
            raise UserError(
                f"Found different definitions {first!r} and {root!r} for the same symbolic "
                "dimension: a name is one size with one range"
            )
        if symbol is None:
            symbol = self._roots[root.__name__] = f"s{len(self.symbols)}"
            whole = Range(root.min, root.max)
            self.symbols[symbol] = Symbol(symbol, hint, whole, source, root)
        elif self.symbols[symbol].hint != hint:
            known = self.symbols[symbol]
            raise UserError(
                f"Constraints violated ({root.__name__})! {known.source} and {source} are said to "
                f"be {root.__name__}, but it would be {known.hint} and {hint} in the example"
            )
        if hint < 2:
            self._fix(self.symbols[symbol])
        self.places[leaf, dim] = (symbol, spec.scale, spec.shift)

    def _open_by_hint(self, leaf: int, dim: int, size: int, source: str, spec: Any) -> None:
        low = 2 if spec.min is None else spec.min
        made = Symbol(
            f"s{len(self.symbols)}",
            size,
            Range(low, math.inf if spec.max is None else spec.max),
            source,
            auto=spec.kind == "AUTO",
        )
        if size < 2 and dim != -1:
            if not made.auto:
                self._fix(made)
            return
        self.symbols[made.name] = made
        self.places[leaf, dim] = (made.name, 1, 0)

    def _fix(self, symbol: Symbol) -> None:
        """A size turns out to be a number."""
        if symbol.is_unknown:
            raise GuardOnDataDependentSymNode(
                f"Could not guard on data-dependent expression {symbol.name}: the program runs "
                "other ops, or fails, for other values. Say by torch._check what it can be"
            )
        if symbol.auto:
            self.replace(symbol.name, None, symbol.hint)
            return
        self.violations.add(
            symbol,
            f"{symbol.label} was said to be open, but the program specialized it to be a constant "
            f"({symbol.hint}): other sizes fail, or run other ops. Dim.AUTO and Dim.STATIC allow "
            "that.",
            str(symbol.hint) if symbol.dim is not None else None,
        )

    def replace(self, name: str, by: str | None, number: int) -> None:
        """A symbol is another one plus a number, or a number."""
        for place, (symbol, scale, shift) in list(self.places.items()):
            if symbol != name:
                continue
            if by is None:
                del self.places[place]
            else:
                self.places[place] = (by, scale, shift + scale * number)
        gone = self.symbols.pop(name)
        if by is not None:
            kept = self.symbols[by]
            upper = min(kept.range.upper, gone.range.upper - number)
            kept.range = Range(max(kept.range.lower, gone.range.lower - number), upper)

    # ---- runs ----

    def run(self, sizes: dict[str, int], example: bool = False) -> Run:
        """The program with these sizes; errors of the example are those of the program."""
        log = Log(program_frames, Unknowns(sizes, self.symbols))
        mode = NotingMode(log)
        result = Run(sizes, log)
        leaves = [self._leaf(i, sizes, mode, log) for i in range(len(self.leaves))]
        try:
            result.traced = trace(self.mod, self.names, leaves, self.in_spec, mode, self.preserved)
        except Outside:
            return self.run(sizes, example)
        except Exception as error:
            if example:
                raise
            result.error = error
        return result

    def _leaf(self, i: int, sizes: dict[str, int], mode: NotingMode, log: Log) -> Any:
        value = self.leaves[i]
        if not isinstance(value, Tensor):
            place = self.places.get((i, -1))
            return value if place is None else SizeInt(_size(place, sizes), None, log)
        shape = [
            _size(self.places[i, d], sizes) if (i, d) in self.places else n
            for d, n in enumerate(value.shape)
        ]
        if shape == list(value.shape):
            return mode.from_tensor(value)
        strides = _strides_like(value, shape)
        meta = rushlight.empty_strided(shape, strides, dtype=value.dtype, device="meta")
        return mode.kind(mode, meta, value.device, value.requires_grad and value.is_leaf)

    def hints(self) -> dict[str, int]:
        """The sizes of the example."""
        return {name: s.hint for name, s in self.symbols.items()}

    def _choices(self, count: int) -> list[dict[str, int]]:
        """Several choices of all sizes."""
        rows = {name: s.choices(count, at) for at, (name, s) in enumerate(self.symbols.items())}
        return [
            {
                name: (row or [self.symbols[name].hint])[k % max(len(row), 1)]
                for name, row in rows.items()
            }
            for k in range(count)
        ]

    def solve(self) -> list[Run]:
        """Runs that agree, that of the example first.

        Raises:
            UserError: sizes that were said to be open are not.
        """
        for _ in range(4 * len(self.symbols) + 8):
            first = self.run(self.hints(), example=True)
            if not self.symbols:
                return [first]
            runs = [self.run(sizes) for sizes in self._choices(3 + len(self.symbols))]
            if all(first.same_steps(r) for r in runs):
                return [first, *runs]
            if not self._learn(first):
                self._blame(first, next(r for r in runs if not first.same_steps(r)))
            self.violations.check()
        raise UserError("Constraints violated: no sizes were found for which the program is one")

    # ---- what a run that differs tells ----

    def _learn(self, first: Run) -> bool:
        """Find a range, a relation or a number by changing one size at a time."""
        failing = []
        for at, symbol in enumerate(list(self.symbols.values())):
            for n in symbol.choices(2, at) or [None]:
                if n is None:
                    self._fix(symbol)
                    return True
                run = self.run({**self.hints(), symbol.name: n})
                if first.same_steps(run):
                    continue
                if self._narrow(symbol, first, run, n):
                    return True
                failing.append(symbol)
                break
        for symbol in reversed(failing):
            if self._relate(symbol, failing, first):
                return True
        if failing:
            self._fix(failing[0])
            return True
        return False

    def _narrow(self, symbol: Symbol, first: Run, run: Run, n: int) -> bool:
        """Whether a question with another answer tells what the size can be."""
        for row, other in zip(first.log.rows, run.log.rows, strict=False):
            if row[0] != other[0]:
                return False
            if row[3] and row[2] != other[2]:
                before = row[1][0] - row[1][1]
                slope = (other[1][0] - other[1][1] - before) / (n - symbol.hint)
                return self._bound(symbol, row, before, slope)
        return False

    def _bound(self, symbol: Symbol, row: Any, before: float, slope: float) -> bool:
        if slope == 0:
            return False
        zero = symbol.hint - before / slope  # where both operands are equal
        equal = (row[0] == "eq") == bool(row[2])
        if row[0] in ("eq", "ne"):
            if equal:
                return False
            symbol.excluded.add(round(zero))
            return True
        low, high = symbol.range.lower, symbol.range.upper
        if zero >= symbol.hint:
            strict = before != 0 and _at_zero(row) != bool(row[2])
            high = min(high, math.ceil(zero) - 1 if strict else math.floor(zero))
        else:
            strict = _at_zero(row) != bool(row[2])
            low = max(low, math.floor(zero) + 1 if strict else math.ceil(zero))
        if (low, high) == (symbol.range.lower, symbol.range.upper):
            return False
        symbol.range, symbol.asked = Range(low, high), row[3]
        return True

    def _relate(self, symbol: Symbol, failing: list[Symbol], first: Run) -> bool:
        """Whether two sizes can only change together."""
        for other in failing:
            if other is symbol:
                continue
            offset = symbol.hint - other.hint
            for n in other.choices(4, 0):
                if n + offset not in symbol.range:
                    continue
                run = self.run({**self.hints(), other.name: n, symbol.name: n + offset})
                if first.same_steps(run):
                    self._tie(symbol, other, offset)
                    return True
                break
        return False

    def _tie(self, symbol: Symbol, other: Symbol, offset: int) -> None:
        if not symbol.auto and other.auto:
            symbol, other, offset = other, symbol, -offset
        if symbol.auto or (symbol.dim is None and other.dim is None):
            self.replace(symbol.name, other.name, offset)
            return
        text = other.label + (f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "")
        line = (
            f"The values of {symbol.label} = {symbol.source} and {other.label} = {other.source} "
            "must always be equal."
            if not offset
            else f"Where {other.label} is {other.source}, {symbol.label} ({symbol.source}) must "
            f"always be {text}."
        )
        self.violations.add(symbol, line, text)

    def _blame(self, first: Run, run: Run) -> None:
        """The error of runs that differ although each size alone may change."""
        why = f": {run.error}" if run.error is not None else ""
        names = ", ".join(s.label for s in self.symbols.values())
        place = _differing_line(first, run)
        raise UserError(
            f"Constraints violated ({names})! With sizes {run.sizes} the program does not run the "
            f"same ops as with those of the example{why}{place}"
        )


def _differing_line(first: Run, run: Run) -> str:
    for a, b in zip(first.nodes, run.nodes, strict=False):
        if a.name != b.name or _shape(a.args) != _shape(b.args):
            return f"\n{a.stack_trace or ''}"
    return ""


def _at_zero(row: Any) -> bool:
    """The answer to an inequality whose operands are equal."""
    return row[0] in ("le", "ge")


def _size(place: tuple[str, int, int], sizes: dict[str, int]) -> int:
    name, scale, shift = place
    return sizes[name] * scale + shift


def _strides_like(tensor: Tensor, shape: list[int]) -> list[int]:
    """Strides for another shape, in the order of those of a tensor."""
    order = sorted(range(len(shape)), key=lambda d: (tensor.stride(d), -d))
    strides, step = [0] * len(shape), 1
    for d in order:
        if tensor.stride(d) == 0 and tensor.shape[d] > 1:
            continue
        strides[d] = step
        step *= max(shape[d], 1)
    return strides
