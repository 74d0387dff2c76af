"""Which nodes are views or write in place, and how what is written into a view reaches its base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.fx.node import Node
from rushlight.onnx._builder import Builder, Unsupported, Value

__all__ = ["BACK", "base_of", "base_with", "written_argument"]

# Views that are copies if memory does not allow a view, or nothing is to be changed.
_PERHAPS = {"reshape", "flatten", "contiguous", "to", "unflatten", "view_as", "reshape_as", "ravel"}

# They write in place, but only sizes and strides: whoever has the tensor goes on with the result.
_RESHAPES = {"squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "detach_"}


def _argument(node: Node, position: int) -> Any:
    name = node.target._schema.arguments[position].name
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)


def _name(node: Node) -> str:
    return str(node.target).split(".")[1]


def written_argument(node: Node) -> Node | None:
    """The tensor that a node writes into; None if it writes nowhere.

    Raises:
        Unsupported: it writes into several.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return None
    if _name(node) in _RESHAPES:
        return None
    places = [
        i
        for i, a in enumerate(schema.arguments)
        if a.alias_info is not None and a.alias_info.is_write
    ]
    if not places:
        return None
    if len(places) > 1:
        raise Unsupported("it writes into several tensors")
    return _argument(node, places[0])


def base_of(node: Node) -> Node | None:
    """What the result of a node is a view of, or None."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or schema.returns[0].alias_info is None:
        return None
    base = _argument(node, 0)
    if not isinstance(base, Node):
        return None
    if _name(node) in _PERHAPS:
        before, after = base.meta["val"], node.meta["val"]
        if before.dtype != after.dtype:
            return None
        try:
            before.view(after.shape)
        except RuntimeError:
            return None
    return base


def base_with(g: Builder, node: Node, arguments: list[Any], value: Any) -> Value:
    """What a view is a view of, with new elements where the view is.

    Args:
        node: the view.
        arguments: those of the view's schema; the first is the base as it is.
        value: the elements; a list of them where the view is one.

    Raises:
        Unsupported: there is no way back through this view.
    """
    back = BACK.get(_name(node).rstrip("_"))
    if back is None:
        raise Unsupported("a program writes into this view, which has no form in ONNX")
    found = back(g, value, *arguments)
    found.shape = arguments[0].shape
    return found


def _same(g: Builder, value: Value, base: Value, *_: Any) -> Value:
    return g.reshape(value, base.sizes)


def _transpose(g: Builder, value: Value, base: Value, a: int = 0, b: int = 1) -> Value:
    return g.swap(value, a, b)


def _permute(g: Builder, value: Value, base: Value, dims: list[int]) -> Value:
    order = [d % base.rank for d in dims]
    return g.transpose(value, [order.index(d) for d in range(base.rank)])


def _between(g: Builder, value: Value, base: Value, dim: int, start: Any, end: Any) -> Value:
    """The base with elements `start:end` of a dimension replaced; an open end is None."""
    parts = [value]
    if not isinstance(start, int) or start != 0:
        parts.insert(0, g.slice(base, dim, 0, start))
    size = g.size(base, dim)
    if end is not None and not (isinstance(size, int) and isinstance(end, int) and end >= size):
        parts.append(g.slice(base, dim, end, 2**62))
    return g.Concat(*parts, axis=dim) if len(parts) > 1 else value


def _select(g: Builder, value: Value, base: Value, dim: int, index: Any) -> Value:
    dim %= base.rank
    end = index + 1 if isinstance(index, int) else g.Add(index, 1)
    return _between(g, g.unsqueeze(value, dim), base, dim, index, None if index == -1 else end)


def _slice(
    g: Builder, value: Value, base: Value, dim: int, start: Any, end: Any, step: int
) -> Value:
    dim %= base.rank
    size = g.size(base, dim)
    start = 0 if start is None else start
    if isinstance(end, int) and end >= 2**31:
        end = None
    known = all(isinstance(n, int) for n in (size, start, 0 if end is None else end))
    if known:
        bounds: list[Any] = [start, end, step]
        start, end, _ = slice(*bounds).indices(size)
        if end <= start:
            return base
    if step == 1:
        return _between(g, value, base, dim, start, end)
    if not known or end is None:
        raise Unsupported("a program writes into a slice with a step, of which a size is open")
    places = g.int64(list(range(start, end, step)))
    index = g.unsqueeze(places, *range(1, base.rank - dim))
    return g.ScatterElements(base, g.Expand(index, g.shape(value)), value, axis=dim)


def _narrow(g: Builder, value: Value, base: Value, dim: int, start: int, length: int) -> Value:
    return _slice(g, value, base, dim, start, start + length or None, 1)


def _joined(g: Builder, value: list[Value], base: Value, _: Any, dim: int) -> Value:
    return g.Concat(*value, axis=dim)


def _stacked(g: Builder, value: list[Value], base: Value, dim: int) -> Value:
    dim %= base.rank
    return g.Concat(*(g.unsqueeze(v, dim) for v in value), axis=dim)


_SAME = (
    "alias",
    "detach",
    "view",
    "reshape",
    "flatten",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "contiguous",
    "to",
    "view_as",
    "reshape_as",
    "ravel",
    "positive",
    "lift_fresh",
)
BACK: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims", "t"), _transpose),
    "permute": _permute,
    "select": _select,
    "slice": _slice,
    "narrow": _narrow,
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "tensor_split"), _joined),
    "unbind": _stacked,
}
