"""Checks the shapes of a graph as far as annotations give them: `TensorType((2, Dyn, 4))`.

Each node gets the type that a rule makes of those of its arguments, joined with its annotation;
where they contradict each other a TypeError is raised. What is not known is `Dyn`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

__all__ = ["GraphTypeChecker", "broadcast_types"]

_rules: dict[Any, Callable[..., Any]] = {}


def register_inference_rule(call_target: Any) -> Callable:
    """A decorator for a function of a node (and of its module) that returns the node's type."""

    def register(rule: Callable) -> Callable:
        if call_target in _rules:
            raise RuntimeError(f"Rule already registered for {call_target}!")
        _rules[call_target] = rule
        return rule

    return register


# ---- types ----


def expand_to_tensor_dim(t: Any, n: int) -> TensorType:
    """A type of n dimensions: an unknown type becomes one of unknown sizes."""
    if t == Dyn:
        return TensorType((Dyn,) * n)
    if not isinstance(t, TensorType):
        raise TypeError(f"Cannot match the type {t}: a tensor of {n} dimensions was expected")
    if len(t.__args__) != n:
        raise TypeError(f"Cannot extend tensor dimension. Tensor {t} has rank {len(t.__args__)}")
    return t


def _joined(t1: Any, t2: Any) -> Any:
    """What both types together say; they are consistent."""
    if is_more_precise(t1, t2):
        return t1
    if is_more_precise(t2, t1):
        return t2
    return TensorType(tuple(map(_joined, t1.__args__, t2.__args__)))


def broadcast_types(t1: Any, t2: Any) -> tuple[Any, Any]:
    """Broadcast two types.

    Args:
        t1: a type.
        t2: another one.

    Raises:
        TypeError: one is no type of a tensor, or sizes that are known do not fit.

    For an example see `fx.tensor_type.TensorType`.
    """
    if t1 == Dyn or t2 == Dyn:
        return t1, t2
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        raise TypeError(f"broadcasting not supported for {t1} and {t2}")
    rank = max(len(t1.__args__), len(t2.__args__))
    a, b = ([1] * (rank - len(t.__args__)) + list(t.__args__) for t in (t1, t2))
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x == 1 and y != 1:
            a[i] = y
        elif y == 1 and x != 1:
            b[i] = x
    if not all(map(is_consistent, a, b)):
        raise TypeError(f"The types {t1} and {t2} cannot be broadcast")
    return TensorType(tuple(a)), TensorType(tuple(b))


def _known_product(sizes: Any) -> int:
    return functools.reduce(operator.mul, (s for s in sizes if s not in (-1, Dyn)), 1)


def _size(formula: Callable[..., int], *values: Any) -> Any:
    return Dyn if Dyn in values else formula(*values)


# ---- functions ----


def _sum_rule(node: Node) -> Any:
    types = [a.type if isinstance(a, Node) else type(a) for a in node.args]
    if len(types) != 2:
        raise TypeError(f"{node}: a sum of two arguments was expected")
    scalars = [t for t in types if t in (int, float)]
    if scalars:
        return next((t for t in types if t not in (int, float)), scalars[0])
    first, second = broadcast_types(*types)
    if first == Dyn or second == Dyn:
        return Dyn
    if (first, second) != tuple(types):
        node.meta["broadcast"] = True
    return second if is_more_precise(first, second) else first


for _target in (rushlight.add, operator.add, operator.iadd):
    register_inference_rule(_target)(_sum_rule)


@register_inference_rule(getattr)
def _attribute_rule(node: Node) -> Any:
    return node.type if node.type is not None else Dyn


@register_inference_rule(rushlight.transpose)
def _transpose_rule(node: Node) -> Any:
    given = node.args[0].type
    if given == Dyn:
        return Dyn
    sizes, (a, b) = list(given.__args__), node.args[1:3]
    if not all(-len(sizes) <= d < len(sizes) for d in (a, b)):
        raise TypeError(f"Cannot transpose {a} and {b} in type {given} for node {node}")
    sizes[a], sizes[b] = sizes[b], sizes[a]
    return TensorType(tuple(sizes))


@register_inference_rule(rushlight.reshape)
def _reshape_rule(node: Node) -> Any:
    given, wanted = node.args[0].type, node.args[1]
    made = TensorType(tuple(Dyn if s == -1 else s for s in wanted))
    if given == Dyn:
        return made
    a, b = _known_product(given.__args__), _known_product(wanted)
    known = Dyn not in given.__args__ and -1 not in wanted
    if a != b if known else (a % b != 0 and b % a != 0):
        raise TypeError(f"Cannot reshape in node {node} from {given} to {made}")
    return made


def _flattened(sizes: Any, start: int, end: int) -> TensorType:
    start, end = (d + len(sizes) if d < 0 else d for d in (start, end))
    middle = sizes[start : end + 1]
    size = Dyn if Dyn in middle else _known_product(middle)
    return TensorType((*sizes[:start], size, *sizes[end + 1 :]))


@register_inference_rule(rushlight.flatten)
def _flatten_rule(node: Node) -> Any:
    args: Any = node.args
    start = args[1] if len(args) > 1 else node.kwargs.get("start_dim", 0)
    end = args[2] if len(args) > 2 else node.kwargs.get("end_dim", -1)
    given = args[0].type
    return Dyn if given == Dyn else _flattened(tuple(given.__args__), start, end)


# ---- modules ----


def _pair(value: Any) -> tuple[Any, Any]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _windows(module: Any, sizes: Any) -> list[Any]:
    """How many windows of a module fit along the last two dimensions."""
    stride = module.stride if module.stride is not None else module.kernel_size
    facts = map(_pair, (module.padding, module.dilation, module.kernel_size, stride))
    return [
        _size(lambda n, p, d, k, s: (n + 2 * p - d * (k - 1) - 1) // s + 1, size, *fact)
        for size, *fact in zip(sizes, *facts, strict=True)
    ]


def _of_rank(node: Node, rank: int) -> tuple[Any, ...]:
    """The sizes of the input of a module, which has a known rank from now on."""
    source: Any = node.args[0]
    source.type = expand_to_tensor_dim(source.type, rank)
    return tuple(source.type.__args__)


def _channels_fit(node: Node, sizes: Any, channels: int) -> None:
    if not is_consistent(sizes[1], channels):
        raise TypeError(f"Cannot apply {node.target} with {channels} channels to sizes {sizes}")


@register_inference_rule(nn.BatchNorm2d)
def _batch_norm_rule(node: Node, module: Any) -> Any:
    sizes = _of_rank(node, 4)
    _channels_fit(node, sizes, module.num_features)
    if node.type not in (None, Dyn):
        _channels_fit(node, expand_to_tensor_dim(node.type, 4).__args__, module.num_features)
    return TensorType(sizes)


@register_inference_rule(nn.Conv2d)
def _conv_rule(node: Node, module: Any) -> Any:
    sizes = _of_rank(node, 4)
    _channels_fit(node, sizes, module.in_channels)
    return TensorType((sizes[0], module.out_channels, *_windows(module, sizes[2:])))


@register_inference_rule(nn.MaxPool2d)
def _max_pool_rule(node: Node, module: Any) -> Any:
    given: Any = node.args[0].type
    if given == Dyn:
        return Dyn
    if not isinstance(given, TensorType) or len(given.__args__) not in (3, 4):
        raise TypeError(f"Wrong size {given} for {node}: images were expected")
    sizes = tuple(given.__args__)
    return TensorType((*sizes[:-2], *_windows(module, sizes[-2:])))


@register_inference_rule(nn.AdaptiveAvgPool2d)
def _adaptive_pool_rule(node: Node, module: Any) -> Any:
    given: Any = node.args[0].type
    if given == Dyn:
        return Dyn
    wanted = zip(_pair(module.output_size), given.__args__[-2:], strict=True)
    return TensorType((*given.__args__[:-2], *(n if w is None else w for w, n in wanted)))


@register_inference_rule(nn.ReLU)
def _relu_rule(node: Node, module: Any) -> Any:
    return node.args[0].type


@register_inference_rule(nn.Flatten)
def _flatten_module_rule(node: Node, module: Any) -> Any:
    given: Any = node.args[0].type
    if given == Dyn:
        return Dyn
    return _flattened(tuple(given.__args__), module.start_dim, module.end_dim)


@register_inference_rule(nn.Linear)
def _linear_rule(node: Node, module: Any) -> Any:
    given: Any = node.args[0].type
    if given == Dyn:
        return Dyn
    if not is_consistent(given.__args__[-1], module.in_features):
        raise TypeError(f"Type {given} does not fit {module.in_features} input features of {node}")
    return TensorType((*given.__args__[:-1], module.out_features))


# ---- graphs ----


class GraphTypeChecker:
    """Infers the type of every node of a module's graph.

    Args:
        env: accepted; types stand in the nodes.
        traced: the module.

    For an example see `fx.tensor_type.TensorType`.
    """

    def __init__(self, env: Any, traced: GraphModule) -> None:
        self.env = env
        self.traced = traced

    def type_check(self) -> bool:
        """Infer the types; raises TypeError if they are inconsistent."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n: Node) -> Any:
        """Infer the type of a node from the types of its arguments."""
        if n.type is None:
            n.type = Dyn
        if n.op == "placeholder":
            return n.type
        if n.op == "output":
            value = n.args[0]
            n.type = value.type if isinstance(value, Node) else Dyn
            return n.type
        if n.op == "get_attr":
            value = operator.attrgetter(n.target)(self.traced)
            inferred: Any = TensorType(tuple(value.shape))
        elif n.op == "call_module":
            module = self.traced.get_submodule(n.target)
            inferred = self._rule(n, type(module))(n, module)
        else:
            inferred = self._rule(n, n.target)(n)
        if not is_consistent(inferred, n.type):
            raise TypeError(f"{n}: its annotation {n.type} contradicts the type {inferred}")
        n.type = _joined(inferred, n.type)
        return n.type

    @staticmethod
    def _rule(n: Node, target: Any) -> Callable[..., Any]:
        if target not in _rules:
            raise RuntimeError(f"No type inference rule registered for {target}, {n}")
        return _rules[target]
