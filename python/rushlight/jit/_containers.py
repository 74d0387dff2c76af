"""Lists and dicts that Python and programs share: what `script` makes of a list or a dict.

A program that is given one changes it, where a list or dict of Python would be copied. What it
holds is the attribute of an object of a program. Methods of that object read and change one item;
Python reads a copy only of what it wants as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import jit
from rushlight.jit import _meanings
from rushlight.jit._meanings import unit

ITEMS = "_shared_items"  # the attribute, by which the border to Python knows such an object
_classes: dict[str, str] = {}  # of programs, by the types of what they hold

# The methods of such an object: arguments, result, statement.
_COMMON = {
    "length": ("", "int", "return len(items)"),
    "clear": ("", "None", "items.clear()"),
    "get": (", key: KEY", "ITEM", "return items[key]"),
    "put": (", key: KEY, item: ITEM", "None", "items[key] = item"),
    "delete": (", key: KEY", "None", "del items[key]"),
}
_OF_LISTS = {
    "append": (", item: ITEM", "None", "items.append(item)"),
    "extend": (", more: KIND", "None", "items.extend(more)"),
    "insert": (", key: int, item: ITEM", "None", "items.insert(key, item)"),
    "pop": (", key: int", "ITEM", "return items.pop(key)"),
}
_OF_DICTS = {"has": (", key: KEY", "bool", "return key in items")}


def _class_of(kind: str) -> str:
    """The class of programs that holds a list or dict of a type."""
    if kind not in _classes:
        name = _meanings.free_name("__torch__", "Shared")
        unit.add_class(name, "class")
        unit.add_attribute(name, ITEMS, kind, "attribute")
        is_list = kind.startswith("List[")
        inner = kind[kind.index("[") + 1 : -1]
        key, _, item = ("int", "", inner) if is_list else inner.partition(", ")
        texts = {"KIND": kind, "KEY": key, "ITEM": item}
        for method, (arguments, result, statement) in {
            **_COMMON,
            **(_OF_LISTS if is_list else _OF_DICTS),
        }.items():
            source = f"def {method}(self{arguments}) -> {result}:\n"
            for word, text in texts.items():
                source = source.replace(word, text)
            source += f"  {statement.replace('items', f'self.{ITEMS}')}\n"
            unit.compile(method, source, "", 1, _meanings.Names(), name, "method", None)
        _classes[kind] = name
    return _classes[kind]


class _Shared:
    def __init__(self, items: Any, kind: str) -> None:
        self._kind = kind
        self._c = unit.create(_class_of(kind))
        self._c.set(ITEMS, items)

    def _read(self) -> Any:
        return self._c.get(ITEMS)

    def _call(self, method: str, *arguments: Any) -> Any:
        """What a method of the program gives; TypeError for items of other types."""
        try:
            return self._c.call(method, arguments, {})
        except RuntimeError as error:
            raise TypeError(str(error)) from None

    def _key(self, key: Any) -> Any:
        """A key of an item that is there; IndexError or KeyError of others."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self._call("length")

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __setitem__(self, key: Any, value: Any) -> None:
        self._call("put", key, value)

    def __delitem__(self, key: Any) -> None:
        self._call("delete", self._key(key))


class ScriptList(_Shared):
    """A list that programs change in place."""

    def _key(self, key: Any) -> Any:
        size = len(self)
        if not -size <= key < size:
            raise IndexError("list index out of range")
        return key

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ScriptList(self._read()[index], self._kind)
        return self._call("get", self._key(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            items = self._read()
            items[index] = value
            self.clear()
            self.extend(items)
            return
        super().__setitem__(self._key(index), value)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            self[index] = []
            return
        super().__delitem__(index)

    def __contains__(self, item: Any) -> bool:
        return item in self._read()

    def __repr__(self) -> str:
        return str(self._read())

    def append(self, item: Any) -> None:
        """Add an item at the end."""
        self._call("append", item)

    def extend(self, items: Any) -> None:
        """Add several items at the end."""
        self._call("extend", list(items))

    def insert(self, index: int, item: Any) -> None:
        """Add an item before the one at `index`."""
        self._call("insert", index, item)

    def pop(self, index: int = -1) -> Any:
        """Remove the item at `index` and return it."""
        return self._call("pop", self._key(index))

    def remove(self, item: Any) -> None:
        """Remove the first item that equals `item`; ValueError if there is none."""
        del self[self._read().index(item)]

    def count(self, item: Any) -> int:
        """How many items equal `item`."""
        return self._read().count(item)

    def clear(self) -> None:
        """Remove all items."""
        self._call("clear")


class ScriptDict(_Shared):
    """A dict that programs change in place."""

    def _key(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return key

    def __getitem__(self, key: Any) -> Any:
        return self._call("get", self._key(key))

    def __contains__(self, key: Any) -> bool:
        return self._call("has", key)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key}: {item}" for key, item in self._read().items()) + "}"

    def keys(self) -> Iterator[Any]:
        """The keys."""
        return iter(self._read())

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of keys and values."""
        return iter(self._read().items())


def shared(items: list | dict) -> ScriptList | ScriptDict:
    """A list or dict as one that programs share; its type is that of what it holds."""
    is_list = isinstance(items, list)
    kind = (
        _meanings.type_of_value(items)
        if items
        else "List[Tensor]"
        if is_list
        else "Dict[str, Tensor]"
    )
    if kind is None:
        raise jit.Error(
            f"Unable to infer type of {'list' if is_list else 'dictionary'}: its items are of "
            "several types, or of one that programs do not have"
        )
    return ScriptList(items, kind) if is_list else ScriptDict(items, kind)
