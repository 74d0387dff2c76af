"""What a compiler would know while it traces: here, that nothing is traced but fake tensors."""

from __future__ import annotations

from typing import Any

from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import _get_current_dispatch_mode_stack

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


class TracingContext:
    """The trace that is being made: there is none."""

    @staticmethod
    def try_get() -> None:
        """None: nothing is traced."""

    @staticmethod
    def get() -> Any:
        """RuntimeError: nothing is traced."""
        raise RuntimeError(
            "TracingContext.get() must be called within an ongoing trace: there is none"
        )


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost `FakeTensorMode` that the program is in, or None."""
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, FakeTensorMode):
            return mode
    return None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode of fake tensors among values, or the one that the program is in; None without.

    Args:
        inputs: values, containers of them, tensors among them.
    """
    found = [leaf.fake_mode for leaf in _pytree.tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    found += [
        mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, FakeTensorMode)
    ]
    if any(mode is not found[0] for mode in found):
        raise AssertionError("fake mode of one tensor doesn't match that of another")
    return found[0] if found else None
