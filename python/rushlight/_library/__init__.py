"""What `rushlight.library` is made of: schemas, the registry of ops, their gradients."""

from rushlight._library import infer_schema, keys, registry, schema, simple_registry

__all__ = ["infer_schema", "keys", "registry", "schema", "simple_registry"]
