"""Dispatch keys: places of the calls of an op, and sets of them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._library.below import Below

if TYPE_CHECKING:

    class DispatchKey(enum.IntEnum):
        """A place of the calls of an op."""

else:
    # The numbers are those of C++ (include/rushlight/dispatch_key.h).
    DispatchKey = enum.IntEnum(
        "DispatchKey", {name: i for i, name in enumerate(_C._dispatch_key_names())}
    )


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey] = ()) -> None:
        keys = (keys,) if isinstance(keys, DispatchKey) else keys
        self._bits = sum(1 << key for key in set(keys))

    def raw_repr(self) -> int:
        """The set as the bits of a number."""
        return self._bits

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in it."""
        return self._bits >> key & 1 == 1

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with a key."""
        return from_raw_repr(self._bits | 1 << key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return from_raw_repr(self._bits & ~(1 << key))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_raw_repr(self._bits | other._bits)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_raw_repr(self._bits & other._bits)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return from_raw_repr(self._bits & ~other._bits)

    def call(self, op, args, kwargs):
        """Calls an op below autograd, unless a key of it is in the set."""
        if self._bits & AUTOGRAD._bits:
            return op(*args, **kwargs)
        with Below():
            return op(*args, **kwargs)

    def __iter__(self) -> Iterator[DispatchKey]:
        return (key for key in DispatchKey if self.has(key))

    def __eq__(self, other) -> bool:
        return isinstance(other, DispatchKeySet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


def from_raw_repr(bits: int) -> DispatchKeySet:
    """The set of these bits."""
    made = DispatchKeySet()
    made._bits = bits
    return made


def named(name: str) -> DispatchKey:
    """The key of a name.

    Raises:
        RuntimeError: there is none.
    """
    if name not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return DispatchKey[name]


_ALL = from_raw_repr((1 << len(DispatchKey)) - 1)
AUTOGRAD = DispatchKeySet(k for k in DispatchKey if k.name.startswith("Autograd"))
AUTOCAST = DispatchKeySet(k for k in DispatchKey if k.name.startswith("Autocast"))
AFTER_AUTOGRAD = _ALL - AUTOGRAD - AUTOCAST


def of(tensor) -> DispatchKeySet:
    """The keys of a tensor: its device's, and autograd's there unless it is an inference tensor."""
    name = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(tensor.device.type, "PrivateUse1")
    keys = DispatchKeySet(named(name))
    return keys if tensor.is_inference() else keys.add(named(f"Autograd{name}"))
