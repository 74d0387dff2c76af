"""Graphs of modules: they are traced with proxies, changed as lists of nodes, and run as Python."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight.fx import immutable_collections
from rushlight.fx._symbolic_trace import (
    PH,
    ProxyableClassMeta,
    Tracer,
    is_fx_tracing,
    symbolic_trace,
    wrap,
)
from rushlight.fx.annotate import annotate
from rushlight.fx.graph import CodeGen, Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy, TraceError

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "annotate",
    "has_side_effect",
    "immutable_collections",
    "is_fx_tracing",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

with lazy(__name__):
    from rushlight.fx import (  # noqa: F401
        experimental,
        operator_schemas,
        passes,
        subgraph_rewriter,
        traceback,
    )
    from rushlight.fx.subgraph_rewriter import replace_pattern
