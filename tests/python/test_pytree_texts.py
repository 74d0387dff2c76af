"""Structures of nested values written as text, and what is asked of containers."""

import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest

import rushlight as torch
from rushlight.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")
Named = namedtuple("Named", "a b")


class Colour(enum.Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: int


class Box:
    def __init__(self, value, label=None):
        self.value, self.label = value, label


class Sealed(Box):
    pass


class Plain(Box):
    pass


@pytest.fixture(scope="module", autouse=True)
def registered():
    parts = lambda box: ([box.value], box.label)
    pytree.register_pytree_node(
        Box, parts, lambda values, label: Box(*values, label), serialized_type_name="test.Box"
    )
    pytree.register_pytree_node(
        Sealed,
        parts,
        lambda values, label: Sealed(*values, label),
        serialized_type_name="test.Sealed",
        to_dumpable_context=lambda label: {"label": sorted(label)},
        from_dumpable_context=lambda written: set(written["label"]),
    )
    pytree.register_pytree_node(Plain, parts, lambda values, label: Plain(*values, label))
    pytree.register_dataclass(Point, serialized_type_name="test.Point")
    pytree._register_namedtuple(Named, serialized_type_name="test.Named")
    yield
    for kind in (Box, Sealed, Plain, Point):
        del pytree.SUPPORTED_NODES[kind]


@pytest.mark.parametrize(
    "tree",
    [
        1,
        [1, (2, {"a": 3, "b": []})],
        OrderedDict(x=1, y=(2,)),
        deque([1, 2], maxlen=3),
        defaultdict(list, {"k": 1}),
        {Colour.RED: 1},
        Named(1, [2]),
        Box(1, "label"),
        Sealed((1, 2), {"b", "a"}),
        Point(1, 2),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_structures_come_back(tree):
    spec = pytree.tree_structure(tree)
    back = pytree.treespec_loads(pytree.treespec_dumps(spec))
    assert back == spec
    leaves = list(range(spec.num_leaves))
    assert type(back.unflatten(leaves)) is type(spec.unflatten(leaves))


def test_texts_are_pytorchs():
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = pytree.treespec_dumps(pytree.tree_structure({"a": (1,)}))
    tuple_text = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}'
    assert text == (
        f'[1, {{"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{tuple_text}]}}]'
    )


@pytest.mark.parametrize(
    "tree, error, words",
    [
        (Pair(1, 2), NotImplementedError, "_register_namedtuple"),
        (Plain(1), NotImplementedError, "serialized_type_name"),
        (Box(1, object()), TypeError, "to_dumpable_context"),
    ],
)
def test_what_has_no_text(tree, error, words):
    with pytest.raises(error, match=words):
        pytree.treespec_dumps(pytree.tree_structure(tree))


def test_what_is_no_text_of_a_structure():
    with pytest.raises(TypeError, match="expected a TreeSpec, but got list"):
        pytree.treespec_dumps([1])
    with pytest.raises(ValueError, match="Unknown protocol 5"):
        pytree.treespec_dumps(pytree.tree_structure(1), 5)
    with pytest.raises(ValueError, match="Unknown protocol 7"):
        pytree.treespec_loads("[7, {}]")
    unknown = '[1, {"type": "no.such", "context": "null", "children_spec": []}]'
    with pytest.raises(NotImplementedError, match=r"no\.such"):
        pytree.treespec_loads(unknown)
    with pytest.raises(ValueError, match="from_dumpable_context is missing"):
        pytree.register_pytree_node(object, id, id, to_dumpable_context=str)


def test_kinds_of_tuples():
    result = torch.max(torch.ones(2, 2), 0)
    assert pytree.is_structseq(result) and pytree.is_structseq_class(type(result))
    assert pytree.is_structseq_instance(result) and not pytree.is_structseq_instance((1, 2))
    assert not pytree.is_structseq(Pair(1, 2)) and not pytree.is_namedtuple((1, 2))
    assert pytree.is_namedtuple(Pair) and pytree.is_namedtuple_instance(Pair(1, 2))
    assert not pytree.is_namedtuple_instance(Pair)


def test_leaves():
    assert pytree.tree_is_leaf(1) and pytree.tree_is_leaf(None) and not pytree.tree_is_leaf([1])
    assert pytree.tree_is_leaf((1,), is_leaf=lambda tree: isinstance(tree, tuple))
