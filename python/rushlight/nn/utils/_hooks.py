"""Hooks that compute a parameter before each forward pass: weight and spectral norm, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


def find_hook(module: Module, kind, name: str, attribute: str = "name"):
    """The key and the hook of a kind that computes the parameter `name`; None and None without."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and getattr(hook, attribute) == name:
            return key, hook
    return None, None
