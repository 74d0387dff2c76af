"""librushlight_cuda.so through ctypes: its C functions, with errors raised.

Where this installation has no such library every use raises AssertionError, where the machine has
no driver or no GPU RuntimeError, both with PyTorch's words.
"""

from __future__ import annotations

import ctypes
import functools
import sys

from rushlight import _C


def is_built() -> bool:
    """Whether the library is there."""
    return bool(_C._backend_path("cuda"))


@functools.cache
def _library() -> ctypes.CDLL:
    _C._load_backend("cuda")  # AssertionError where there is none
    library = ctypes.CDLL(_C._backend_path("cuda"))
    for name in ("error", "memory_stats", "column", "arch_list"):
        getattr(library, f"rushlight_cuda_{name}").restype = ctypes.c_char_p
    sys.modules["rushlight.cuda"]._initialized = True  # type: ignore
    return library


def toolkit_version() -> str | None:
    """The version of the CUDA toolkit that the library was built with; None without a library."""
    if not is_built():
        return None
    number = function("toolkit_version")()
    return f"{number // 1000}.{number % 1000 // 10}"


def function(name: str):
    """A C function, unchecked."""
    return getattr(_library(), f"rushlight_cuda_{name}")


def error() -> RuntimeError:
    """The error of the call that failed last on this thread."""
    return RuntimeError(function("error")().decode())


def call(name: str, *arguments) -> None:
    """Calls a function that returns 0 or -1; RuntimeError with its message for -1."""
    if function(name)(*arguments) != 0:
        raise error()


def require() -> None:
    """Loads the library; RuntimeError without a driver or a GPU."""
    call("require")


def ask(name: str, kind, *arguments):
    """Calls a function whose last argument is the address of its result."""
    result = kind()
    call(name, *arguments, ctypes.byref(result))
    return result.value


def text(name: str, *arguments) -> str:
    """Calls a function that returns text, or null for an error."""
    found = function(name)(*arguments)
    if found is None:
        raise error()
    return found.decode()
