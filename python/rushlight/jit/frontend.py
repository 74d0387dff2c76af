"""The errors of source that `jit.script` cannot compile, by PyTorch's names."""

from __future__ import annotations

__all__ = ["FrontendError", "FrontendTypeError", "NotSupportedError", "UnsupportedNodeError"]


class FrontendError(Exception):
    """Source that cannot be compiled; the message shows its line."""


class NotSupportedError(FrontendError):
    """A construct of Python that the language of programs lacks."""


class UnsupportedNodeError(NotSupportedError):
    """The same, of PyTorch's older programs."""


class FrontendTypeError(FrontendError):
    """A type that programs do not have."""
