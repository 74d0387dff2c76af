"""Names of PyTorch's experimental functions for graphs that programs use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "const_fold debug normalize optimization proxy_tensor rewriter "
        "schema_type_annotation "
        "symbolic_shapes",
    )
