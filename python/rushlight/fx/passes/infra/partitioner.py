"""`CapabilityBasedPartitioner`: finds the largest partitions of a graph that a backend can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, _get_qualified_name
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions, validate_partition

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A set of nodes that becomes one module.

    Args:
        id: its number.
        nodes: the nodes.
        node_orders: where each stands in the graph.

    For an example see `fx.passes.infra.partitioner.CapabilityBasedPartitioner`.
    """

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        nodes = list(nodes or ())
        orders = [None] * len(nodes) if node_orders is None else list(node_orders)
        self.nodes: dict[Node, int | None] = dict(zip(nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node with its index in the graph."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


def _name_of(node: Node) -> Any:
    return _get_qualified_name(node.target) if callable(node.target) else node.target


class CapabilityBasedPartitioner:
    """Finds sets of supported nodes that can be computed in one call.

    Args:
        graph_module: the module.
        operator_support: which nodes are.
        allows_single_node_partition: a set may be a single call.
        non_compute_ops: names of functions that compute nothing: sets of them alone do not count.
        allowed_single_node_partition_ops: names of functions that may be alone.
        skip_horizontal_fusion: sets grow along uses only, not to nodes beside them.

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        >>> from rushlight.fx.passes.operator_support import create_op_support
        >>> net = make_fx(lambda x: (x.cos() + 1).sin().sum())(torch.ones(2))
        >>> pointwise = create_op_support(lambda modules, node: "sum" not in node.name)
        >>> parts = CapabilityBasedPartitioner(net, pointwise).propose_partitions()
        >>> [sorted(node.name for node in part.nodes) for part in parts]
        [['add', 'cos', 'sin']]
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        modules = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The partitions in the order of the graph."""
        nodes = list(self.graph_module.graph.nodes)
        place = {node: i for i, node in enumerate(nodes)}
        modules = dict(self.graph_module.named_modules())
        calls = ("call_function", "call_method", "call_module", "get_attr")
        supported = {
            node
            for node in nodes
            if node.op in calls and self.operator_support.is_node_supported(modules, node)
        }
        parts: list[set[Node]] = []
        part_of: dict[Node, set[Node]] = {}
        for node in nodes:
            if node not in supported:
                continue
            mine = {node}
            parts.append(mine)
            part_of[node] = mine
            beside = [p for p in parts if p is not mine] if not self.skip_horizontal_fusion else []
            near = [part_of[used] for used in node.all_input_nodes if used in part_of]
            for other in [*near, *beside]:
                mine = part_of[node]
                if other is mine or not any(other is p for p in parts):
                    continue
                if validate_partition(list(mine | other)):
                    parts = [p for p in parts if p is not mine and p is not other]
                    joined = mine | other
                    parts.append(joined)
                    part_of.update(dict.fromkeys(joined, joined))
        return [
            Partition(i, ordered, [place[node] for node in ordered])
            for i, ordered in enumerate(
                sorted((sorted(p, key=place.__getitem__) for p in parts), key=lambda p: place[p[0]])
            )
            if self._counts(ordered)
        ]

    def _counts(self, nodes: list[Node]) -> bool:
        """Whether a set is worth a call of its own."""
        computing = [
            node
            for node in nodes
            if node.op != "get_attr" and _name_of(node) not in self.non_compute_ops
        ]
        if self.allows_single_node_partition:
            return bool(computing) or not self.non_compute_ops
        alone = [n for n in computing if _name_of(n) in self.allowed_single_node_partition_ops]
        return len(computing) > 1 or bool(alone)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace each partition by a call of a module."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove nodes that compute nothing from the beginnings and ends of partitions."""

        def is_free(node: Node) -> bool:
            return node.op == "call_function" and _name_of(node) in self.non_compute_ops

        for partition in partitions:
            changed = True
            while changed:
                ends = [
                    node
                    for node in partition.nodes
                    if is_free(node)
                    and (
                        not any(used in partition.nodes for used in node.all_input_nodes)
                        or not any(user in partition.nodes for user in node.users)
                    )
                ]
                for node in ends:
                    partition.remove_node(node)
                changed = bool(ends)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the partitions and replace each by a call of a module."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
