"""`AnnotateTypesWithSchema`: types of nodes from the signatures of ops and modules."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from rushlight import Tensor
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.interpreter import Transformer
from rushlight.fx.operator_schemas import get_signature_for_torch_op

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Copies a module, with the types of results on its nodes: `….transform()`.

    Args:
        module: the module.
        annotate_functionals: types of calls of functions.
        annotate_modules: types of calls of modules.
        annotate_get_attrs: types of attributes.

    Example:
        >>> from rushlight.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
        >>> net = torch.fx.symbolic_trace(lambda x: torch.relu(x))
        >>> typed = AnnotateTypesWithSchema(net).transform()
        >>> [node.type.__name__ for node in typed.graph.nodes if node.op == "call_function"]
        ['Tensor']
    """

    def __init__(
        self,
        module: GraphModule,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Copy a call and set its type."""
        proxy = super().call_function(target, args, kwargs)
        if self.annotate_functionals and proxy.node.type is None:
            proxy.node.type = _of_function(target)
        return proxy

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Copy a call and set its type."""
        proxy = super().call_module(target, args, kwargs)
        if self.annotate_modules and proxy.node.type is None:
            proxy.node.type = _given_by(self.submodules[target].forward)
        return proxy

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Copy the reading of an attribute and set its type."""
        proxy = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs and proxy.node.type is None:
            proxy.node.type = type(_get_attr(self.module, target))
        return proxy


def _of_function(function: Any) -> Any:
    found: Any = get_signature_for_torch_op(function, return_schemas=True)
    schemas = found[1]
    if schemas is not None:
        # Overloads that write into `out` give tensors as well.
        kinds = {tuple(str(r.type) for r in schema.returns) for schema in schemas}
        return Tensor if kinds == {("Tensor",)} else None
    return _given_by(function)


def _given_by(function: Any) -> Any:
    """The annotation of what a function gives, None without one."""
    try:
        kind = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None
    return None if kind in (None, inspect.Signature.empty, type(None)) else kind
