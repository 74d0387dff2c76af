"""Tables of decompositions of ops, for exported graphs."""

from __future__ import annotations

from typing import Any

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Any]):
    """By op, the function that is run in its place."""
