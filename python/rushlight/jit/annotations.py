"""The types that programs write in annotations for TorchScript."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from rushlight.futures import Future


class BroadcastingListCls:
    """The type of a list for which one value may stand, that of each of its items.

    For an example see `jit.annotations.BroadcastingList1`.
    """

    def __getitem__(self, kind):
        return List[kind]  # noqa: UP006


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "BroadcastingListCls",
    "Dict",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
]
