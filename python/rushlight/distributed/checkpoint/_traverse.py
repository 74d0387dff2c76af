"""Walks over states: nested dicts and lists."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, cast

import rushlight
from rushlight.distributed._shard.sharded_tensor import ShardedTensor

__all__ = ["get_element", "print_tensor", "set_element", "traverse_state_dict"]


def _keep_visiting_tensors(value) -> bool:
    return isinstance(value, (rushlight.Tensor, ShardedTensor))


def _is_leaf(value, keep_traversing) -> bool:
    """Dicts are walked into; lists where something in them is a dict or worth a visit."""
    if isinstance(value, Mapping):
        return False
    if isinstance(value, list):
        return all(_is_leaf(v, keep_traversing) and not keep_traversing(v) for v in value)
    return True


def traverse_state_dict(state_dict, visitor, keep_traversing=_keep_visiting_tensors) -> None:
    """Call `visitor(path, value)` of the leaves of a state; keys become strings."""

    def walk(path, value):
        if _is_leaf(value, keep_traversing):
            visitor(path, value)
        elif isinstance(value, Mapping):
            for key, part in value.items():
                walk((*path, str(key)), part)
        else:
            for i, part in enumerate(value):
                walk((*path, i), part)

    for key, value in state_dict.items():
        walk((str(key),), value)


def set_element(root_dict, path, value) -> None:
    """Put a value at a path; what is missing on the way is made."""

    def longer(lst, index):
        lst.extend([None] * (index + 1 - len(lst)))

    at: Any = root_dict
    for key, following in itertools.pairwise(path):
        fresh: Any = {} if isinstance(following, str) else []
        if isinstance(at, Mapping):
            at = cast("dict", at).setdefault(key, fresh)
        else:
            longer(at, key)
            if at[key] is None:
                at[key] = fresh
            at = at[key]
    if isinstance(path[-1], int) and not isinstance(at, Mapping):
        longer(at, path[-1])
    cast("dict", at)[path[-1]] = value


def get_element(root_dict, path, default_value=None):
    """What is at a path, or the default."""
    at = root_dict
    for key in path:
        if isinstance(key, int) and not isinstance(at, Mapping):
            if not isinstance(at, list) or len(at) <= key:
                return default_value
        elif not isinstance(at, Mapping) or key not in at:
            return default_value
        at = at[key]
    return at


def print_tensor(path, value, print_fun=print) -> None:
    """Say where a tensor is, and its shape."""
    if isinstance(value, rushlight.Tensor):
        print_fun(f"{path}: {tuple(value.shape)}")
    else:
        print_fun(f"{path}: {type(value)}")
