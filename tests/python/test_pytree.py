"""Trees of containers and what is registered for them."""

import pytest

import rushlight as torch
from rushlight.utils import _pytree


def test_sizes_are_trees():
    leaves, spec = _pytree.tree_flatten([torch.Size([2, 3]), 4])
    assert leaves == [2, 3, 4] and spec.unflatten(leaves) == [(2, 3), 4]
    assert type(_pytree.tree_map(str, torch.Size([2]))) is tuple


def test_trees_of_registered_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    _pytree.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], None), lambda values, context: Pair(*values)
    )
    tree = {"p": Pair(1, [2, 3])}
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3] and spec.unflatten(leaves)["p"].b == [2, 3]
    assert _pytree.tree_map(lambda x: x + 1, tree)["p"].a == 2
    with pytest.raises(ValueError, match="already registered"):
        _pytree.register_pytree_node(Pair, None, None)
    _pytree.SUPPORTED_NODES.pop(Pair)
    assert _pytree.tree_leaves(tree)[0] is tree["p"]
    assert _pytree.arg_tree_leaves(1, [2, (3,)], x={"a": 4}) == [1, 2, 3, 4]


def test_constants_are_part_of_a_trees_structure():
    import dataclasses

    from rushlight.utils import _pytree

    @dataclasses.dataclass(frozen=True)
    class Size:
        n: int

    _pytree.register_constant(Size)
    leaves, spec = _pytree.tree_flatten([Size(3), 1])
    assert leaves == [1] and _pytree.tree_unflatten([2], spec) == [Size(3), 2]
    with pytest.raises(TypeError, match="__eq__"):
        _pytree.register_constant(type("Plain", (), {}))
