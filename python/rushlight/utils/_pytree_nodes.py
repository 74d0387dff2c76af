"""Containers of nested values: how each is taken apart and put together, and keys of paths."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import Size

Context = Any


class NodeDef(NamedTuple):
    """How a container is taken apart and put together."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Any, Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None
    serialized_type_name: str | None = None
    to_dumpable_context: Callable[[Context], Any] | None = None
    from_dumpable_context: Callable[[Any], Context] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A place in a sequence, in a path."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a mapping, in a path."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """An attribute, in a path."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj: object):
        return getattr(obj, self.name)


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Let instances of `cls` be containers.

    Args:
        flatten_fn: instance -> (children, context).
        unflatten_fn: (children, context) -> instance.
        serialized_type_name: its name in serialised structures (`treespec_dumps`).
        to_dumpable_context: a function from a context to the data to serialise; JSON by default.
        from_dumpable_context: the inverse of `to_dumpable_context`.
        flatten_with_keys_fn: instance -> (pairs of key and child, context), for paths.

    Raises:
        ValueError: it is registered already, or its context is written and not read.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"register_pytree_node(): of {cls} one of to_dumpable_context and "
            "from_dumpable_context is missing"
        )
    SUPPORTED_NODES[cls] = NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _register_pytree_node(cls, flatten_fn, unflatten_fn, *unused, **options):
    """`register_pytree_node` under its old name, which may be called again."""
    SUPPORTED_NODES.pop(cls, None)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Let instances of a dataclass be containers of their fields.

    Fields that are None count as part of the structure.
    """
    names = field_names
    if names is None:
        names = [f.name for f in dataclasses.fields(cls) if f.init]
        names = [n for n in names if n not in (drop_field_names or ())]

    def flatten(obj):
        present = [n for n in names if getattr(obj, n) is not None]
        absent = [n for n in names if getattr(obj, n) is None]
        return [getattr(obj, n) for n in present], [present, absent]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj):
        values, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


def _list_flatten(value):
    return list(value), None


def _list_unflatten(values, context):
    return list(values)


def _tuple_unflatten(values, context):
    return tuple(values)


def _list_flatten_with_keys(value):
    return [(SequenceKey(i), v) for i, v in enumerate(value)], None


def _dict_flatten(value):
    return list(value.values()), list(value.keys())


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(value):
    return [(MappingKey(k), v) for k, v in value.items()], list(value.keys())


def _ordered_dict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(value):
    return list(value.values()), [value.default_factory, list(value.keys())]


def _defaultdict_unflatten(values, context):
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _defaultdict_with_keys(value):
    return _dict_flatten_with_keys(value)[0], [value.default_factory, list(value.keys())]


def _namedtuple_flatten(value):
    return list(value), type(value)


def _namedtuple_unflatten(values, context):
    return context(*values)


def _namedtuple_with_keys(value):
    names = value._fields
    return [(GetAttrKey(n), v) for n, v in zip(names, value, strict=True)], type(value)


def _deque_flatten(value):
    return list(value), value.maxlen


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


class _NamedTuple:
    """Stands for every named tuple in SUPPORTED_NODES."""


namedtuple = _NamedTuple


class _Results:
    """Stands for the named results of ops in SUPPORTED_NODES."""


_RESULTS = ".return_types"


def _results_flatten(value):
    return list(value), type(value)


def _results_unflatten(values, context):
    return context(values)


register_pytree_node(
    list, _list_flatten, _list_unflatten, flatten_with_keys_fn=_list_flatten_with_keys
)
register_pytree_node(
    tuple, _list_flatten, _tuple_unflatten, flatten_with_keys_fn=_list_flatten_with_keys
)
register_pytree_node(
    Size, _list_flatten, _tuple_unflatten, flatten_with_keys_fn=_list_flatten_with_keys
)
register_pytree_node(
    dict, _dict_flatten, _dict_unflatten, flatten_with_keys_fn=_dict_flatten_with_keys
)
register_pytree_node(
    OrderedDict,
    _dict_flatten,
    _ordered_dict_unflatten,
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    flatten_with_keys_fn=_defaultdict_with_keys,
)
register_pytree_node(
    _NamedTuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    flatten_with_keys_fn=_namedtuple_with_keys,
)
register_pytree_node(
    deque, _deque_flatten, _deque_unflatten, flatten_with_keys_fn=_list_flatten_with_keys
)
register_pytree_node(
    _Results,
    _results_flatten,
    _results_unflatten,
    flatten_with_keys_fn=_list_flatten_with_keys,
)


def is_namedtuple_class(cls):
    """Whether a class was made by `namedtuple`."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(f, str) for f in fields)
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is of a class that `namedtuple` made."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether it is such a class or of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    """Whether a class is one of C's tuples with names, as the named results of ops are."""
    if not isinstance(cls, type) or cls.__bases__ != (tuple,):
        return False
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    is_final = not cls.__flags__ & 1 << 10  # Py_TPFLAGS_BASETYPE
    return is_final and all(isinstance(getattr(cls, name, None), int) for name in counts)


def is_structseq_instance(obj: object) -> bool:
    """Whether it is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether it is such a class or of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree):
    cls = type(tree)
    if cls not in SUPPORTED_NODES and is_namedtuple_class(cls):
        return _NamedTuple
    if issubclass(cls, tuple) and cls.__module__.endswith(_RESULTS):
        return _Results
    return cls


def _is_leaf(tree, is_leaf=None):
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def register_constant(cls: type) -> None:
    """Let instances of `cls` be part of the structure, without leaves, compared by `==`."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    register_pytree_node(
        cls, lambda x: ([], x), lambda _, x: x, flatten_with_keys_fn=lambda x: ([], x)
    )
