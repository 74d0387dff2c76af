"""`FxGraphDrawer`: draws a graph with Graphviz, through the package pydot."""

from __future__ import annotations

import importlib.util
import zlib
from typing import Any

from rushlight import Tensor, nn
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.operator_schemas import normalize_function
from rushlight.fx.passes.shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

HAS_PYDOT = importlib.util.find_spec("pydot") is not None

_FILLS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
# Functions and methods get one of these by their names.
_OTHERS = ("CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1")
_OTHERS += ("LavenderBlush1", "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2")
_LONGEST_ARGUMENTS = 100


class FxGraphDrawer:
    """Makes `pydot.Dot` graphs of a GraphModule and the graph modules inside of it.

    `FxGraphDrawer(module, "name").get_dot_graph().write_svg("name.svg")`

    Args:
        graph_module: the module.
        name: the title of the graph.
        ignore_getattr: leave nodes out that read attributes.
        ignore_parameters_and_buffers: leave the tensors of modules out.
        skip_node_names_in_args: leave names of nodes out of arguments that are shown.
        parse_stack_trace: show the line of the program that made a node, where it is known.
        dot_graph_shape: the shape of nodes, "record" by default.
        normalize_args: show arguments by name.

    Raises:
        RuntimeError: if pydot is not installed.

    Example:
        >>> from rushlight.fx.passes.graph_drawer import FxGraphDrawer
        >>> net = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> FxGraphDrawer(net, "net").get_dot_graph().write_svg("net.svg")  # doctest: +SKIP
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        if not HAS_PYDOT:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed: pip install pydot, and "
                "Graphviz for pictures"
            )
        self._name = name
        self._shape = dot_graph_shape or "record"
        self._ignore_getattr = ignore_getattr
        self._ignore_tensors = ignore_parameters_and_buffers
        self._skip_names = skip_node_names_in_args
        self._parse_stack_trace = parse_stack_trace
        self._normalize_args = normalize_args
        self._dot_graphs: dict[str, Any] = {}
        self._draw(graph_module, name)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing of the module, or of the graph module with this name inside it."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self) -> Any:
        """The drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The drawing of a graph module inside the module."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All drawings by name."""
        return self._dot_graphs

    def _draw(self, gm: GraphModule, name: str) -> None:
        import pydot  # pyright: ignore[reportMissingImports]

        dot = pydot.Dot(name, rankdir="TB")
        self._dot_graphs[name] = dot
        shown = [n for n in gm.graph.nodes if not (self._ignore_getattr and n.op == "get_attr")]
        for node in shown:
            dot.add_node(pydot.Node(node.name, label=self._label(gm, node), **self._style(node)))
            if node.op != "call_module":
                continue
            module = _get_attr(gm, node.target)
            if isinstance(module, GraphModule):
                self._draw(module, f"{name}_{node.target}")
                continue
            if not self._ignore_tensors:
                self._tensors(dot, node, module)
        for node in shown:
            for user in node.users:
                dot.add_edge(pydot.Edge(node.name, user.name))

    def _tensors(self, dot: Any, node: Node, module: nn.Module) -> None:
        import pydot  # pyright: ignore[reportMissingImports]

        for kind, named in (
            ("parameter", module.named_parameters),
            ("buffer", module.named_buffers),
        ):
            for name, tensor in named():
                full = f"{node.target}.{name}"
                label = f"{{name={full}|op_code={kind}|{_description(tensor)}}}"
                dot.add_node(pydot.Node(full, label=label, **self._style(None)))
                dot.add_edge(pydot.Edge(full, node.name))

    def _style(self, node: Node | None) -> dict[str, str]:
        fill = "LightGrey" if node is None else _FILLS.get(node.op)
        if fill is None:
            fill = _OTHERS[
                zlib.crc32(str(node and node._pretty_print_target(node.target)).encode())
                % len(_OTHERS)
            ]
        return {
            "shape": self._shape,
            "fillcolor": fill,
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }

    def _label(self, gm: GraphModule, node: Node) -> str:
        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            module = _get_attr(gm, node.target)
            parts.append(type(module).__name__)
            parts += [
                f"{key}: {getattr(module, key)}" for key in getattr(module, "__constants__", ())
            ]
        else:
            parts.append(f"target={_escape(node._pretty_print_target(node.target))}")
            parts += self._arguments(node)
            parts.append(f"num_users={len(node.users)}")
        if self._parse_stack_trace and node.stack_trace:
            lines = [line.strip() for line in node.stack_trace.strip().splitlines()]
            parts.append(f"file={_escape(' '.join(lines[-2:]))}")
        meta = node.meta.get("tensor_meta")
        if meta is not None:
            parts.append(_escape(_description(meta)))
        return "{" + "|".join(parts) + "}"

    def _arguments(self, node: Node) -> list[str]:
        args: Any = node.args
        kwargs: Any = node.kwargs
        if self._normalize_args and node.op == "call_function":
            found = normalize_function(node.target, args, kwargs, normalize_to_only_use_kwargs=True)
            if found is not None:
                args, kwargs = found
        shown = []
        for name, value in (("args", args), ("kwargs", kwargs)):
            if not value:
                continue
            if self._skip_names:
                value = map_arg(value, lambda used: "")
            text = str(value)
            if len(text) > _LONGEST_ARGUMENTS:
                text = text[:_LONGEST_ARGUMENTS] + "..."
            shown.append(f"{name}={_escape(text)}")
        return shown


def _escape(text: str) -> str:
    """Text inside of a label of the shape "record"."""
    return "".join("\\" + c if c in '{}|<>"' else c for c in text)


def _description(value: Any) -> str:
    """dtype and sizes of a tensor, or of what is known of it."""
    if isinstance(value, TensorMetadata):
        return f"dtype={value.dtype}, shape={tuple(value.shape)}"
    if isinstance(value, Tensor):
        return f"dtype={value.dtype}, shape={tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(_description, value)) + ")"
    return ""
