"""Makes a graph that works on codes of a prepared one."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao.quantization import quantization_mappings as mappings
from rushlight.ao.quantization.fx import _kinds
from rushlight.ao.quantization.fx._prepare import Plan
from rushlight.ao.quantization.quantize import swap_module
from rushlight.fx import Graph, GraphModule, Node
from rushlight.fx.node import map_arg


class _Converter:
    """Copies a prepared graph node by node.

    A value has a form of floats and one of codes, each made where it is asked for.
    """

    def __init__(self, prepared: GraphModule) -> None:
        self.root = prepared
        self.plan: Plan = prepared.meta["quantization"]
        self.graph = Graph()
        self.modules = dict(prepared.named_modules())
        self.floats: dict[Node, Node] = {}
        self.codes: dict[Node, Node] = {}

    # ---- the two forms ----

    def value(self, node: Node) -> Node:
        """A value itself, where an observer is read."""
        while node.op == "call_module" and node.target in self.plan.observers.values():
            node = node.args[0]
        return node

    def float_of(self, node: Node) -> Node:
        node = self.value(node)
        if node not in self.floats:
            self.floats[node] = self.graph.call_method("dequantize", (self.codes[node],))
        return self.floats[node]

    def codes_of(self, node: Node) -> Node:
        node = self.value(node)
        if node not in self.codes:
            scale, zero_point, dtype = self.qparams(node)
            self.codes[node] = self.graph.call_function(
                rushlight.quantize_per_tensor, (self.floats[node], scale, zero_point, dtype)
            )
        return self.codes[node]

    def form_of(self, node: Node) -> Node:
        """The form that there is."""
        node = self.value(node)
        return self.codes[node] if node in self.codes else self.floats[node]

    def qparams(self, node: Node) -> tuple[Node, Node, rushlight.dtype]:
        """What an observer has found, as nodes that read buffers."""
        name = self.plan.observers[node.name]
        observer = self.root.get_submodule(name)
        scale, zero_point = observer.calculate_qparams()
        if scale.numel() != 1:
            raise NotImplementedError(
                f"convert_fx: the value {node.name!r} has a scale for each channel; results of "
                "layers have one, so set an activation observer by tensors in its qconfig"
            )
        read = []
        for what, number in (("scale", scale.reshape(())), ("zero_point", zero_point.reshape(()))):
            buffer = f"{node.name}_{what}_0"
            self.root.register_buffer(buffer, number)
            read.append(self.graph.get_attr(buffer))
        return read[0], read[1], observer.dtype

    # ---- nodes ----

    def convert(self, node: Node) -> None:
        if node.op == "call_module" and node.target in self.plan.observers.values():
            return
        if node.op == "output":
            self._output(node)
        elif node.name in self.plan.quantised:
            self._quantised(node)
        elif node.name in self.plan.on_codes:
            moved = node.args[0]
            self.codes[node] = self.graph.node_copy(
                node, lambda n: self.codes_of(n) if n is moved else self.form_of(n)
            )
        elif node.name in self.plan.code_inputs:
            self.codes[node] = self.graph.node_copy(node)
        elif _kinds.reads_metadata(node, self.modules):
            self.floats[node] = self.graph.node_copy(node, self.form_of)
        else:
            if node.name in self.plan.dynamic:
                self._swap(node, mappings.get_default_dynamic_quant_module_mappings())
            self.floats[node] = self.graph.node_copy(node, self.float_of)

    def _output(self, node: Node) -> None:
        given = node.args[0]
        several = isinstance(given, list | tuple)
        wanted = self.plan.code_outputs
        values = list(given) if several else [given]
        made = [
            map_arg(value, self.codes_of if i in wanted else self.float_of)
            for i, value in enumerate(values)
        ]
        self.graph.output(type(given)(made) if several else made[0], type_expr=node.type)

    def _swap(self, node: Node, mapping: dict[Any, Any]) -> None:
        """Once for all calls of a layer: what is quantised has no qconfig."""
        layer: Any = self.root.get_submodule(node.target)
        if getattr(layer, "qconfig", None) is None:
            return
        if node.name in self.plan.observers:
            layer.activation_post_process = self.root.get_submodule(self.plan.observers[node.name])
        self.root.set_submodule(node.target, swap_module(layer, mapping, {}))

    def _quantised(self, node: Node) -> None:
        function = _kinds.arithmetic(node, self.modules)
        if function is None:
            self._swap(node, mappings.get_default_static_quant_module_mappings())
            self.codes[node] = self.graph.node_copy(node, self.codes_of)
            return
        scale, zero_point, _ = self.qparams(node)
        args = map_arg(node.args, self.codes_of)
        if function is rushlight.cat:
            dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
            args = (args[0], node.kwargs.get("axis", dim))
        self.codes[node] = self.graph.call_function(
            _kinds.ARITHMETIC[function], (*args, scale, zero_point)
        )


def convert(prepared: GraphModule, remove_qconfig: bool) -> GraphModule:
    """The graph of codes, with modules of the prepared one, which is spent."""
    converter = _Converter(prepared)
    for node in prepared.graph.nodes:
        converter.convert(node)
    made = GraphModule(prepared, converter.graph, type(prepared).__name__)
    made.meta = {k: v for k, v in prepared.meta.items() if k not in ("quantization", "scopes")}
    for module in made.modules() if remove_qconfig else ():
        if "qconfig" in vars(module):
            del module.qconfig
    made.graph.eliminate_dead_code()
    made.graph.lint()
    made.recompile()
    return made


def is_prepared(graph: nn.Module) -> bool:
    """Whether `prepare_fx` or `prepare_qat_fx` made it."""
    return isinstance(graph, GraphModule) and isinstance(graph.meta.get("quantization"), Plan)
