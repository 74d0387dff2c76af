"""What `FullyShardedDataParallel` and `fully_shard` share: names, the modules and parameters of a
unit, and tensors within structures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight
from rushlight import nn

__all__ = [
    "FSDP_PREFIX",
    "FSDP_WRAPPED_MODULE",
    "Place",
    "cast_floats",
    "clean_tensor_name",
    "map_tensors",
    "modules_of",
    "places_of",
    "tensors_of",
]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."
_WRAPPERS = (FSDP_PREFIX, "_checkpoint_wrapped_module.", "_orig_mod.")


def clean_tensor_name(name: str) -> str:
    """A name without those of the wrappers."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


class Place(NamedTuple):
    """Where a module has a parameter, and the name that the outermost one knows it by."""

    module: nn.Module
    name: str
    fqn: str
    parameter: Any


def modules_of(
    tops: dict[str, nn.Module], belongs_to_others: Callable[[nn.Module], bool]
) -> dict[str, nn.Module]:
    """The modules of a unit by their paths: `tops`, and what lies in them and is no one else's."""
    found: dict[str, nn.Module] = {}
    seen: set[int] = set()

    def walk(path: str, module: nn.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        found[path] = module
        for name, child in module.named_children():
            if not belongs_to_others(child):
                walk(f"{path}.{name}" if path else name, child)

    for path, top in tops.items():
        walk(path, top)
    return found


def places_of(modules: dict[str, nn.Module], left_out: Iterable[Any]) -> list[Place]:
    """Where the modules have parameters, of which those that are shared have several places."""
    others = {id(p) for p in left_out}
    return [
        Place(module, name, f"{path}.{name}" if path else name, p)
        for path, module in modules.items()
        for name, p in module._parameters.items()
        if p is not None and id(p) not in others
    ]


def cast_floats(value: Any, dtype: rushlight.dtype) -> Any:
    """The same structure with floating-point tensors in a dtype."""
    return map_tensors(
        lambda t: t.to(dtype) if t.is_floating_point() and t.dtype != dtype else t, value
    )


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
