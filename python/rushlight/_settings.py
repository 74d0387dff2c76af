"""Settings that programs make and that change nothing here, but can be read again.

One op runs after the other: there are no threads between ops.

On the CPU every op is deterministic, whatever the number of threads. On GPUs, ops that add by
atomic operations (docs/cuda.md lists them) may differ in the last bits from run to run, and there
is no other way to compute them. float32 products are computed in float32.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._warnings import warn

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "read_vitals",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_vital",
    "use_deterministic_algorithms",
]

_deterministic = False
_marks_unwritten = True
_warn_only = False
_precision = "highest"
_interop_threads: int | None = None
_vitals: dict[str, str] = {}
_MODES = {"default": 0, "warn": 1, "error": 2}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Set whether deterministic algorithms are wanted; no op raises because of it.

    On the CPU there are no others. On GPUs some sums keep their atomic additions. Meanwhile new
    memory is filled where `utils.deterministic.fill_uninitialized_memory` is set.

    Args:
        mode: whether they are wanted.
        warn_only: whether to warn instead of raising; kept, without effect.

    Example:
        >>> torch.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool) or not isinstance(warn_only, bool):
        raise TypeError(
            "use_deterministic_algorithms(): arguments 'mode' and 'warn_only' must be bool"
        )
    _deterministic = mode
    _warn_only = warn_only
    _C._mark_unwritten(_deterministic and _marks_unwritten)


def marks_unwritten():
    """Whether new memory is filled while deterministic algorithms are wanted."""
    return _marks_unwritten


def set_marks_unwritten(mode):
    """Set whether new memory is filled while deterministic algorithms are wanted."""
    global _marks_unwritten
    if not isinstance(mode, bool):
        raise RuntimeError(
            f"fill_uninitialized_memory: expected a bool, but got {type(mode).__name__}"
        )
    _marks_unwritten = mode
    _C._mark_unwritten(_deterministic and _marks_unwritten)


def are_deterministic_algorithms_enabled():
    """The setting of `use_deterministic_algorithms`.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled():
    """Whether `warn_only` was set.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """`use_deterministic_algorithms` as "default" (0), "warn" (1) or "error" (2).

    Args:
        debug_mode: the name or the number.

    Example:
        >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode: {debug_mode} is none of {', '.join(_MODES)}"
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode != 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    """The setting as 0, 1 or 2; see `set_deterministic_debug_mode`.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return 0 if not _deterministic else 1 if _warn_only else 2


def set_float32_matmul_precision(precision: Any) -> None:
    """Set the least precision of float32 products: "highest", "high" or "medium".

    Args:
        precision: the name.

    Example:
        >>> torch.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call will have no effect.",
        )
        return
    _precision = precision


def get_float32_matmul_precision():
    """The setting of `set_float32_matmul_precision`.

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return _precision


def set_num_interop_threads(num: int):
    """Set how many ops may run in parallel; it has no effect.

    Args:
        num: a positive number.

    For an example see `set_num_threads`.

    Raises:
        RuntimeError: it was set before, or is not positive.
    """
    global _interop_threads
    if isinstance(num, bool) or not isinstance(num, int):
        kind = type(num).__name__
        raise TypeError(f"set_num_interop_threads expects an int, but got {kind}")
    if num <= 0:
        raise RuntimeError("expected positive number of threads")
    if _interop_threads is not None:
        raise RuntimeError(
            "cannot set the number of interop threads twice: set_num_interop_threads was called "
            "before"
        )
    _interop_threads = num


def get_num_interop_threads():
    """The setting, or the number of processors.

    Example:
        >>> torch.get_num_interop_threads() > 0
        True
    """
    return _interop_threads or os.cpu_count() or 1


def set_vital(vital: str, attr: str, value: str) -> bool:
    """Record a fact about the program if the variable TORCH_VITAL is ON; returns whether it did."""
    if os.environ.get("TORCH_VITAL", "").upper() != "ON":
        return False
    _vitals[f"{vital}.{attr}"] = value
    return True


def read_vitals() -> str:
    """The recorded facts, one in each line."""
    return "".join(f"[TORCH_VITAL] {name}\t\t {value}\n" for name, value in _vitals.items())
