"""Structures of nested values as text, in JSON: `treespec_dumps`, `treespec_loads`."""

from __future__ import annotations

import enum
import functools
import json
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.utils import _pytree_nodes as nodes
from rushlight.utils._pytree_specs import TreeSpec, treespec_leaf

__all__ = ["_register_namedtuple", "treespec_dumps", "treespec_loads"]

PROTOCOL = 1


class TextForm(NamedTuple):
    """How a kind of container is written: its name, its context, and that back."""

    name: str
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


_names_of_tuples: dict[type, str] = {}  # of named tuples
_FACTORIES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (list, dict, set, tuple, int, float, bool, str, OrderedDict, deque)
}


def _dump_class(cls: Any) -> Any:
    if cls not in _names_of_tuples:
        raise NotImplementedError(
            f"treespec_dumps(): the named tuple {cls} has no name in texts: register it by "
            "`_register_namedtuple`"
        )
    return _names_of_tuples[cls]


def _load_class(name: Any) -> Any:
    for cls, known in _names_of_tuples.items():
        if known == name:
            return cls
    raise NotImplementedError(f"treespec_loads(): no named tuple is registered as {name}")


def _dump_factory(context: Any) -> Any:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _load_factory(written: Any) -> Any:
    # A text may name anything, and a factory is called: only classes of containers and numbers.
    wanted = f"{written['default_factory_module']}.{written['default_factory_name']}"
    if wanted not in _FACTORIES:
        raise ValueError(
            f"treespec_loads(): a defaultdict has the factory {wanted}; expected one of "
            f"{', '.join(_FACTORIES)}"
        )
    return [_FACTORIES[wanted], written["dict_context"]]


_WRITTEN: dict[Any, TextForm] = {
    list: TextForm("builtins.list", None, None),
    tuple: TextForm("builtins.tuple", None, None),
    dict: TextForm("builtins.dict", None, None),
    OrderedDict: TextForm("collections.OrderedDict", None, None),
    deque: TextForm("collections.deque", None, None),
    defaultdict: TextForm("collections.defaultdict", _dump_factory, _load_factory),
    nodes.namedtuple: TextForm("collections.namedtuple", _dump_class, _load_class),
}


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples a name in texts."""
    _names_of_tuples[cls] = serialized_type_name


def _text_form_of(kind: Any) -> TextForm:
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    definition = nodes.SUPPORTED_NODES.get(kind)
    if definition is None or definition.serialized_type_name is None:
        raise NotImplementedError(
            f"treespec_dumps(): {kind} has no name in texts: register it with a "
            "`serialized_type_name`"
        )
    return TextForm(
        definition.serialized_type_name,
        definition.to_dumpable_context,
        definition.from_dumpable_context,
    )


def _kind_of(name: Any) -> Any:
    for kind, written in _WRITTEN.items():
        if written.name == name:
            return kind
    for kind, definition in nodes.SUPPORTED_NODES.items():
        if definition.serialized_type_name == name:
            return kind
    raise NotImplementedError(f"treespec_loads(): no container is registered as {name}")


class _Encoder(json.JSONEncoder):
    """Members of enumerations by their names."""

    def default(self, o: Any) -> Any:
        if isinstance(o, enum.Enum):
            cls = type(o)
            return {
                "__enum__": True,
                "fqn": f"{cls.__module__}:{cls.__qualname__}",
                "name": o.name,
            }
        return super().default(o)


def _member(parts: dict[str, Any]) -> Any:
    if "__enum__" not in parts:
        return parts
    # Nothing is imported because a text says so, and nothing but an enumeration is looked into.
    module, _, name = parts["fqn"].partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise ValueError(
            f"treespec_loads(): {parts['fqn']} is no enumeration of a module that is imported"
        )
    return found[parts["name"]]


def _as_dict(spec: Any) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = _text_form_of(spec.type)
    if written.dump is not None:
        context = written.dump(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=_Encoder)
        except TypeError as error:
            raise TypeError(
                f"treespec_dumps(): the context of {spec.type} is not to be had in JSON: register "
                "it with a `to_dumpable_context`"
            ) from error
    children = [_as_dict(child) for child in spec.children_specs]
    return {"type": written.name, "context": context, "children_spec": children}


def _from_dict(parts: Any) -> Any:
    name, written, children = parts["type"], parts["context"], parts["children_spec"]
    if name is None and written is None and not children:
        return treespec_leaf()
    kind = _kind_of(name)
    load = _text_form_of(kind).load
    context = json.loads(str(written), object_hook=_member) if load is None else load(written)
    return TreeSpec(kind, context, [_from_dict(child) for child in children])


def _check(protocol: Any) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol} of a tree's text: there is {PROTOCOL} alone")


def treespec_dumps(treespec: Any, protocol: int | None = None) -> str:
    """A structure as text, PyTorch's.

    Raises:
        NotImplementedError: a container in it has no name in texts.
        TypeError: it is no structure, or a container's context is not to be had in JSON.
        ValueError: the protocol is not 1.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(): expected a TreeSpec, but got {type(treespec).__name__}")
    _check(PROTOCOL if protocol is None else protocol)
    return json.dumps([PROTOCOL, _as_dict(treespec)], cls=_Encoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> Any:
    """The structure of a text.

    Raises:
        NotImplementedError: a container in it is not registered.
        ValueError: it is of another protocol.
    """
    protocol, parts = json.loads(serialized)
    _check(protocol)
    return _from_dict(parts)
