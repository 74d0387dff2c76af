"""Constant folding: values that depend on no input are computed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A GraphModule whose constants are computed by the first call, or by `run_folding`.

    Args:
        root: what modules and attributes are taken from.
        graph: what is left to compute in each call.
        const_subgraph: what is computed once; None if nothing is.
        fx_const_folded_attrs_name: the attribute of its result, with numbers behind it where it
            has several.
        device_for_folded_attrs: where results go that are numbers.

    For an example see `fx.experimental.const_fold.split_const_subgraphs`.
    """

    def __init__(
        self,
        root: nn.Module | dict[str, Any],
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None
        if const_subgraph is not None:
            self.const_subgraph_module = GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute and keep the constants; a no-op if there are none."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("the constants have been computed")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        several = isinstance(found, tuple | list)
        for i, value in enumerate(found if several else [found]):
            name = self.fx_const_folded_attrs_name + (f"_{i}" if several else "")
            if not isinstance(value, Tensor):
                value = rushlight.tensor(value, device=self.device_for_folded_attrs)
            delattr(self, name)
            if value.is_floating_point() or value.is_complex():
                kept = nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
                setattr(self, name, kept)
            else:
                self.register_buffer(name, value)


def get_unique_attr_name_in_module(mod_traced: nn.Module, name: str) -> str:
    """A name with this prefix that is not an attribute of the module yet.

    Args:
        mod_traced: the module.
        name: what it begins with.

    For an example see `fx.experimental.const_fold.split_const_subgraphs`.
    """
    name = re.sub(r"\W", "_", name)
    if name[:1].isdigit():
        name = f"_{name}"
    number = 1
    while hasattr(mod_traced, name):
        name, number = f"{re.sub(r'_[0-9]+$', '', name)}_{number}", number + 1
    return name


def split_const_subgraphs(
    module: nn.Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module that computes values without dependence on inputs only once.

    Args:
        module: a module that can be traced, or a GraphModule, which stays as it is.
        skip_folding_node_fn: true of nodes that are to be computed in every call.
        device_for_folded_attrs: where constants go that are numbers.

    Example:
        >>> from rushlight.fx.experimental.const_fold import split_const_subgraphs
        >>> class Shifted(torch.nn.Linear):
        ...     def forward(self, x):
        ...         return x + (self.bias + 1)
        >>> shifted = Shifted(1, 2)
        >>> _ = torch.nn.init.ones_(shifted.bias)
        >>> folded = split_const_subgraphs(shifted)
        >>> folded(torch.zeros(2))
        tensor([2., 2.], grad_fn=<AddBackward0>)
    """
    traced: Any = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: dict[Node, None] = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure():
            continue
        if not all(used in constant for used in node.all_input_nodes):
            continue
        if node.op != "get_attr" and (
            not node.all_input_nodes or _is_skipped(node, skip_folding_node_fn)
        ):
            continue
        constant[node] = None
    # What is handed on: computed of constants, and used by what is not.
    results = [
        node
        for node in constant
        if node.op != "get_attr" and any(user not in constant for user in node.users)
    ]
    if not results:
        return FoldedGraphModule(
            traced, _copied(traced.graph), device_for_folded_attrs=device_for_folded_attrs
        )
    root = _Attributes(traced)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    once, copies = Graph(), {}
    for node in constant:
        copies[node] = once.node_copy(node, lambda used: copies[used])
    values = [copies[node] for node in results]
    once.output(values[0] if len(values) == 1 else tuple(values))
    once.eliminate_dead_code()
    rest, left = Graph(), {}
    for node in traced.graph.nodes:
        if node in results:
            attribute = name + (f"_{results.index(node)}" if len(results) > 1 else "")
            root.extra[attribute] = rushlight.empty(0)
            left[node] = rest.get_attr(attribute)
            left[node].meta = node.meta.copy()
        elif node not in constant or any(user not in constant for user in node.users):
            left[node] = rest.node_copy(node, lambda used: left[used])
    rest._codegen = traced.graph._codegen
    wanted = root.of(once, rest)
    return FoldedGraphModule(wanted, rest, once, name, device_for_folded_attrs)


def _is_skipped(node: Node, skip: Callable[[Node], bool] | None) -> bool:
    return skip is not None and skip(node)


def _copied(graph: Graph) -> Graph:
    new = Graph()
    result = new.graph_copy(graph, val_map={})
    new.output(result)
    new._codegen = graph._codegen
    return new


class _Attributes:
    """What graphs read of a module, and what is put there instead of it."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.extra: dict[str, Any] = {}

    def of(self, *graphs: Graph) -> dict[str, Any]:
        targets = {n.target for g in graphs for n in g.nodes if n.op in ("get_attr", "call_module")}
        return {
            target: self.extra[target] if target in self.extra else _get_attr(self.module, target)
            for target in targets
        }
