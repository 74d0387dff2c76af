"""Functions for fake tensors by the name of their op: `singleton.find(NAME).fake_impl`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rushlight._library.registry import CustomOverload


class Kernel(NamedTuple):
    """A function, and where it is written."""

    func: Callable[..., Any]
    source: str

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)


class Holder:
    """The function for fake tensors of one op; `kernel` is None if there is none."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.kernel: Kernel | None = None


class Entry:
    """What is registered for one op."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.fake_impl = Holder(qualname)

    @property
    def abstract_impl(self) -> Holder:
        """`fake_impl`, under its old name."""
        return self.fake_impl


class Registry:
    """Entries by the names of ops, "namespace::name"."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def find(self, qualname: str) -> Entry:
        """The entry of an op, made where it is missing."""
        return self._entries.setdefault(qualname, Entry(qualname))


singleton = Registry()


def register_fake(op: CustomOverload, function: Callable[..., Any]) -> int:
    """Makes a function what an overload does with meta and fake tensors; a number to undo it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    source = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
    singleton.find(op.qualname).fake_impl.kernel = Kernel(function, source)
    return op.implement("Meta", function)
