"""Types of values, for those who read a graph."""

from __future__ import annotations

from rushlight.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """The value; the node of a proxy keeps the type.

    Args:
        val: a value, or a proxy while a function is traced.
        type: its type.

    Raises:
        RuntimeError: the node has another type already.
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"{val.node} already had a type, {val.node.type}, and gets no other: {type}"
        )
    val.node.type = type
    return val
