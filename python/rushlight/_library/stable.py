"""PyTorch's libraries by name, for binaries of the stable ABI, which need them.

They hold nothing and bring librushlight.so, whose functions those binaries call. A process in which
they are loaded cannot load PyTorch's own afterwards.
"""

from __future__ import annotations

import os

NAMES = ("libtorch.so", "libtorch_cpu.so", "libc10.so", "libtorch_python.so")
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "lib", "stable")


def load_names() -> None:
    """Load them all; calling it again is a no-op."""
    import _ctypes  # what ctypes is made of, without the rest

    for name in NAMES:
        _ctypes.dlopen(os.path.join(_FOLDER, name), os.RTLD_NOW | os.RTLD_LOCAL)


def is_about_names(error: OSError) -> bool:
    """Whether a library could not be loaded because one of these is not there."""
    return any(f"{name}:" in str(error) for name in NAMES)
