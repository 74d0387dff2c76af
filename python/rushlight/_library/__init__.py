"""What `rushlight.library` is made of: schemas, the registry of ops, their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

__all__ = ["infer_schema", "keys", "registry", "schema", "simple_registry"]

if TYPE_CHECKING:
    from rushlight._library import infer_schema, keys, registry, schema, simple_registry
else:
    __getattr__, __dir__ = lazy(__name__, "infer_schema keys registry schema simple_registry")
