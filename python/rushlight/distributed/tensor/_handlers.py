"""Where the class of distributed tensors finds what handles ops: `_dispatch` enters it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []

HANDLERS: dict[str, Callable[..., Any]] = {}
