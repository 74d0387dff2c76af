"""Nested lists, tuples and dicts as flat lists of leaves, and back.

`tree_flatten` gives the leaves in order and a `TreeSpec` that `tree_unflatten` builds the same
structure from. Other containers take part once `register_pytree_node` knows them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.utils._pytree_nodes import (  # noqa: F401
    SUPPORTED_NODES,
    Context,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_leaf,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _NamedTuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _register_pytree_node,
    _Results,
    _tuple_unflatten,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    namedtuple,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from rushlight.utils._pytree_specs import LeafSpec, TreeSpec, treespec_leaf  # noqa: F401
from rushlight.utils._pytree_texts import (  # noqa: F401
    _register_namedtuple,
    treespec_dumps,
    treespec_loads,
)

__all__ = [
    "PyTree",
    "TreeSpec",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

PyTree = Any


def treespec_tuple(specs=()):
    """The structure of a tuple of such."""
    return TreeSpec(tuple, None, list(specs))


def treespec_dict(mapping=(), **kwargs):
    """The structure of a dict of such."""
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), list(items.values()))


def treespec_pprint(treespec):
    """The structure as a tree with a star for each leaf."""
    return repr(treespec.unflatten(["*"] * treespec.num_leaves)).replace("'*'", "*")


def _flatten_into(tree, leaves, is_leaf):
    if _is_leaf(tree, is_leaf):
        leaves.append(tree)
        return treespec_leaf()
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree in order, and its structure.

    `is_leaf(part)` may say of containers that they are to stay whole.
    """
    leaves: list[Any] = []
    spec = _flatten_into(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of a structure with these leaves.

    Args:
        leaves: what stands in the places of the structure, in order.
        treespec: the structure, as `tree_flatten` gives it.

    Raises:
        TypeError: `treespec` is none.
        ValueError: there are more or fewer leaves than places.

    Example:
        >>> leaves, spec = torch.utils._pytree.tree_flatten({"a": [1, 2]})
        >>> torch.utils._pytree.tree_unflatten([3, 4], spec)
        {'a': [3, 4]}
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterates over the leaves."""
    if _is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves in order."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments of a call, in order."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value, None)]


def tree_is_leaf(
    tree: int | Sequence[int] | None, is_leaf: Callable[..., Any] | None = None
) -> bool:
    """Whether a tree is a single leaf."""
    return _is_leaf(tree, is_leaf)


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree, *rests, is_leaf=None):
    """The tree of the results of `func` on the leaves (of several trees of one structure)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(r) for r in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def tree_map_(func: Callable[..., Any], tree, *rests, is_leaf=None):
    """Calls `func` on the leaves for what it does to them; returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(r) for r in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def _type_filter(types):
    if isinstance(types, (type, tuple)):
        return lambda x: isinstance(x, types)
    if callable(types):
        return types
    raise TypeError(f"expected a type, a tuple of types or a function, but got {types!r}")


def map_only(type_or_types_or_pred: type, /) -> Callable[..., Any]:
    """Decorates a function of a leaf: others than these come through as they are."""
    wanted = _type_filter(type_or_types_or_pred)

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(x):
            return func(x) if wanted(x) else x

        return wrapper

    return decorate


def tree_map_only(type_or_types_or_pred, /, func: Callable[..., Any], tree, is_leaf=None):
    """`tree_map` on the leaves of these types, or of which a function says so."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func: Callable[..., Any], tree, is_leaf=None):
    """`tree_map_` on some leaves only."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves of these types."""
    wanted = _type_filter(type_or_types)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if wanted(x))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for a leaf of these types."""
    wanted = _type_filter(type_or_types)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if wanted(x))


# ---- paths ----


def _walk_with_path(path, tree, is_leaf):
    if _is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node.type}.")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _walk_with_path((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """Pairs of path and leaf, and the structure."""
    return list(_walk_with_path((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """Pairs of path and leaf."""
    return list(_walk_with_path((), tree, is_leaf))


def tree_map_with_path(func: Callable[..., Any], tree, *rests, is_leaf=None):
    """`tree_map` whose function gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[p for p, _ in pairs], [v for _, v in pairs]]
    columns += [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(func(*row) for row in zip(*columns, strict=True))


def keystr(path: tuple[SequenceKey, ...]) -> str:
    """A path as text: "['a'][0].b"."""
    return "".join(map(str, path))


def key_get(obj: object, path):
    """What lies at a path."""
    for key in path:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a tree that may be a prefix of the structure, repeated where it stops early."""
    if treespec.is_leaf() or _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if kind != treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    out = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        out += flat
    return out
