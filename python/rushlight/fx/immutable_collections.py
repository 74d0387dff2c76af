"""Immutable lists and dicts for the arguments of nodes."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs) -> NoReturn:
    """Raises TypeError: it cannot be changed."""
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation: the arguments of a node are "
        "changed by giving it new ones, node.args = (...)"
    )


class immutable_list(list):
    """A list that cannot be changed and has a hash.

    Args:
        iterable: the items.

    Example:
        >>> from rushlight.fx.immutable_collections import immutable_list
        >>> hash(immutable_list([1, 2])) == hash(immutable_list([1, 2]))
        True
    """

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)

    append = extend = insert = clear = pop = remove = reverse = sort = _refuse
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse


class immutable_dict(dict):
    """A dict that cannot be changed and has a hash.

    For an example see `fx.immutable_collections.immutable_list`.
    """

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)

    clear = pop = popitem = setdefault = update = __delitem__ = __setitem__ = __ior__ = _refuse


def _list_of(values: Any, _context: Any) -> immutable_list:
    return immutable_list(values)


def _dict_of(values: Any, keys: Any) -> immutable_dict:
    return immutable_dict(zip(keys, values, strict=True))


_pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), _list_of)
_pytree.register_pytree_node(immutable_dict, lambda x: (list(x.values()), list(x.keys())), _dict_of)
