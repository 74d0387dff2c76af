"""Decides what of a graph works on codes, and puts observers behind values that become codes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rushlight.ao.quantization import quantization_mappings as mappings
from rushlight.ao.quantization.fx import _kinds
from rushlight.ao.quantization.fx.custom_config import PrepareCustomConfig
from rushlight.ao.quantization.qconfig import QConfigAny
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.ao.quantization.quantize import swap_module
from rushlight.fx import GraphModule, Node


@dataclass
class Plan:
    """What `convert_fx` needs of a prepared graph; nodes by their names."""

    observers: dict[str, str] = field(default_factory=dict)  # of values: names of modules
    quantised: set[str] = field(default_factory=set)  # layers and arithmetic of codes
    dynamic: set[str] = field(default_factory=set)  # layers that round at each call
    on_codes: set[str] = field(default_factory=set)  # that give codes as they get them
    code_inputs: set[str] = field(default_factory=set)
    code_outputs: list[int] = field(default_factory=list)


# ---- which qconfig holds ----


class _Qconfigs:
    """Looks up the qconfigs of nodes, in the order of a graph."""

    def __init__(self, graph: GraphModule, mapping: QConfigMapping) -> None:
        self._mapping = mapping
        self._modules = dict(graph.named_modules())
        self._scopes = graph.meta.get("scopes", {})
        self._seen: Counter[tuple[str, Any]] = Counter()

    def of(self, node: Node) -> QConfigAny:
        """The most specific one."""
        mapping, called = self._mapping, _kinds.kind(node, self._modules)
        scope = self._scopes.get(node.name, "")
        path = node.target if node.op == "call_module" else scope
        within = path.rpartition(".")[0] if node.op == "call_module" else scope
        key = (within, called, self._seen[within, called])
        self._seen[within, called] += 1
        if key in mapping.module_name_object_type_order_qconfigs:
            return mapping.module_name_object_type_order_qconfigs[key]
        parts = path.split(".") if path else []
        for n in range(len(parts), 0, -1):
            name = ".".join(parts[:n])
            if name in mapping.module_name_qconfigs:
                return mapping.module_name_qconfigs[name]
        for regex, qconfig in mapping.module_name_regex_qconfigs.items():
            if path and re.match(regex, path):
                return qconfig
        return mapping.object_type_qconfigs.get(called, mapping.global_qconfig)


def _is_dynamic(qconfig: Any) -> bool:
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


# ---- what works on codes ----


class _Flow:
    """Which nodes are quantised, and whose codes each value is."""

    def __init__(self, graph: GraphModule, mapping: QConfigMapping, plan: Plan) -> None:
        self.modules = dict(graph.named_modules())
        self.plan = plan
        self.numbers: set[Node] = set()  # sizes and what is computed of them alone
        qconfigs = _Qconfigs(graph, mapping)
        self.qconfigs = {node: qconfigs.of(node) for node in graph.graph.nodes}
        for node in graph.graph.nodes:
            inputs = node.all_input_nodes
            of_numbers = bool(inputs) and self.numbers.issuperset(inputs)
            if of_numbers or _kinds.reads_metadata(node, self.modules):
                self.numbers.add(node)
            else:
                self._decide(node)
        for node in reversed(graph.graph.nodes):
            if self._moves_codes(node):
                plan.on_codes.add(node.name)

    def _decide(self, node: Node) -> None:
        qconfig = self.qconfigs[node]
        layer, dynamic = (f(node, self.modules) for f in (_kinds.is_layer, _kinds.is_dynamic_layer))
        tensors = self.numbers.isdisjoint(node.all_input_nodes)
        static = layer or (tensors and _kinds.arithmetic(node, self.modules) is not None)
        if qconfig is None or not (static or dynamic):
            return
        if not _is_dynamic(qconfig):
            if static:
                self.plan.quantised.add(node.name)
        elif dynamic:
            self.plan.dynamic.add(node.name)

    def _moves_codes(self, node: Node) -> bool:
        """Whether the input of a node is codes, or a user, which is decided, wants some.

        What a part is taken of may be a tuple of floats, which has no observer.
        """
        if node in self.numbers or not _kinds.takes_codes_as_they_are(node, self.modules):
            return False
        if self._comes_from_codes(node):
            return True
        wanted = any(self.wants_codes(user) for user in node.users)
        return wanted and not _kinds.gives_part(node, self.modules)

    def _comes_from_codes(self, node: Node) -> bool:
        while _kinds.takes_codes_as_they_are(node, self.modules):
            node = node.args[0]
        return node.name in self.plan.quantised or node.name in self.plan.code_inputs

    def wants_codes(self, node: Node) -> bool:
        """Whether a node is given codes."""
        return node.name in self.plan.quantised or node.name in self.plan.on_codes

    def source(self, node: Node) -> Node:
        """Where the scale of a value comes from."""
        while node.name in self.plan.on_codes:
            node = node.args[0]
        return node

    def code_operands(self, node: Node) -> list[Node]:
        """The values that a node takes as codes."""
        if node.name in self.plan.on_codes:
            return [node.args[0]]
        return node.all_input_nodes if node.name in self.plan.quantised else []


def _insert_observers(graph: GraphModule, flow: _Flow) -> None:
    """A module behind each value that becomes codes; those who take codes read what it gives."""
    plan = flow.plan
    wanted: dict[Node, Any] = {}
    for node in graph.graph.nodes:
        if node.name in plan.quantised:
            wanted.setdefault(node, flow.qconfigs[node])
            for value in flow.code_operands(node):
                if (source := flow.source(value)).name not in plan.code_inputs:
                    wanted.setdefault(source, flow.qconfigs[node])
    training, of_layers = graph.training, {}  # calls of one layer have one scale
    for n, (value, qconfig) in enumerate(wanted.items()):
        name = f"activation_post_process_{n}"
        if value.name in plan.quantised and value.op == "call_module":
            name = of_layers.setdefault(value.target, name)
        if name not in graph._modules:
            graph.add_submodule(name, qconfig.activation().train(training))
        plan.observers[value.name] = name
        whole = value.name in plan.quantised
        readers = [u for u in value.users if whole or value in flow.code_operands(u)]
        with graph.graph.inserting_after(value):
            observed = graph.graph.call_module(name, (value,))
        for reader in readers:
            reader.replace_input_with(value, observed)


def _swap_for_training(graph: GraphModule, flow: _Flow) -> None:
    chosen = mappings.get_default_qat_module_mappings()
    for node in graph.graph.nodes:
        if node.name in flow.plan.quantised and node.op == "call_module":
            layer = graph.get_submodule(node.target)
            graph.set_submodule(node.target, swap_module(layer, chosen, {}))


def prepare(
    graph: GraphModule, mapping: QConfigMapping, is_qat: bool, custom: PrepareCustomConfig
) -> None:
    """Puts observers into a fused graph; `meta["quantization"]` is the plan for `convert`."""
    plan = Plan(code_outputs=custom.output_quantized_indexes)
    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    plan.code_inputs = {inputs[i].name for i in custom.input_quantized_indexes}
    flow = _Flow(graph, mapping, plan)
    for node in graph.graph.nodes:
        if node.name in plan.quantised | plan.dynamic and node.op == "call_module":
            flow.modules[node.target].qconfig = flow.qconfigs[node]
    if is_qat:
        _swap_for_training(graph, flow)
    _insert_observers(graph, flow)
    graph.meta["quantization"] = plan
    graph.graph.lint()
    graph.recompile()
