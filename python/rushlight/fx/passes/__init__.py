"""Passes over graphs: they propagate shapes, split modules, and run one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "annotate_getitem_nodes dialect fake_tensor_prop graph_drawer graph_manipulation infra "
        "operator_support pass_manager shape_prop split_module split_utils tools_common utils",
    )
