"""Below autograd: where ops are not recorded."""

from __future__ import annotations

import rushlight
from rushlight import _C


class Below:
    """Within it nothing is recorded, and ops skip a program's function for autograd.

    Such a function calls the op itself in it, to get at what the op does on the device.
    """

    def __init__(self) -> None:
        self._no_grad = rushlight.no_grad()

    @classmethod
    def inside(cls):
        """Whether it is on, on this thread."""
        return _C._is_below_autograd()

    def __enter__(self) -> Below:
        _C._below_autograd(1)
        self._no_grad.__enter__()
        return self

    def __exit__(self, *error):
        self._no_grad.__exit__(*error)
        _C._below_autograd(-1)
