"""Lists and dicts that Python and programs share: what `script` makes of a list or a dict.

A program that is given one changes it, where a list or dict of Python would be copied. What it
holds is the attribute of an object of a program; Python reads a copy and writes it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import jit
from rushlight.jit import _meanings
from rushlight.jit._meanings import unit

ITEMS = "_shared_items"  # the attribute, by which the border to Python knows such an object
_classes: dict[str, str] = {}  # of programs, by the types of what they hold


def _class_of(kind: str, more: str) -> str:
    """The class of programs that holds a list or dict of a type; `more` adds to one."""
    if kind not in _classes:
        name = _meanings.free_name("__torch__", "Shared")
        unit.add_class(name, "class")
        unit.add_attribute(name, ITEMS, kind, "attribute")
        source = f"def replace(self, items: {kind}) -> None:\n"
        source += f"  self.{ITEMS}.clear()\n  self.{ITEMS}.{more}(items)\n"
        unit.compile("replace", source, "", 1, _meanings.Names(), name, "method", None)
        _classes[kind] = name
    return _classes[kind]


class _Shared:
    _more = ""

    def __init__(self, items: Any, kind: str) -> None:
        self._kind = kind
        self._c = unit.create(_class_of(kind, self._more))
        self._c.set(ITEMS, items)

    def _read(self) -> Any:
        return self._c.get(ITEMS)

    def _write(self, items: Any) -> None:
        try:
            self._c.call("replace", (items,), {})
        except RuntimeError as error:
            raise TypeError(str(error)) from None

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return bool(self._read())

    def __contains__(self, item: Any) -> bool:
        return item in self._read()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __setitem__(self, key: Any, value: Any) -> None:
        items = self._read()
        items[key] = value
        self._write(items)

    def __delitem__(self, key: Any) -> None:
        items = self._read()
        del items[key]
        self._write(items)


class ScriptList(_Shared):
    """A list that programs change in place."""

    _more = "extend"

    def __getitem__(self, index: Any) -> Any:
        found = self._read()[index]
        return ScriptList(found, self._kind) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return str(self._read())

    def append(self, item: Any) -> None:
        """Add an item at the end."""
        self._write([*self._read(), item])

    def extend(self, items: Any) -> None:
        """Add several items at the end."""
        self._write([*self._read(), *items])

    def insert(self, index: int, item: Any) -> None:
        """Add an item before the one at `index`."""
        items = self._read()
        items.insert(index, item)
        self._write(items)

    def pop(self, index: int = -1) -> Any:
        """Remove the item at `index` and return it."""
        items = self._read()
        if not -len(items) <= index < len(items):
            raise IndexError("list index out of range")
        out = items.pop(index)
        self._write(items)
        return out

    def remove(self, item: Any) -> None:
        """Remove the first item that equals `item`; ValueError if there is none."""
        items = self._read()
        items.remove(item)
        self._write(items)

    def count(self, item: Any) -> int:
        """How many items equal `item`."""
        return self._read().count(item)

    def clear(self) -> None:
        """Remove all items."""
        self._write([])


class ScriptDict(_Shared):
    """A dict that programs change in place."""

    _more = "update"

    def __getitem__(self, key: Any) -> Any:
        return self._read()[key]

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
