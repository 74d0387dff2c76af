"""Walks an exported graph and lowers its nodes one by one.

Nodes that write in place change what their tensor stands for from then on: for the tensor itself,
for what it is a view of, and for the other views of that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.onnx import _views
from rushlight.onnx._builder import Builder
from rushlight.onnx._control import CONTROL
from rushlight.onnx._graph import ExportedGraph
from rushlight.onnx._registry import call, functional, lowering_of
from rushlight.onnx._types import ELEMENT_TYPES
from rushlight.onnx._values import Expected, Unsupported, Value, expression_of
from rushlight.onnx.errors import UnsupportedOps

__all__ = ["Lowering"]


class Lowering:
    """One graph on its way to ONNX.

    Args:
        found: the exported graph.
        opset: the version of ONNX's ops.
        custom: lowerings by overload that go before those of the registry.
    """

    def __init__(
        self, found: ExportedGraph, opset: int, custom: dict[Any, Callable[..., Any]]
    ) -> None:
        self.found = found
        self.g = Builder(opset)
        self.custom = {str(target): function for target, function in custom.items()}
        self.inputs: list[Value] = []
        self._values: dict[Node, Any] = {}
        self._bases: dict[Node, Node] = {}  # of views and of results of in-place ops
        # How often each tensor that is no view was written, and what each view has seen of that.
        self._writes: dict[Node, int] = {}
        self._seen: dict[Node, int] = {}
        self._problems: dict[str, list[str]] = {}  # lines by what cannot go

    def run(self, names: Sequence[str]) -> list[Value]:
        """Lowers all nodes; returns the outputs.

        Args:
            names: of the inputs.

        Raises:
            UnsupportedOps: some nodes have no form in ONNX; the error names all of them.
        """
        for node, name in zip(self.found.inputs, names, strict=True):
            val = node.meta["val"]
            if isinstance(val, Tensor):
                self._note_dtype(node, val)
                value = Value(self.g.name(name), val.dtype, self.g.sized(val.shape))
            else:
                value = Value(self.g.name(name), rushlight.int64, ())
            self._learn(value, val)
            self._values[node] = value
            self.inputs.append(value)
        for node, (name, tensor) in self.found.constants.items():
            self._note_dtype(node, tensor)
            if tensor.dtype in ELEMENT_TYPES:
                self._values[node] = self.g.initializer(name, tensor.detach())
            else:
                self._values[node] = Value(name, tensor.dtype, tensor.shape)
        self._values.update(self.found.numbers)
        self._lower_all(self.found.program.graph_module)
        outputs = [self._output(leaf) for leaf in self.found.outputs if leaf is not None]
        if self._problems:
            raise UnsupportedOps(self._problems)
        return outputs

    def _lower_all(self, module: GraphModule) -> None:
        for node in module.graph.nodes:
            if node.op == "call_function":
                self._lower(node)
            elif node.op == "get_attr":
                owner, _, name = str(node.target).rpartition(".")
                self._values[node] = getattr(module.get_submodule(owner), name)

    def _run(self, module: GraphModule, values: Sequence[Any]) -> list[Value]:
        """Lowers a graph inside the graph, whose placeholders stand for these values."""
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        for node, value in zip(inputs, values, strict=True):
            meta = node.meta.get("val")
            known = self.g.sized(meta.shape) if isinstance(meta, Tensor) else None
            if isinstance(value, Value) and known is not None and value.sizes != known:
                raise Unsupported("a branch or a loop over tensors of which a size is open")
            self._values[node] = value
        self._lower_all(module)
        end = next(node for node in module.graph.nodes if node.op == "output")
        found = end.args[0]
        return [self._output(x) for x in (found if isinstance(found, list | tuple) else [found])]

    # ---- what does not go ----

    def _problem(self, what: str, node: Node) -> None:
        lines = self._problems.setdefault(what, [])
        trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
        line = next((line for line in reversed(trace) if line.startswith("File ")), "")
        if line not in lines:
            lines.append(line)

    def _note_dtype(self, node: Node, tensor: Tensor) -> None:
        if tensor.dtype not in ELEMENT_TYPES:
            self._problem(f"{tensor.dtype}, which ONNX has no element type for", node)

    # ---- nodes ----

    def _lower(self, node: Node) -> None:
        g = self.g
        g.begin(node.name)
        val = node.meta.get("val")
        if isinstance(val, rushlight.SymInt):
            self._values[node] = g.sized([val])[0]
            return
        for part in _flat(val):
            if isinstance(part, Tensor):
                self._note_dtype(node, part)
        self._expect(node)
        try:
            if node.target is operator.getitem:
                made = self._item(node)
            elif not _is_overload(node) and str(node.target) in CONTROL:
                made = CONTROL[str(node.target)](g, self._run, *self._read(list(node.args)))
            else:
                function, named = self._bound(node)
                made = call(function, g, named)
            self._store(node, made)
        except Unsupported as problem:
            self._problem(f"{node.target}: {problem}", node)
            self._values[node] = self._blank(node.meta.get("val"))

    def _expect(self, node: Node) -> None:
        """Tells the builder what the node under way calls and returns."""
        self.g.overload = functional(str(node.target)) if _is_overload(node) else ""
        self.g.parts = [
            Expected(part.dtype, self.g.sized(part.shape))
            for part in _flat(node.meta.get("val"))
            if isinstance(part, Tensor)
        ]
        self.g.result = self.g.parts[0] if self.g.parts else None

    def _bound(self, node: Node) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The lowering of a node and all arguments of its schema, by name and in order."""
        overload = str(node.target)
        if not _is_overload(node):
            raise Unsupported("it has no form in ONNX")
        function = self.custom.get(overload) or lowering_of(overload)
        if function is None:
            raise Unsupported("no lowering is registered for it")
        schema = node.target._schema
        arguments = []
        for i, argument in enumerate(schema.arguments):
            default = argument.default_value
            thing = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, default)
            arguments.append(self._read(_repeated(thing, argument)))
        is_tensor = bool(arguments) and schema.arguments[0].type == "Tensor"
        if is_tensor and isinstance(arguments[0], int | float):  # a number in the place of a tensor
            arguments[0] = self.g.constant(arguments[0])
        for value in _flat(arguments):
            if isinstance(value, Value) and value.dtype not in ELEMENT_TYPES:
                raise Unsupported(f"an argument of {value.dtype}")
        return function, dict(zip((a.name for a in schema.arguments), arguments, strict=True))

    def _read(self, thing: Any) -> Any:
        if isinstance(thing, Node):
            found = self._current(thing)
            if found is None and isinstance(thing.meta.get("val"), Tensor):
                raise Unsupported(f"it needs {thing}, a result of {thing.args[0]} without a form")
            return found
        if isinstance(thing, list | tuple):
            return [self._read(item) for item in thing]
        return thing

    def _blank(self, result: Any) -> Any:
        """What stands for results that could not be lowered, so that other problems are found."""
        if isinstance(result, list | tuple):
            return [self._blank(item) for item in result]
        if not isinstance(result, Tensor):
            return result
        return Value("", result.dtype, self.g.sized(result.shape))

    def _learn(self, value: Value, meta: Any) -> None:
        """Symbols that are first seen among the sizes of a tensor are read off it."""
        sizes = enumerate(meta.shape) if isinstance(meta, Tensor) else [(None, meta)]
        for dim, size in sizes:
            expr = expression_of(size)
            if expr is None or len(expr.symbols()) != 1:
                continue
            (symbol,) = expr.symbols()
            more = expr.terms.get((), 0)
            line = expr - more
            factor = next(iter(line.terms.values()))
            plain = type(expr).symbol(symbol) * factor == line
            if plain and factor > 0 and symbol not in self.g.symbols:
                self.g.symbols[symbol] = value, dim, factor, more

    def _item(self, node: Node) -> Any:
        source, index = node.args
        assert isinstance(source, Node) and isinstance(index, int)
        if source in self._bases:
            self._bases[node] = source
        return self._current(source)[index]

    # ---- views and writes ----

    def _store(self, node: Node, made: Any) -> None:
        """Remembers what a node gives, and whose elements these are."""
        written = _views.written_argument(node)
        if written is not None:
            self._write(written, self._fitted(written, made))
            self._bases[node], made = written, self._values[written]
        else:
            base = _views.base_of(node)
            if base is not None:
                self._bases[node] = base
            self._describe(node, made)
        self._values[node] = made
        self._seen[node] = self._writes.get(self._root(node), 0)
        if isinstance(made, Value):
            self.g.rename(made, node.name)

    def _describe(self, node: Node, made: Any) -> None:
        """Results have the dtypes that the program says, and get its shapes."""
        for value, meta in zip(_flat(made), _flat(node.meta.get("val")), strict=False):
            if isinstance(value, Value) and isinstance(meta, Tensor):
                if value.dtype != meta.dtype:
                    raise AssertionError(
                        f"{node.target} was lowered to {value.dtype}, but gives {meta.dtype}"
                    )
                if value.shape is not None and len(value.shape) != meta.dim():
                    raise AssertionError(
                        f"{node.target} was lowered to {value.shape}, but gives {meta.shape}"
                    )
                value.shape = self.g.sized(meta.shape)
                self._learn(value, meta)

    def _fitted(self, node: Node, value: Value) -> Value:
        """A tensor with the dtype of what it is written into; the shape is the same already."""
        meta = node.meta["val"]
        value = self.g.cast(value, meta.dtype)
        value.shape = self.g.sized(meta.shape)
        return value

    def _root(self, node: Node) -> Node:
        while node in self._bases:
            node = self._bases[node]
        return node

    def _current(self, node: Node) -> Any:
        """What a node stands for now: a view of something written since is taken again."""
        base = self._bases.get(node)
        writes = self._writes.get(self._root(node), 0)
        if base is not None and self._seen[node] != writes:
            made = self._current(base)
            if node.target is operator.getitem:
                made = made[node.args[1]]
            elif _views.written_argument(node) is None:
                outer = self.g.result, self.g.parts, self.g.overload
                function, named = self._bound(node)
                self._expect(node)
                made = call(function, self.g, named)
                self.g.result, self.g.parts, self.g.overload = outer
                self._describe(node, made)
            self._values[node], self._seen[node] = made, writes
        return self._values[node]

    def _write(self, node: Node, value: Any) -> None:
        """From now on a tensor, and what it is a view of, have these elements."""
        base = self._bases.get(node)
        if base is None:
            self._writes[node] = self._writes.get(node, 0) + 1
        elif node.target is operator.getitem:
            parts = list(self._current(base))
            parts[node.args[1]] = value
            self._write(base, parts)
        elif _views.written_argument(node) is not None:
            self._write(base, value)
        else:
            named = self._bound(node)[1]
            self._write(base, _views.base_with(self.g, node, list(named.values()), value))
        self._values[node] = value
        self._seen[node] = self._writes[self._root(node)]

    def _output(self, leaf: Any) -> Value:
        try:
            leaf = self._read(leaf)
        except Unsupported as problem:
            self._problem(f"the result of the program: {problem}", leaf)
            return Value("", rushlight.float32, ())
        return leaf if isinstance(leaf, Value) else self.g.constant(leaf)


def _is_overload(node: Node) -> bool:
    return hasattr(node.target, "_schema")


def _flat(thing: Any) -> list[Any]:
    if isinstance(thing, list | tuple):
        return [leaf for item in thing for leaf in _flat(item)]
    return [thing]


def _repeated(thing: Any, argument: Any) -> Any:
    """An argument with one number for each dimension, where one was given for all."""
    if argument.N and isinstance(thing, int):
        return [thing] * argument.N
    if argument.N and isinstance(thing, list | tuple) and len(thing) == 1:
        return list(thing) * argument.N
    return list(thing) if isinstance(thing, tuple) else thing
