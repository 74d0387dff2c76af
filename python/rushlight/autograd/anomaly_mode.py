"""Anomaly mode: backward tells where the op that failed was recorded, and finds NaNs."""

from __future__ import annotations

from rushlight import _C
from rushlight._warnings import warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Within it every op remembers where it was called, which is slow; for debugging."""

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
    """Sets anomaly mode at once; as a context manager, until it ends."""

    def __init__(self, mode, check_nan: bool = True) -> None:
        self.before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        _C._set_anomaly_enabled(*self.before)
