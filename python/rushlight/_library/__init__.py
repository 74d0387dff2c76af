"""What `rushlight.library` is made of: schemas, the registry of ops, their gradients."""

from __future__ import annotations

from rushlight._lazy import lazy

__all__ = ["infer_schema", "keys", "registry", "schema", "simple_registry"]

with lazy(__name__):
    from rushlight._library import infer_schema, keys, registry, schema, simple_registry
