"""Functions that change a module in place, each at most once, by their old place."""

from __future__ import annotations

from rushlight.distributed._contract import _get_registry, _State, contract

__all__ = ["_State", "_get_registry", "contract"]
