"""Containers taken apart by a spec that is known already; the order of dicts is the spec's."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from rushlight.utils import _pytree
from rushlight.utils._pytree import PyTree, TreeSpec

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFuncSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[PyTree, TreeSpec], bool]

SUPPORTED_NODES: dict[Any, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Says how containers of a class are taken apart by a spec.

    Args:
        cls: the class.
        flatten_fn_spec: of a container and a spec, the list of its parts.
        flatten_fn_exact_match_spec: whether a container fits a spec exactly.
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a container that is built like a spec."""
    if spec.is_leaf():
        return [pytree]
    parts_of = SUPPORTED_NODES.get(spec.type)
    if parts_of is None and spec.type in _pytree.SUPPORTED_NODES:
        flatten = _pytree.SUPPORTED_NODES[spec.type].flatten_fn
        parts_of = lambda tree, _: list(flatten(tree)[0])  # noqa: E731
    if parts_of is None:
        raise RuntimeError(f"{type(pytree)} does not have a flatten_fn_spec associated with it")
    parts = parts_of(pytree, spec)
    children = list(spec.children())
    if len(parts) != len(children):
        raise RuntimeError(f"expected {len(children)} parts in {spec.type}, but got {len(parts)}")
    return [
        leaf
        for part, child in zip(parts, children, strict=True)
        for leaf in tree_flatten_spec(part, child)
    ]


def _sequence(values: Any, spec: TreeSpec) -> list[Any]:
    return list(values)[: len(list(spec.children()))]


register_pytree_flatten_spec(dict, lambda values, spec: [values[key] for key in spec.context])
register_pytree_flatten_spec(list, _sequence)
register_pytree_flatten_spec(tuple, _sequence)
register_pytree_flatten_spec(namedtuple, _sequence)
tree_flatten = _pytree.tree_flatten
