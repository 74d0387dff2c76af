"""Which nodes a backend can run; partitioners use it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import rushlight
from rushlight import nn
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

# Dtypes of positional arguments, and of named ones; None: any.
SupportedArgumentDTypes: TypeAlias = (
    tuple[Sequence[Sequence[rushlight.dtype]], dict[str, Sequence[rushlight.dtype]]] | None
)
SupportDict: TypeAlias = Mapping[str, SupportedArgumentDTypes]
TargetTypeName: TypeAlias = str


class OperatorSupportBase(abc.ABC):
    """Decides whether nodes can be run.

    For an example see `fx.passes.operator_support.create_op_support`.
    """

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether a node can be run."""


def _get_arg_dtype(arg: Node) -> Any:
    """The dtype that a node is known to give."""
    return arg.meta["tensor_meta"].dtype


class OperatorSupport(OperatorSupportBase):
    """Supports nodes by name (see `get_node_target`) and by the dtypes of their inputs.

    Args:
        support_dict: names, with dtypes for each argument, or None for any.

    For an example see `fx.passes.operator_support.create_op_support`.
    """

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the node's name and its inputs' dtypes are listed; inputs are not supported."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        positional, named = wanted
        pairs = [
            *((node.args[i], dtypes) for i, dtypes in enumerate(positional) if i < len(node.args)),
            *((node.kwargs[k], dtypes) for k, dtypes in named.items() if k in node.kwargs),
        ]
        return all(_get_arg_dtype(arg) in dtypes for arg, dtypes in pairs if isinstance(arg, Node))


class _Functional(OperatorSupportBase):
    def __init__(self, function: Callable[[Mapping[str, nn.Module], Node], bool]) -> None:
        self._function = function

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(
    is_node_supported: Callable[[Mapping[str, nn.Module], Node], bool],
) -> OperatorSupportBase:
    """An `OperatorSupport` that calls a function of modules and a node.

    Args:
        is_node_supported: the function: true for nodes that can be run.

    Example:
        >>> from rushlight.fx.passes.operator_support import create_op_support
        >>> module = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> support = create_op_support(lambda modules, node: node.op == "call_function")
        >>> [support.is_node_supported({}, node) for node in module.graph.nodes]
        [False, True, False]
    """
    return _Functional(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports a node if all arguments support it.

    Args:
        op_support: those that are asked.

    For an example see `fx.passes.operator_support.create_op_support`.
    """
    return _Functional(lambda m, n: all(one.is_node_supported(m, n) for one in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports a node if any argument supports it.

    Args:
        op_support: those that are asked.

    For an example see `fx.passes.operator_support.create_op_support`.
    """
    return _Functional(lambda m, n: any(one.is_node_supported(m, n) for one in op_support))


class OpSupports:
    """Frequently used kinds of `OperatorSupport`.

    For an example see `fx.passes.operator_support.create_op_support`.
    """

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Does not support nodes with an input of this dtype."""
        return _Functional(
            lambda modules, node: all(
                "tensor_meta" not in arg.meta or _get_arg_dtype(arg) != dtype
                for arg in node.all_input_nodes
            )
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Does not support nodes with these names."""
        return _Functional(lambda modules, node: node.name not in disallow_set)
