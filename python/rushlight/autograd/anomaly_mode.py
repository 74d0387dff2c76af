"""Anomaly mode: errors in backward show where the op was recorded, and NaNs are found."""

from __future__ import annotations

from rushlight import _C
from rushlight._warnings import warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """A context manager in which every op remembers its call, for debugging; this is slow.

    Args:
        check_nan: whether backward raises where a gradient is NaN.

    Example:
        >>> x = torch.tensor([0.0], requires_grad=True)
        >>> with torch.autograd.detect_anomaly():
        ...     (x.sqrt() * 0).backward()
        Traceback (most recent call last):
            ...
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. It makes every operation slower and is meant "
            "for debugging only.",
        )

    def __enter__(self):
        self.before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, kind, value, trace):
        _C._set_anomaly_enabled(*self.before)


class set_detect_anomaly:
    """Set anomaly mode at once; as a context manager, until the block ends.

    Args:
        mode: whether it is on.
        check_nan: whether backward raises where a gradient is NaN.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     print(torch.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        _C._set_anomaly_enabled(*self.before)
