"""Passes over graphs: they propagate shapes, split modules, and run one after the other."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.fx.passes import (  # noqa: F401
        annotate_getitem_nodes,
        dialect,
        fake_tensor_prop,
        graph_drawer,
        graph_manipulation,
        infra,
        operator_support,
        pass_manager,
        shape_prop,
        split_module,
        split_utils,
        tools_common,
        utils,
    )
