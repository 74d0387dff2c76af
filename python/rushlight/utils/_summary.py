"""`summary`: the modules of a network with what they return and how many parameters they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight._texts import page

__all__ = ["Summary", "summary"]


@dataclass
class Row:
    """A module of a network."""

    name: str  # dotted
    kind: str
    shape: str  # of its result; empty where it was not called
    parameters: int  # its own


class Summary:
    """What `summary` found: prints as a table, and as one in notebooks.

    Args:
        rows: the modules.
        total: parameters of all.
        trained: those that require grad.

    Example:
        >>> made = torch.utils.summary(torch.nn.Linear(3, 2))
        >>> made.total, made.trained
        (8, 8)
    """

    _HEAD = ("module", "class", "output", "parameters")

    def __init__(self, rows: list[Row], total: int, trained: int) -> None:
        self.rows, self.total, self.trained = rows, total, trained

    def _cells(self) -> list[tuple[str, str, str, str]]:
        return [(r.name, r.kind, r.shape, f"{r.parameters:,}") for r in self.rows]

    def _foot(self) -> str:
        return f"{self.total:,} parameters, {self.trained:,} of them trained"

    def __repr__(self) -> str:
        rows = [self._HEAD, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for *texts, number in rows:
            cells = [cell.ljust(width) for cell, width in zip(texts, widths, strict=False)]
            lines.append("  ".join([*cells, number.rjust(widths[-1])]).rstrip())
        return "\n".join([*lines, self._foot()])

    def _repr_html_(self) -> str:
        foot = page.faint(page.text(self._foot()))
        return page.frame(page.table(self._HEAD, self._cells()), foot)


def _shape(result: Any) -> str:
    if isinstance(result, rushlight.Tensor):
        return str(tuple(result.shape))
    if isinstance(result, (list, tuple)):
        return ", ".join(filter(None, map(_shape, result)))
    if isinstance(result, dict):
        return ", ".join(f"{key}: {_shape(value)}" for key, value in result.items())
    return ""


def summary(model: rushlight.nn.Module, *inputs: Any, **kwargs: Any) -> Summary:
    """The modules of a network, their results' shapes and how many parameters each has.

    With inputs the network runs once, without gradients and in evaluation mode; then it is as it
    was.

    Args:
        model: the network.
        inputs: arguments by position; without any, no shapes are known.
        kwargs: arguments by name.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        >>> torch.utils.summary(net, torch.zeros(2, 4))
        module  class       output  parameters
                Sequential  (2, 8)           0
        0       Linear      (2, 8)          40
        1       ReLU        (2, 8)           0
        40 parameters, 40 of them trained
    """
    shapes: dict[int, str] = {}

    def note(module: Any, _inputs: Any, result: Any) -> None:
        shapes[id(module)] = _shape(result)

    if inputs or kwargs:
        modes = [(m, m.training) for m in model.modules()]
        handles = [m.register_forward_hook(note) for m, _ in modes]
        try:
            model.eval()
            with rushlight.no_grad():
                model(*inputs, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
            for module, mode in modes:
                module.training = mode
    rows = []
    for name, module in model.named_modules():
        own = sum(p.numel() for p in module._parameters.values() if p is not None)
        rows.append(Row(name, module._get_name(), shapes.get(id(module), ""), own))
    all_of = list(model.parameters())
    trained = sum(p.numel() for p in all_of if p.requires_grad)
    return Summary(rows, sum(p.numel() for p in all_of), trained)
