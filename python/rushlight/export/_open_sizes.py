"""The graph of a program whose sizes are open: numbers that differ between runs become steps."""

from __future__ import annotations

import operator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._dynamo.exc import UserError
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.export._dynamic import Run, Solver
from rushlight.export._expressions import Expression
from rushlight.export._fakes import SizedFake
from rushlight.export._fit import Fitter
from rushlight.export._guards import _SPACE, python_text
from rushlight.export._sizes import SIGNS, Range, SizeBool, SizeFloat, SizeInt
from rushlight.export._symbols import Symbol, interval, slope
from rushlight.export._trace import Traced, format_frames
from rushlight.export.graph_signature import (
    ConstantArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)
from rushlight.fx.node import Node

__all__ = ["OpenSizes"]

_FUNCTIONS: dict[str, Any] = {
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "IntTrueDiv": operator.truediv,
    "FloatPow": operator.pow,
    "FloatMul": operator.mul,
    "FloatAdd": operator.add,
    "FloatSub": operator.sub,
    "FloatTrueDiv": operator.truediv,
    "Max": rushlight.sym_max,
    "Min": rushlight.sym_min,
    "ToFloat": rushlight.sym_float,
    "TruncToInt": rushlight.sym_int,
    "OpaqueUnaryFn_sqrt": rushlight.sym_sqrt,
}


def _last_part(node: Node) -> Node:
    """Of a part of a result the last part that is taken of it; other nodes themselves."""
    is_part = node.target is operator.getitem
    while is_part and node.next.target is operator.getitem and node.next.args[0] is node.args[0]:
        node = node.next
    return node


def _number_argument(node: Node) -> Any:
    """What the signature says of a number that is returned."""
    kinds = {SizeBool: SymBoolArgument, SizeFloat: SymFloatArgument}
    return kinds.get(type(node.meta["val"]), SymIntArgument)(node.name)


_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class OpenSizes:
    """Joins runs into one graph.

    Args:
        solver: what has made the runs.
        runs: that agree, that of the example first.
    """

    def __init__(self, solver: Solver, runs: list[Run]) -> None:
        self.solver, self.runs = solver, runs
        traced = runs[0].traced
        assert traced is not None
        self.traced: Traced = traced
        self.graph = traced.tracer.graph
        self.symbols = solver.symbols
        rows = {name: tuple(r.sizes[name] for r in runs) for name in self.symbols}
        self.fitter = Fitter(rows)
        self.hints = {name: s.hint for name, s in self.symbols.items()}
        self.steps: dict[Expression, Node] = {}
        self.truths: dict[Expression, Node] = {}  # by the number that is 1 where they hold
        self.at: Node | None = None
        self.nodes = [run.nodes for run in runs]
        self.ranges: dict[Any, Any] = {}
        self.conditions: list[tuple[str, Expression, Expression]] = []

    def join(self) -> Traced:
        """The graph of the first run with expressions in it."""
        for rows in zip(*(run.log.rows for run in self.runs), strict=True):
            if rows[0][3] is None:
                operands = list(zip(*(row[1] for row in rows), strict=True))
                self.fitter.learn(rows[0][0], operands, tuple(row[2] for row in rows))
        checks = self.read_checks()
        self.inputs()
        for nodes in zip(*self.nodes, strict=True):
            if nodes[0].op != "placeholder":
                self.step(nodes)
        self.write_checks(checks)
        self.outputs()
        for node in reversed(list(self.steps.values())):
            unused = not node.users and node.op == "call_function"
            if unused and node.target is not rushlight.ops.aten.item.default:
                self.graph.erase_node(node)
        self.questions()
        for name, symbol in self.symbols.items():
            self.ranges[Expression.symbol(name)] = symbol.range
            self.check_range(symbol)
        for name, scale, shift in self.solver.places.values():
            known = self.symbols[name].range
            size = Expression.symbol(name) * scale + shift
            self.ranges.setdefault(
                size, Range(known.lower * scale + shift, known.upper * scale + shift)
            )
        self.solver.violations.check()
        return self.traced

    # ---- values ----

    def sized(self, expression: Expression) -> Any:
        """A size of the example that knows its expression; a number where it is one."""
        number = expression.number
        if number is not None:
            return number
        value = expression.value(self.hints)
        return (
            SizeFloat(value, expression) if isinstance(value, float) else SizeInt(value, expression)
        )

    def expression(self, values: tuple[Any, ...], near: list[Any], node: Node) -> Expression:
        """The expression of a number of a node.

        Raises:
            UserError: none is found.
        """
        found = self.fitter.expression(values, near)
        if found is None:
            labels = ", ".join(s.label for s in self.symbols.values())
            raise UserError(
                f"Constraints violated ({labels})! A number of {node.format_node()} depends on "
                f"open sizes in a way that is no known expression: it is {values} for sizes "
                f"{[run.sizes for run in self.runs]}. Write it with torch.sym_sqrt, sym_max and "
                f"the like, or say Dim.STATIC.\n  {node.stack_trace or ''}"
            )
        return found

    def value(self, fakes: tuple[Tensor, ...], near: list[Any], node: Node) -> Tensor:
        """What a node remembers of its tensor."""
        first = fakes[0]
        if not isinstance(first, FakeTensor):
            return first
        rows = list(zip(*(f._meta.shape for f in fakes), strict=True))
        steps = list(zip(*(f._meta.stride() for f in fakes), strict=True))
        grad = first.is_leaf and first.requires_grad
        if all(len(set(row)) == 1 for row in (*rows, *steps)):
            return FakeTensor(first.fake_mode, first._meta, first.fake_device, grad)
        fake = SizedFake(first.fake_mode, first._meta, first.fake_device, grad)
        sizes = [self.expression(row, near, node) for row in rows]
        fake.sym_sizes = tuple(map(self.sized, sizes))
        strides = [self.fitter.expression(row, [*rows, *near]) for row in steps]
        known = zip(strides, first._meta.stride(), strict=True)
        fake.sym_strides = tuple(n if e is None else self.sized(e) for e, n in known)
        return fake

    # ---- nodes ----

    def inputs(self) -> None:
        """Placeholders know their expressions; symbols are read off them."""
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        others = [[n for n in nodes if n.op == "placeholder"] for nodes in self.nodes[1:]]
        users = self.traced.tracer.specs
        last = inputs[-1] if inputs else None
        for nodes in zip(inputs, *others, strict=True):
            value = nodes[0].meta["val"]
            if isinstance(value, Tensor):
                nodes[0].meta["val"] = self.value(tuple(n.meta["val"] for n in nodes), [], nodes[0])
            elif isinstance(value, SizeInt):
                self.number_input(nodes, users)
        where = last
        for node in inputs:
            value = node.meta["val"]
            for i, n in enumerate(value.shape) if isinstance(value, Tensor) else ():
                expr = getattr(n, "expr", None)
                if expr is None or expr in self.steps or expr.name not in self.symbols:
                    continue
                with self.graph.inserting_after(where):
                    read = self.graph.call_function(
                        rushlight.ops.aten.sym_size.int, (node, i), name="sym_size_int"
                    )
                read.meta["val"] = n
                self.steps[expr] = where = read
        self.derived(inputs, where)

    def number_input(self, nodes: tuple[Node, ...], specs: list[Any]) -> None:
        """An argument that is an int and stays open."""
        values = tuple(int(n.meta["val"]) for n in nodes)
        expression = self.expression(values, [], nodes[0])
        nodes[0].meta["val"] = self.sized(expression)
        if expression.number is None:
            self.steps[expression] = nodes[0]
            for spec in specs:
                if spec.arg.name == nodes[0].name:
                    spec.arg = SymIntArgument(nodes[0].name)

    def derived(self, inputs: list[Node], where: Node | None) -> None:
        """Symbols that no size is, only a multiple or a neighbour of one."""
        for name in self.symbols:
            if Expression.symbol(name) in self.steps:
                continue
            place = next((p for p in self.solver.places.items() if p[1][0] == name), None)
            if place is None:
                continue
            (leaf, dim), (_, scale, shift) = place
            users = inputs[-len(self.solver.leaves) :]
            with self.graph.inserting_after(where):
                read = self.graph.call_function(
                    rushlight.ops.aten.sym_size.int, (users[leaf], dim), name="sym_size_int"
                )
            size = Expression.symbol(name) * scale + shift
            read.meta["val"] = self.sized(size)
            self.steps[size] = where = read
            for function, number in ((operator.sub, shift), (operator.floordiv, scale)):
                if (number == 0 and function is operator.sub) or number == 1:
                    continue
                with self.graph.inserting_after(where):
                    where = self.graph.call_function(function, (where, number))
                size = size - shift if function is operator.sub else Expression.symbol(name)
                where.meta["val"] = self.sized(size)
                self.steps[size] = where

    def step(self, nodes: tuple[Node, ...]) -> None:
        """One node: its arguments and what it knows of its result."""
        self.at = node = nodes[0]
        near = self.near(nodes)
        with self.graph.inserting_before(node):
            args = self.merged([n.args for n in nodes], near, node)
            kwargs = self.merged([n.kwargs for n in nodes], near, node)
        node.args, node.kwargs = tuple(args), kwargs
        values: list[Any] = [n.meta.get("val") for n in nodes]
        if isinstance(values[0], Tensor):
            node.meta["val"] = self.value(tuple(values), near, node)
            self.sizes_of_values(node)
        elif isinstance(values[0], SizeBool):
            self.truth(nodes)
        elif node.target is rushlight.ops.aten.item.default:
            node.meta["val"] = self.sized(self.expression(tuple(values), near, node))
            self.steps[node.meta["val"].expr] = node
            self.assert_range(node)
        elif isinstance(values[0], list | tuple):
            parts = zip(*values, strict=True)
            node.meta["val"] = type(values[0])(
                self.value(p, near, node) if isinstance(p[0], Tensor) else p[0] for p in parts
            )

    # ---- what depends on values ----

    def sizes_of_values(self, node: Node) -> None:
        """Sizes that only the values of tensors say are read where they first come up."""
        for i, n in enumerate(node.meta["val"].shape):
            symbol = self.symbols.get(getattr(getattr(n, "expr", None), "name", ""))
            if symbol is None or not symbol.is_unknown or n.expr in self.steps:
                continue
            with self.graph.inserting_after(_last_part(node)):
                read = self.graph.call_function(
                    rushlight.ops.aten.sym_size.int, (node, i), name="sym_size_int"
                )
            read.meta["val"] = n
            self.steps[n.expr] = read
            self.assert_range(read)

    def truth(self, nodes: tuple[Node, ...]) -> None:
        """A truth value that a tensor has: the number of its symbol is made of it."""
        node, question = nodes[0], nodes[0].meta["val"]
        number = question.operands[0]
        node.meta["val"] = SizeBool("eq", (self.sized(number.expr), 1), question.result)
        self.truths[number.expr] = node
        with self.graph.inserting_after(node):
            read = self.graph.call_function(rushlight.sym_ite, (node, 1, 0))
        read.meta["val"] = self.sized(number.expr)
        self.steps[number.expr] = read
        self.assert_range(read)

    def assert_range(self, node: Node) -> None:
        """Steps behind that of a symbol, which raise where it is outside of its range."""
        expression = node.meta["val"].expr
        symbol = self.symbols[expression.name]
        where = node
        for function, bound in (
            (operator.ge, symbol.range.lower),
            (operator.le, symbol.range.upper),
        ):
            if bound not in (float("inf"), -float("inf")):
                with self.graph.inserting_after(where):
                    where = self.assertion(function, node, int(bound))

    def assertion(self, function: Any, a: Any, b: Any) -> Node:
        """A step that raises where a comparison of sizes does not hold."""
        asked = self.graph.call_function(function, (a, b))
        values = [v.meta["val"] if isinstance(v, Node) else v for v in (a, b)]
        question = asked.meta["val"] = SizeBool(function.__name__, tuple(values), True)
        message = f"Runtime assertion failed for expression {question} on node '{asked.name}'"
        with self.graph.inserting_after(asked):
            return self.graph.call_function(
                rushlight.ops.aten._assert_scalar.default, (asked, message)
            )

    def read_checks(self) -> list[tuple[str, list[Expression]]]:
        """What the program says of numbers that depend on values, but for what is a range."""
        left = []
        for rows in zip(*(run.log.unknowns.checks for run in self.runs), strict=True):
            name, columns = rows[0][0], zip(*(row[1] for row in rows), strict=True)
            operands = [self.fitter.expression(values) for values in columns]
            if any(expression is None for expression in operands):
                continue
            a, b = (Expression.of(expression) for expression in operands)
            scale = slope(a - b)
            symbol = self.symbols.get(next(iter((a - b).symbols()), ""))
            ranged = symbol is not None and symbol.is_unknown and not symbol.is_float
            if scale is None or symbol is None or not ranged or name == "ne":
                left.append((name, [a, b]))
                continue
            low, high = interval(name, a - b, symbol.name, scale)
            known = symbol.range
            symbol.range = Range(max(low, known.lower), min(high, known.upper))
        return left

    def write_checks(self, checks: list[tuple[str, list[Expression]]]) -> None:
        """Steps for comparisons that must hold, before the results."""
        for name, operands in checks:
            with self.graph.inserting_before(self.graph.output_node()):
                self.assertion(getattr(operator, name), *map(self.emitted, operands))

    def near(self, nodes: tuple[Node, ...]) -> list[Any]:
        """The sizes of the tensors that a node takes, and the numbers among its arguments."""
        rows = []
        for inputs in zip(*(n.all_input_nodes for n in nodes), strict=True):
            fakes: list[Any] = [getattr(n.meta.get("val"), "_meta", None) for n in inputs]
            if all(f is not None for f in fakes):
                rows += zip(*(f.shape for f in fakes), strict=True)
                if nodes[0].target is rushlight.ops.aten.view.default:
                    rows.append(tuple(f.numel() for f in fakes))
        return rows

    def merged(self, values: list[Any], near: list[Any], node: Node) -> Any:
        """An argument of all runs as one, with nodes for numbers that differ."""
        first = values[0]
        if isinstance(first, list | tuple):
            parts = [self.merged(list(p), near, node) for p in zip(*values, strict=True)]
            return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
        if isinstance(first, dict):
            return {k: self.merged([v[k] for v in values], near, node) for k in first}
        if isinstance(first, SizeBool):
            return self.asked(first)
        if isinstance(first, bool) or not isinstance(first, int | float):
            return first
        numbers = tuple(float(v) if isinstance(v, float) else int(v) for v in values)
        if len(set(numbers)) == 1:
            return numbers[0]
        return self.emitted(self.expression(numbers, near, node))

    def asked(self, question: SizeBool) -> Node:
        """The node of a truth value that depends on values of tensors."""
        sides: list[Any] = [
            v.expr if isinstance(v, SizeInt | SizeFloat) else Expression.of(v)
            for v in question.operands
        ]
        a, b = sides
        if question.name == "eq" and b.number == 1 and a in self.truths:
            return self.truths[a]
        node = self.graph.call_function(
            getattr(operator, question.name), (self.emitted(a), self.emitted(b))
        )
        node.meta["val"] = SizeBool(question.name, question.operands, question.result)
        return node

    def emitted(self, expression: Expression) -> Any:
        """The node of an expression, made of nodes for its parts; a number where it is one."""
        number = expression.number
        if number is not None:
            return number
        known = self.steps.get(expression)
        if known is not None:
            return known
        total: Any = None
        for monomial, factor in expression.terms.items():
            part = self.term(monomial, factor)
            total = part if total is None else self.call(operator.add, (total, part))
        self.steps[expression] = total
        return total

    def term(self, monomial: Any, factor: Any) -> Any:
        """The node of a product."""
        if not monomial:
            return factor
        product: Any = None
        for atom in monomial:
            alone = Expression({(atom,): 1})
            node = self.steps.get(alone)
            if node is None:
                arguments = tuple(self.emitted(a) for a in atom.args)
                node = self.steps[alone] = self.call(_FUNCTIONS[atom.name], arguments)
            product = node if product is None else self.call(operator.mul, (product, node))
        return product if factor == 1 else self.call(operator.mul, (product, factor))

    def call(self, function: Any, args: tuple[Any, ...]) -> Node:
        """A node that computes a size of others."""
        node = self.graph.call_function(function, args)
        values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
        node.meta["val"] = function(*values)
        known = self.at.meta if self.at is not None else {}
        for name in ("stack_trace", "nn_module_stack"):
            if name in known:
                node.meta[name] = known[name]
        return node

    def outputs(self) -> None:
        """The signature of numbers that are returned and depend on sizes."""
        returned = self.graph.output_node().args[0]
        for value, spec in zip(returned, self.traced.outputs, strict=True):
            if isinstance(value, Node) and isinstance(spec.arg, ConstantArgument):
                spec.arg = _number_argument(value)

    # ---- questions ----

    def questions(self) -> None:
        """What the program has asked becomes ranges, or conditions of the module."""
        for rows in zip(*(run.log.rows for run in self.runs), strict=True):
            if rows[0][3] is None:
                continue
            operands: list[Any] = [
                self.fitter.expression(values)
                for values in zip(*(row[1] for row in rows), strict=True)
            ]
            if any(o is None for o in operands):
                continue
            name = rows[0][0] if rows[0][2] else _NEGATED[rows[0][0]]
            difference = operands[0] - operands[1]
            if difference.number is None:
                self.condition(name, difference, operands, rows[0][3])

    def condition(self, name: str, difference: Expression, operands: Any, frames: Any) -> None:
        """One condition: the difference of its operands compared with 0."""
        symbols = difference.symbols()
        scale = slope(difference) if len(symbols) == 1 else None
        if scale is None:
            if not self.holds(name, difference):
                self.conditions.append((SIGNS[name], *operands))
            return
        symbol = self.symbols[symbols.pop()]
        low, high = interval(name, difference, symbol.name, scale)
        if name == "ne":
            self.exclude(symbol, difference, scale)
            return
        told = symbol.range
        if low <= max(told.lower, 0 if symbol.dim else 2) and high >= told.upper:
            return
        symbol.range = Range(max(low, told.lower), min(high, told.upper))
        symbol.asked = frames

    def exclude(self, symbol: Symbol, difference: Expression, scale: int) -> None:
        """One size is excluded: 0 and 1 by the range, others by a condition."""
        rest = -difference.value({symbol.name: 0})
        if rest % scale or rest // scale not in symbol.range:
            return
        size = rest // scale
        if size == symbol.range.lower and size < 2:
            symbol.range = Range(symbol.range.lower + 1, symbol.range.upper)
        else:
            self.conditions.append(("!=", Expression.symbol(symbol.name), Expression.of(size)))

    def check_range(self, symbol: Symbol) -> None:
        """A range that is narrower than the one of a `Dim` is an error."""
        if symbol.dim is None:
            return
        kept, told = symbol.range, Range(symbol.dim.min, symbol.dim.max)
        if kept.lower <= max(told.lower, 2) and kept.upper == told.upper:
            return
        high = f" <= {told.upper}" if told.bounded else ""
        guard = f"{kept.lower} <= {symbol.source}"
        guard += f" and {symbol.source} <= {kept.upper}" if kept.bounded else ""
        most = f", max={kept.upper}" if kept.bounded else ""
        self.solver.violations.add(
            symbol,
            f"Not all values of {symbol.label} = {symbol.source} in the specified range "
            f"{told.lower} <= {symbol.label}{high} satisfy the generated guard {guard}, of\n"
            f"    {format_frames(symbol.asked[-1:])}",
            f"Dim('{symbol.label}', min={kept.lower}{most})",
        )

    def holds(self, name: str, difference: Expression) -> bool:
        """Whether a condition is fulfilled by all sizes that are tried within the ranges."""
        compare = getattr(operator, name)
        samples: list[dict[str, Any]] = [{}]
        for symbol in sorted(difference.symbols()):
            known = self.symbols[symbol].range
            low = max(known.lower, 2)
            top = int(known.upper) if known.bounded else 10**6
            tried = {
                low,
                low + 1,
                low + 2,
                self.symbols[symbol].hint,
                (low + top) // 2,
                top - 1,
                top,
            }
            sizes = [n for n in tried if n in known]
            samples = [{**s, symbol: n} for s in samples for n in sizes][:5000]
        return all(compare(difference.value(s), 0) for s in samples)

    def guards(self, users: list[Node]) -> list[str]:
        """Conditions that no range says, in Python."""
        of_symbol: dict[str, str] = {}
        for node in users:
            value = node.meta["val"]
            sizes = enumerate(value.shape) if isinstance(value, Tensor) else [(None, value)]
            for i, n in sizes:
                name = getattr(getattr(n, "expr", None), "name", None)
                if name is not None:
                    text = node.name if i is None else f"{node.name}.size()[{i}]"
                    of_symbol.setdefault(name, text)
        return [
            f"{python_text(a, of_symbol)} {sign} {python_text(b, of_symbol)}"
            for sign, a, b in dict.fromkeys(self.conditions)
            if a.symbols() | b.symbols() <= set(of_symbol)
            and a.functions() | b.functions() <= set(_SPACE)
        ]
