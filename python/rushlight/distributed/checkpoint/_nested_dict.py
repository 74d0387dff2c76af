"""States as flat dicts, and back."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.checkpoint._traverse import set_element, traverse_state_dict

__all__ = ["flatten_state_dict", "unflatten_state_dict"]


def flatten_state_dict(state_dict):
    """The leaves by their paths joined with dots, and the path of each."""
    flat: dict[str, Any] = {}
    paths: dict[str, tuple] = {}

    def keep(path, value):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path

    traverse_state_dict(state_dict, keep)
    return flat, paths


def unflatten_state_dict(state_dict, mapping):
    """The state whose leaves these are."""
    nested: dict = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
