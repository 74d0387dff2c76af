"""Copies `meta` from running nodes to nodes that are made meanwhile."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any

from rushlight.fx.node import Node

__all__ = [
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

_current: dict[str, Any] = {}
_preserving = False


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A context manager in which new nodes copy the `meta` of the running node.

    Args:
        enable: False changes nothing.

    Example:
        >>> from rushlight.fx import traceback
        >>> with traceback.preserve_node_meta():
        ...     traceback.has_preserved_node_meta()
        True
    """
    global _preserving, _current
    before = _preserving, _current
    _preserving, _current = enable, dict(_current)
    try:
        yield
    finally:
        _preserving, _current = before


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is on.

    For an example see `fx.traceback.preserve_node_meta`.
    """
    return _preserving


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace of the running node.

    Args:
        stack: its lines.

    For an example see `fx.traceback.preserve_node_meta`.
    """
    if _preserving and stack:
        _current["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack trace of the running node: the one that was set, or Python's own.

    For an example see `fx.traceback.preserve_node_meta`.
    """
    if _preserving:
        return [_current.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Set the `meta` of the running node.

    Args:
        node: the node.
        pass_name: who runs it.

    For an example see `fx.traceback.preserve_node_meta`.
    """
    global _current
    before = _current
    if _preserving and node.meta:
        _current = {**node.meta, "from_node": [*node.meta.get("from_node", []), (node, pass_name)]}
    try:
        yield
    finally:
        _current = before


def get_current_meta() -> dict[str, Any]:
    """The `meta` of the running node.

    For an example see `fx.traceback.preserve_node_meta`.
    """
    return _current
