"""The graph of a datapipe: the pipes that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def _find_pipes(value, found, seen):
    """The pipes in a value, as deep as they lie but not below each other."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        found.setdefault(id(value), value)
        return
    if id(value) in seen or isinstance(value, (str, bytes)):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        value = list(value.values())
    elif not isinstance(value, (list, tuple, set)):
        # Parts of the pipes themselves, such as what branches share.
        inner = type(value).__module__.startswith("rushlight.utils.data.datapipes")
        value = list(vars(value).values()) if inner and hasattr(value, "__dict__") else []
    for part in value:
        _find_pipes(part, found, seen)


def traverse_dps(datapipe: Any) -> dict[int, Any]:
    """A pipe and those that it reads: {id: (pipe, {the same for each of them})}.

    Args:
        datapipe: whose graph it is.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph import traverse_dps
        >>> pipe = IterableWrapper(range(3)).map(abs)
        >>> ((_, (last, inner)),) = traverse_dps(pipe).items()
        >>> last is pipe, len(inner)
        (True, 1)
    """
    return _graph(datapipe, set())


def _graph(datapipe, above):
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} found")
    if id(datapipe) in above:
        return {}
    found: dict[int, Any] = {}
    _find_pipes(list(datapipe.__dict__.values()), found, set())
    below: dict[int, Any] = {}
    for child in found.values():
        below.update(_graph(child, above | {id(datapipe)}))
    return {id(datapipe): (datapipe, below)}


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, Any]:
    """Deprecated form of `traverse_dps`.

    Args:
        datapipe: whose graph it is.
        only_datapipe: accepted; other objects than pipes are looked into as far as they are known.

    For an example see `utils.data.graph.traverse_dps`.
    """
    return traverse_dps(datapipe)
