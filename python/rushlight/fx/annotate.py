"""Types of values, for readers of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.fx.proxy import Proxy

if TYPE_CHECKING:
    from typing import Any

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Return the value; if it is a proxy, its node keeps the type.

    Args:
        val: a value, or a proxy while a function is traced.
        type: its type.

    Raises:
        RuntimeError: the node has another type already.

    Example:
        >>> torch.fx.annotate(4, int)
        4
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"{val.node} already had a type, {val.node.type}, and gets no other: {type}"
        )
    val.node.type = type
    return val
