"""`Interpreter` runs a graph node by node; `Transformer` makes another graph that way."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from rushlight import nn
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, Target, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph; subclasses override the methods for kinds of nodes.

    Args:
        module: a GraphModule, or the module that a graph refers to.
        garbage_collect_values: drop values behind their last use.
        graph: the graph, by default the module's.

    Example:
        >>> class Count(torch.fx.Interpreter):
        ...     calls = 0
        ...
        ...     def call_function(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_function(target, args, kwargs)
        >>> run = Count(torch.fx.symbolic_trace(lambda x: torch.sin(x) + torch.cos(x)))
        >>> run.run(torch.zeros(2)), run.calls
        (tensor([1., 1.]), 3)
    """

    def __init__(
        self,
        module: nn.Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph and return the value of its output.

        Args:
            args: the inputs.
            initial_env: values of nodes that are known; these are not computed.
            enable_io_processing: take containers apart, and put them together, as the graph's code
                does.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and error.args and isinstance(error.args[0], str):
                    place = f"While executing {node.format_node()}"
                    if place not in error.args[0]:
                        trace = f"\nOriginal traceback:\n{node.stack_trace}"
                        error.args = (f"{error.args[0]}\n\n{place}{trace}", *error.args[1:])
                raise
            for used in self.user_to_last_uses.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with a list of inputs, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """Run one node and return its value."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input, or its default if there is none left."""
        if isinstance(target, str) and target.startswith("**"):
            return kwargs
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {target}, but one was not passed in!"
        )

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute with a dotted name."""
        if args or kwargs:
            raise AssertionError("an attribute has no arguments")
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        obj, *rest = args
        return getattr(obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value that the graph returns."""
        if kwargs:
            raise AssertionError("the output has one argument")
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module with a dotted name."""
        value: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Replace nodes by their values in a structure of arguments."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


class _Retracer(Tracer):
    """Records calls in a graph that is there already, those of modules whole."""

    def __init__(self, root: nn.Module, graph: Graph) -> None:
        super().__init__()
        self.root, self.graph = root, graph

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes another GraphModule: its methods take and return proxies of the new graph.

    Args:
        module: the GraphModule.

    Example:
        >>> class SinForCos(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         target = torch.sin if target is torch.cos else target
        ...         return super().call_function(target, args, kwargs)
        >>> changed = SinForCos(torch.fx.symbolic_trace(lambda x: torch.cos(x))).transform()
        >>> changed(torch.zeros(2))
        tensor([0., 0.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.new_graph._tracer_cls = module.graph._tracer_cls
        self.tracer = _Retracer(module, self.new_graph)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Insert an input into the new graph."""
        default = next(iter(args)) if args else inspect.Signature.empty
        given = () if default is inspect.Signature.empty else (default,)
        return self.tracer.create_proxy("placeholder", target, given, {})

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Insert the reading of an attribute into the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a module into the new graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a function into the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Make the new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:

            def node_of(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            new = self.new_graph.output(map_aggregate(result, node_of))
            for old in self.graph.find_nodes(op="output"):
                new.type = old.type
                new.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
