"""Tables of decompositions of ops, for exported graphs."""

from __future__ import annotations

from typing import Any

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Any]):
    """By op, the function that is run in its place; without those that are removed it stays.

    Example:
        >>> table = torch.export.default_decompositions()
        >>> isinstance(table, torch.export.CustomDecompTable), len(table) > 10
        (True, True)
    """

    def __init__(self) -> None:
        from rushlight.export._decompositions import TABLE

        super().__init__(TABLE)

    def copy(self) -> CustomDecompTable:
        """Another table with the same functions."""
        twin = CustomDecompTable()
        twin.clear()
        twin.update(self)
        return twin

    def materialize(self) -> dict[Any, Any]:
        """The same as a dict."""
        return dict(self)
