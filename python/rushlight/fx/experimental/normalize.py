"""Normalises calls: arguments by name, operators instead of functions."""

from __future__ import annotations

import operator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Transformer
from rushlight.fx.node import Node
from rushlight.fx.operator_schemas import normalize_function, normalize_module

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Copies a module, with arguments of calls as in their signatures: `….transform()`.

    Args:
        module: the module.
        normalize_to_only_use_kwargs: all by name; otherwise in order.

    Example:
        >>> from rushlight.fx.experimental.normalize import NormalizeArgs
        >>> net = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> named = NormalizeArgs(net).transform()
        >>> [dict(node.kwargs) for node in named.graph.nodes if node.op == "call_module"]
        [{'input': input_1}]
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs
        self.node_map: dict[Any, Node] = {}

    def run_node(self, n: Node) -> Any:
        """Copy a node with normalised arguments."""
        result = super().run_node(n)
        if n.op != "output":
            self.node_map[result] = n
            result.node.meta = n.meta.copy()
            result.node.type = n.type
        return result

    def call_function(
        self,
        target: Any,
        args: Any,
        kwargs: Any,
        arg_types: Any = None,
        kwarg_types: Any = None,
    ) -> Any:
        """Copy a call, with arguments as in the signature, if one fits."""
        found = normalize_function(
            target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs
        )
        if found is not None:
            args, kwargs = found
        return super().call_function(target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Copy a call, with arguments as in `forward`."""
        found = normalize_module(
            self.module, target, args, kwargs, self.normalize_to_only_use_kwargs
        )
        if found is not None:
            args, kwargs = found
        return super().call_module(target, args, kwargs)


class NormalizeOperators(AnnotateTypesWithSchema):
    """Copies a module, with Python's operators instead of equivalent functions.

    Args:
        module: the module.
        annotate_functionals: types of calls of functions.
        annotate_modules: types of calls of modules.
        annotate_get_attrs: types of attributes.

    Example:
        >>> import operator
        >>> from rushlight.fx.experimental.normalize import NormalizeOperators
        >>> net = torch.fx.symbolic_trace(lambda x, y: torch.add(x, y))
        >>> made = NormalizeOperators(net).transform()
        >>> [node.target is operator.add for node in made.graph.nodes if node.op == "call_function"]
        [True]
    """

    binary_magic_method_remap: dict[Any, Any] = {  # noqa: RUF012  # PyTorch's is a dict of the class
        rushlight.add: operator.add,
        rushlight.mul: operator.mul,
        rushlight.sub: operator.sub,
        rushlight.div: operator.truediv,
        rushlight.floor_divide: operator.floordiv,
        rushlight.remainder: operator.mod,
        rushlight.eq: operator.eq,
        rushlight.ne: operator.ne,
        rushlight.lt: operator.lt,
        rushlight.le: operator.le,
        rushlight.gt: operator.gt,
        rushlight.ge: operator.ge,
    }

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Copy a call, or replace it by the operator of two arguments."""
        instead = self.binary_magic_method_remap.get(target)
        if instead is None or kwargs or len(args) != 2:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", instead, args, {}, type_expr=Tensor)
