"""The structure of nested values, without the values."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from rushlight.utils._pytree_nodes import SUPPORTED_NODES, _get_node_type

__all__ = ["LeafSpec", "TreeSpec", "treespec_leaf"]


class TreeSpec:
    """The structure of a tree without its leaves."""

    __module__ = "rushlight.utils._pytree"

    __slots__ = ("children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context, children_specs) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in children_specs)

    def is_leaf(self) -> bool:
        """Whether it stands for a leaf."""
        return self.type is None

    def children(self):
        """The structures of the parts."""
        return list(self.children_specs)

    def child(self, index):
        """The structure of one part."""
        return self.children_specs[index]

    def unflatten(self, leaves):
        """The tree with these leaves; ValueError if there are more or fewer."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)}, but "
                f"{self.num_leaves} leaves make a tree of {self}."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        parts = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(parts, self.context)

    def flatten_up_to(self, tree):
        """The parts of a tree where this structure has its leaves.

        Raises:
            ValueError: the tree has another structure.
        """
        parts: list[Any] = []
        self._collect(tree, parts)
        return parts

    def _collect(self, tree, parts):
        if self.type is None:
            parts.append(tree)
            return
        kind = _get_node_type(tree)
        dicts = (dict, OrderedDict, defaultdict)
        if kind != self.type and not (kind in dicts and self.type in dicts):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r}.")
        values, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(values) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(values)}."
            )
        if kind in dicts:
            expected = self.context[1] if self.type is defaultdict else self.context
            if set(expected) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {expected}, got {list(tree)}.")
            values = [tree[k] for k in expected]
        elif kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}: {self.context} and {context}."
            )
        for child, value in zip(self.children_specs, values, strict=True):
            child._collect(value, parts)

    def __eq__(self, other):
        return (
            isinstance(other, TreeSpec)
            and self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self):
        context = self.context
        if self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif isinstance(context, list):
            context = str(context)
        return hash((self.type, context, tuple(self.children_specs)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        children = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __module__ = "rushlight.utils._pytree"
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    """The structure of a single leaf."""
    return _LEAF_SPEC
