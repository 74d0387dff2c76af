"""Conversions that several layers use."""

from __future__ import annotations

import textwrap
from typing import Any

from .._arguments import (  # noqa: F401
    _list_with_default,
    _ntuple,
    _pair,
    _quadruple,
    _single,
    _triple,
)

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _reverse_repeat_tuple(values, n):
    """Each item `n` times, last item first: the padding that `F.pad` takes from a layer's."""
    return tuple(v for v in reversed(values) for _ in range(n))


def _settings_text(module, **defaults):
    """Settings that are not their defaults, as `extra_repr` shows them: ", name=value"."""
    values = {name: getattr(module, name) for name in defaults}
    return "".join(f", {name}={v}" for name, v in values.items() if v != defaults[name])


def _documented(base: type, more: str) -> str:
    """The docstring of a base class, and what a subclass adds to it."""
    head, _, rest = (base.__doc__ or "").partition("\n")
    first, _, others = more.partition("\n")
    return f"{head}\n{textwrap.dedent(rest)}\n{first}\n{textwrap.dedent(others)}"


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str):
    """Remove a prefix from all names of a state dict, in place.

    Args:
        state_dict: names and tensors, as `module.state_dict()` gives them.
        prefix: what names begin with.

    Example:
        >>> from rushlight.nn.modules.utils import consume_prefix_in_state_dict_if_present
        >>> state = {"module.weight": torch.ones(1)}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'weight': tensor([1.])}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    stem = prefix.rstrip(".")
    for key in list(metadata):
        if key == stem:
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
