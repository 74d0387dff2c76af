"""Traces networks for quantisation, and makes one module of convolution, batch norm and relu."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized import _arithmetic
from rushlight.ao.quantization.fuse_modules import _METHODS, fuse_known_modules
from rushlight.ao.quantization.fx import _kinds
from rushlight.fx import GraphModule, Node, Tracer

_HEADS = {classes[0] for classes in _METHODS}
_NORMS = {c for classes in _METHODS for c in classes[1:] if c is not nn.ReLU}
_RELU_AFTER = {
    rushlight.add: _arithmetic.float_add_relu,
    rushlight.mul: _arithmetic.float_mul_relu,
}


class QuantizationTracer(Tracer):
    """A tracer that leaves modules of some names and classes as one call."""

    def __init__(self, skipped_names: Iterable[str], skipped_classes: Iterable[type]) -> None:
        super().__init__()
        self.skipped_names = set(skipped_names)
        self.skipped_classes = tuple(skipped_classes)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return (
            super().is_leaf_module(m, module_qualified_name)
            or module_qualified_name in self.skipped_names
            or isinstance(m, (*self.skipped_classes, intrinsic.modules._FusedModule))
        )


def trace(model: nn.Module, names: Iterable[str], classes: Iterable[type]) -> GraphModule:
    """The graph of a network; `meta["scopes"]` tells which module each node is called by."""
    tracer = QuantizationTracer(names, classes)
    made = GraphModule(model, tracer.trace(model), type(model).__name__)
    made.meta["scopes"] = {name: path for name, (path, _) in tracer.node_name_to_scope.items()}
    return made


def keep_attributes(model: nn.Module, made: nn.Module, names: Iterable[str]) -> None:
    """Copies attributes that the graph does not use."""
    for name in names:
        setattr(made, name, getattr(model, name))


def _only_user(node: Node) -> Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _chain(head: Node, modules: dict[str, nn.Module], calls: Counter[Any]) -> list[Node]:
    """A layer, and the batch norm and the relu that follow and are all that read it."""
    chain = [head]
    while (after := _only_user(chain[-1])) is not None:
        called = _kinds.kind(after, modules)
        norm = called in _NORMS and len(chain) == 1
        once = after.op != "call_module" or calls[after.target] == 1
        if not (once and (norm or called in _kinds.RELUS)):
            break
        chain.append(after)
        if not norm:
            break
    return chain


def _modules_of(chain: list[Node], modules: dict[str, nn.Module]) -> list[nn.Module]:
    training = modules[chain[0].target].training
    return [
        modules[n.target] if n.op == "call_module" else nn.ReLU().train(training) for n in chain
    ]


def _bypass(graph: GraphModule, node: Node) -> None:
    """Lets users of a node read its input instead."""
    node.replace_all_uses_with(node.args[0])
    graph.graph.erase_node(node)


def _fuse_layer(graph: GraphModule, chain: list[Node], modules: Any, is_qat: bool) -> None:
    """The first of a chain calls what as much of it as possible is fused into."""
    while len(chain) > 1:
        parts = _modules_of(chain, modules)
        if tuple(type(p) for p in parts) in _METHODS:
            graph.set_submodule(chain[0].target, fuse_known_modules(parts, is_qat)[0])
            for follower in reversed(chain[1:]):
                _bypass(graph, follower)
            return
        chain.pop()


def _fuse_relu(graph: GraphModule, node: Node, modules: Any) -> None:
    """A sum or a product gives its relu where that is all that reads it."""
    function, after = _kinds.arithmetic(node, modules), _only_user(node)
    if after is None or function not in _RELU_AFTER:
        return
    if _kinds.kind(after, modules) in _kinds.RELUS:
        _bypass(graph, after)
        node.op, node.target = "call_function", _RELU_AFTER[function]


def fuse(graph: GraphModule, is_qat: bool) -> None:
    """Fuses in place what `fuse_modules` knows, and relus into the sums and products before."""
    modules = dict(graph.named_modules())
    calls = Counter(n.target for n in graph.graph.nodes if n.op == "call_module")
    for node in list(graph.graph.nodes):
        if _kinds.kind(node, modules) in _HEADS and calls[node.target] == 1:
            _fuse_layer(graph, _chain(node, modules, calls), modules, is_qat)
        else:
            _fuse_relu(graph, node, modules)
    graph.delete_all_unused_submodules()
    graph.graph.lint()
    graph.recompile()
