"""`Graph`: a list of nodes that can be changed, checked, copied and written as Python."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, Literal

from rushlight import nn
from rushlight.fx._codegen import (
    CodeGen,
    Namespace,
    PythonCode,
    _is_magic,
    _Namespace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    _snake_case,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from rushlight.fx.node import Argument, Node, Target, map_arg

__all__ = [
    "CodeGen",
    "Graph",
    "PythonCode",
    "_Namespace",
    "_PyTreeCodeGen",
    "_PyTreeInfo",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]


class _node_list:
    """The nodes of a graph, in order; nodes may be erased and put in while one walks."""

    def __init__(self, graph: Graph, direction: Literal["_prev", "_next"] = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


class _InsertPoint:
    """Where new nodes go, for the time of a `with` block."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """The steps of a computation: `Node`s in the order in which they run.

    Args:
        owning_module: the GraphModule that the graph is of.
        tracer_cls: the class of the tracer that made it.
        tracer_extras: what that class is given when a copy of the graph is traced again.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> result = graph.output(graph.call_function(torch.relu, (x,)))
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
            return relu
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._codegen = CodeGen()
        self._owning_module, self._tracer_cls = owning_module, tracer_cls
        self._tracer_extras = tracer_extras
        hooks: list[list[Callable[..., Any]]] = [[], [], []]
        self._create_hooks, self._erase_hooks, self._replace_hooks = hooks

    @property
    def owning_module(self) -> Any:
        """The GraphModule that owns the graph, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """All nodes in order; `reversed` iterates from the end."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The output node."""
        node = next(iter(reversed(self.nodes)), None)
        if node is None or node.op != "output":
            raise AssertionError("the graph has no output")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with this `op`, and with this target if one is given.

        Args:
            op: the kind.
            target: the target of the nodes; needed for functions, methods and modules.
            sort: in the order of the graph, which they always are.
        """
        if op == "call_function" and target is None:
            raise AssertionError("a target is needed to find calls of functions")
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copy all nodes of another graph to the insertion point.

        Args:
            g: the other graph.
            val_map: a dict from nodes of `g` to nodes of this graph, to which the copies are added.
                Nodes that it contains are not copied.
            return_output_node: give the output's node as well.

        Returns:
            The value of the other's output, in nodes of this graph; None if it has none.
        """
        copy_of = val_map.__getitem__
        for node in g.nodes:
            if node.op == "output" and node not in val_map:
                value = map_arg(node.args[0], copy_of)
                return (value, node) if return_output_node else value
            if node not in val_map:
                val_map[node] = self.node_copy(node, copy_of)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        twin = Graph(tracer_cls=self._tracer_cls)
        twin._codegen = copy.deepcopy(self._codegen)
        copied = twin.graph_copy(self, {}, return_output_node=True)
        if copied is not None:
            value, output = copied
            twin.output(value, output.type).meta.update(output.meta)
        if memo is not None:
            memo[id(self)] = twin
        return twin

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a node at the insertion point.

        Args:
            op: its kind.
            target: the function, method, module or attribute.
            args: positional arguments.
            kwargs: keyword arguments.
            name: made to be new; by default that of the target.
            type_expr: the type of its value.
        """
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        new_name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, new_name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(new_name, node)
        self._insert(node)
        self._len += 1
        for hook in self._create_hooks:
            hook(node)
        return node

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments of a caller to the values of the inputs."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Convert the value of the output to the result for the caller."""
        return self._codegen.process_outputs(out)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node, which must have no users."""
        if to_erase.users:
            raise RuntimeError(
                f"cannot erase Node {to_erase}: it still had {len(to_erase.users)} users, "
                f"{list(to_erase.users)}; give them another argument first"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        for hook in self._erase_hooks:
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Set the insertion point before a node, for a `with` block or until it is set again."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Set the insertion point after a node; the latest new node is directly after it."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    # ---- one function for each kind of node ----

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Insert an input of the graph; `...` means that it has no default."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert the reading of a parameter, buffer or other attribute by its dotted name."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a call of a submodule by its dotted name."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)  # raises where there is none
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Insert a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Insert a copy of a node, of this graph or another, at the insertion point.

        Args:
            node: the original.
            arg_transform: a function from a node among its arguments to the node of this graph that
                replaces it.
        """
        args, kwargs = (map_arg(part, arg_transform) for part in (node.args, node.kwargs))
        twin = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        twin.meta.update(node.meta)
        return twin

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Insert the output of the graph."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target: Target | None) -> str:
        """A name for the value of a call."""
        if isinstance(target, str):
            name = target
        else:
            name = getattr(target, "__name__", None) or getattr(target, "_opname", "value")
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    # ---- Python ----

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """Write the graph as a Python function.

        Args:
            root_module: what modules and attributes are read from: "self".
            verbose: comments say where steps are from.
            options: has no effect.
        """
        namespace = Namespace()
        with self._with_names(lambda node: namespace.create_name(node.name, node)):
            nodes = _node_list(self)
            return self._codegen._gen_python_code(nodes, root_module, namespace, verbose=verbose)

    @contextlib.contextmanager
    def _with_names(self, naming: Callable[[Node], str]) -> Iterator[None]:
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = naming
        try:
            yield
        finally:
            for node, function in before:
                node._repr_fn = function

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return f"graph():{''.join(f'{chr(10)}    {line}' for line in lines)}"

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        heads = ["opcode", "name", "target", "args", "kwargs"]
        rows = [[str(v) for v in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        columns = zip(heads, *rows, strict=True)
        widths = [max(len(head) + 2, *map(len, column)) for head, *column in columns]
        for row in (heads, ["-" * width for width in widths], *rows):
            print("  ".join(map(str.ljust, row, widths)).rstrip())

    # ---- checks and changes ----

    def lint(self) -> None:
        """Check that the graph is well formed.

        Raises:
            RuntimeError: an argument is of another graph or not there yet, a name stands twice, or
                a target does not exist.
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node.all_input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"'{arg}', which '{node}' takes, does not belong to this Graph; "
                        f"`arg_transform` of node_copy() says what stands for it here\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"'{arg}', which '{node}' takes, was used before it has been defined: "
                        f"put it before its users\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        value = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(value, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute "
                    f"{part} of {type(value).__name__}"
                )
            value = getattr(value, part)
        if node.op == "call_module" and not isinstance(value, nn.Module):
            raise RuntimeError(
                f"Node {node} target {node.target} does not reference an nn.Module: {type(value)}"
            )

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes without users or side effects; returns whether there were any.

        Args:
            is_impure_node: of a node whether it does more than give its result.
        """
        self.lint()
        impure = (lambda node: node.is_impure()) if is_impure_node is None else is_impure_node
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set the object that writes the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Register a function that changes the lines of `forward` as they are written.

        Args:
            make_transformer: given the function that changes them now (or None), the one that
                does from now on: from a list of lines to another.

        Returns:
            A context manager that goes back at its end.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def going_back() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return going_back()

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)
