"""`History`: what a training measured, step by step."""

from __future__ import annotations

from typing import Any

from rushlight._texts import page

__all__ = ["History"]


class History:
    """What was measured in each step or epoch of a training, by name.

    It prints as a table of its last steps; notebooks draw a curve for each name.

    Example:
        >>> history = torch.utils.History()
        >>> for loss in (0.9, 0.4, 0.25):
        ...     history.add(loss=loss)
        >>> history["loss"]
        [0.9, 0.4, 0.25]
        >>> history
        step  loss
           1   0.9
           2   0.4
           3  0.25
    """

    _SHOWN = 10

    def __init__(self) -> None:
        self._rows: list[dict[str, float]] = []

    def add(self, **values: Any) -> None:
        """Take the values of one step: numbers, or tensors of one element."""
        self._rows.append({name: float(value) for name, value in values.items()})

    def names(self) -> list[str]:
        """What was measured, in the order in which it came first."""
        return list(dict.fromkeys(name for row in self._rows for name in row))

    def __getitem__(self, name: str) -> list[float]:
        """All values of a name; steps without one are NaN. KeyError for an unknown name."""
        if name not in self.names():
            raise KeyError(name)
        return [row.get(name, float("nan")) for row in self._rows]

    def points(self, name: str) -> list[tuple[int, float]]:
        """The steps, from 1, that have a value of a name, and the values."""
        return [(i, row[name]) for i, row in enumerate(self._rows, 1) if name in row]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        names = self.names()
        begin = max(0, len(self) - self._SHOWN)
        rows = [["step", *names]]
        for i, row in enumerate(self._rows[begin:], begin + 1):
            rows.append([str(i), *(f"{row[n]:.4g}" if n in row else "" for n in names)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (zip(row, widths, strict=True) for row in rows)
        return "\n".join("  ".join(cell.rjust(w) for cell, w in line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return page.of_history(self)
