"""Weak references to tensors, and dicts with weak keys that are compared by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from rushlight import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to those of the same object, and only to these.

    Args:
        key: what is referred to.
        callback: called when it is freed.

    For an example see `utils.weak.TensorWeakRef`.
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[..., Any] | None = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self):
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other) -> bool:
        mine = self()
        theirs = other()
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dict that compares keys by identity; an entry is removed when its key is freed.

    Args:
        dict: entries to begin with.
        ref_type: what refers to keys.

    Example:
        >>> x = torch.ones(2)
        >>> names = torch.utils.weak.WeakIdKeyDictionary({x: "x"})
        >>> names[x]
        'x'
        >>> del x
        >>> len(names)
        0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: dict[Any, Any] = {}
        itself = weakref.ref(self)

        def remove(reference):
            owner = itself()
            if owner is not None:
                owner.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return sum(key() is not None for key in list(self.data))

    def __iter__(self):
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # there is no weak reference to it
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self):
        """The weak references to the keys, which may be freed at any time."""
        return list(self.data)

    def copy(self):
        """A copy with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other):
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it returns the tensor, or None.

    Args:
        tensor: what is referred to.

    Example:
        >>> x = torch.ones(2)
        >>> ref = torch.utils.weak.TensorWeakRef(x)
        >>> ref() is x
        True
        >>> del x
        >>> ref() is None
        True
    """

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected a tensor, got {type(tensor).__name__}")
        self.ref = WeakIdRef(tensor)

    def __call__(self):
        return self.ref()
