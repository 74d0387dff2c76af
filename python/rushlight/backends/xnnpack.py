"""XNNPACK, which is not used."""

from __future__ import annotations

__all__ = ["enabled"]

enabled = False
