"""The errors of source that `jit.script` cannot compile, by PyTorch's names."""

from __future__ import annotations

__all__ = ["FrontendError", "FrontendTypeError", "NotSupportedError", "UnsupportedNodeError"]


class FrontendError(Exception):
    """Source that cannot be compiled; the message shows its line.

    For an example see `jit.frontend.NotSupportedError`.
    """


class NotSupportedError(FrontendError):
    """A construct of Python that the language of programs lacks.

    Example:
        >>> from rushlight.jit.frontend import FrontendError, NotSupportedError
        >>> issubclass(NotSupportedError, FrontendError)
        True
    """


class UnsupportedNodeError(NotSupportedError):
    """The same, of PyTorch's older programs.

    For an example see `jit.frontend.NotSupportedError`.
    """


class FrontendTypeError(FrontendError):
    """A type that programs do not have.

    For an example see `jit.frontend.NotSupportedError`.
    """
