"""What is done with graphs: shapes are noted, modules are split, steps follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
    from rushlight.fx.passes import infra, shape_prop, split_module  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "infra shape_prop split_module")
