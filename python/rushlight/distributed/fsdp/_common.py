"""What the parts of `FullyShardedDataParallel` share: its names, and tensors within structures."""

from __future__ import annotations

import dataclasses

import rushlight

__all__ = ["FSDP_PREFIX", "FSDP_WRAPPED_MODULE", "clean_tensor_name", "map_tensors", "tensors_of"]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."
_WRAPPERS = (FSDP_PREFIX, "_checkpoint_wrapped_module.", "_orig_mod.")


def clean_tensor_name(name: str) -> str:
    """A name without those of the wrappers."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def map_tensors(function, value):
    """The same structure with `function` of each tensor."""
    if isinstance(value, rushlight.Tensor):
        return function(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, dict)):
        changes = {
            f.name: map_tensors(function, getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.init
        }
        return dataclasses.replace(value, **changes)
    if isinstance(value, dict):
        changed = {key: map_tensors(function, part) for key, part in value.items()}
        return changed if type(value) is dict else type(value)(changed)
    if isinstance(value, (list, tuple)):
        parts = [map_tensors(function, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def tensors_of(value):
    """The tensors in a structure."""
    if isinstance(value, rushlight.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, (list, tuple, set)):
        for part in value:
            yield from tensors_of(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_of(getattr(value, field.name))
