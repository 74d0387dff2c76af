"""`CSEPass`: eliminates common subexpressions."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.utils._pytree import tree_flatten

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops() -> set[Any]:
    """Ops whose calls are never merged: they draw random numbers or write in place.

    Example:
        >>> from rushlight.fx.passes.cse_pass import get_CSE_banned_ops
        >>> torch.ops.aten.cos.default in get_CSE_banned_ops()
        False
    """
    from rushlight import Tag

    banned: set[Any] = set()
    for name in dir(rushlight.ops.aten):
        packet = getattr(rushlight.ops.aten, name)
        overloads = (
            [getattr(packet, o) for o in packet.overloads()] if hasattr(packet, "overloads") else []
        )
        found = [
            op
            for op in overloads
            if op._schema.is_mutable or Tag.nondeterministic_seeded in op.tags
        ]
        banned.update(found)
        if found and len(found) == len(overloads):
            banned.add(packet)
    return banned


class CSEPass(PassBase):
    """Merges calls of one function with the same arguments.

    Args:
        banned_ops: functions that are left alone, beside those that draw or write in place.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> from rushlight.fx.passes.cse_pass import CSEPass
        >>> net = make_fx(lambda x: x.cos() + x.cos())(torch.ones(2))
        >>> result = CSEPass()(net)
        >>> result.modified, str(result.graph_module.graph).count("aten.cos")
        (True, 1)
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = set(banned_ops or ())
        super().__init__()

    def _is_banned(self, node: Node) -> bool:
        target: Any = node.target
        packet = getattr(target, "overloadpacket", target)
        if target in self.banned_ops or packet in self.banned_ops:
            return True
        schema = getattr(target, "_schema", None)
        if schema is None:  # a function: the op of its name says
            found = getattr(rushlight.ops.aten, getattr(target, "__name__", ""), None)
            ops = [getattr(found, o) for o in found.overloads()] if found is not None else []
        else:
            ops = [target]
        if any(packet is one.overloadpacket for one in ops for packet in self.banned_ops):
            return True
        drawing = rushlight.Tag.nondeterministic_seeded
        return any(drawing in op.tags for op in ops) or (schema is not None and schema.is_mutable)

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module without repeated calls; the given module is not changed."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        modified = False
        for node in graph_module.graph.nodes:
            if node.op != "call_function" or self._is_banned(node):
                copies[node] = graph.node_copy(node, lambda used: copies[used])
                continue
            key = self._key(node, copies)
            if key in known:
                copies[node] = known[key]
                modified = True
                continue
            copies[node] = graph.node_copy(node, lambda used: copies[used])
            if key is not None:
                known[key] = copies[node]
        graph._codegen = graph_module.graph._codegen
        return PassResult(GraphModule(graph_module, graph), modified)

    @staticmethod
    def _key(node: Node, copies: dict[Node, Node]) -> Any:
        """What calls with the same result have in common; None if nobody can tell."""
        args, spec = tree_flatten((node.args, dict(node.kwargs)))
        values = []
        for value in args:
            if isinstance(value, Node):
                value = copies[value]
            elif isinstance(value, slice):
                parts = (value.start, value.stop, value.step)
                value = tuple(copies[p] if isinstance(p, Node) else p for p in parts)
            values.append((type(value), value))
        key = (node.target, tuple(values), str(spec))
        try:
            hash(key)
        except TypeError:
            return None
        return key
