"""The operators that take functions, by name."""

from __future__ import annotations

from typing import Any

__all__ = ["BY_NAME"]

BY_NAME: dict[str, Any] = {}
