"""All functions of the op table, under the module that PyTorch calls them by."""

from __future__ import annotations

from typing import Any

from rushlight import _C


def __getattr__(name: str) -> Any:
    return getattr(_C.ops, name)


def __dir__() -> list[str]:
    return dir(_C.ops)
