"""What `rushlight.library` is made of: schemas, the registry of ops, their gradients."""

from rushlight._library import infer_schema, registry, schema, simple_registry, tags

__all__ = ["infer_schema", "registry", "schema", "simple_registry", "tags"]
