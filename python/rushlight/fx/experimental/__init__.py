"""Names of PyTorch's experimental functions for graphs that programs use."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.fx.experimental import (  # noqa: F401
        const_fold,
        debug,
        normalize,
        optimization,
        proxy_tensor,
        rewriter,
        schema_type_annotation,
        symbolic_shapes,
    )
