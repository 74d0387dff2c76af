"""Graph modules by the function that PyTorch makes them with."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph_module import GraphModule

__all__ = ["_make_graph_module"]


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """A GraphModule, or one of another class."""
    return (GraphModule if graph_module_cls is None else graph_module_cls)(*args, **kwargs)
