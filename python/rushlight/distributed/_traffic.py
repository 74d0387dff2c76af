"""What travels while modules compute: parts on their way to a whole, gradients on theirs.

`DistributedDataParallel`'s buckets, units of FSDP and of `fully_shard`, and optimisers that share
parameters out all send by the steps of `Travelling`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import rushlight
from rushlight.distributed._kinds import AllreduceOptions, ReduceOp, ReduceScatterOptions

__all__ = ["Traffic", "Travelling", "gathered", "scattered", "summed"]

_Steps = Generator[Any, Any, Any]


def gathered(group: Any, part: rushlight.Tensor) -> _Steps:
    """All processes' parts, flat, one after the other: steps of a `Travelling`."""
    whole = part.new_empty(part.numel() * group.size())
    yield group._allgather_base(whole, part)
    return whole


def scattered(group: Any, whole: rushlight.Tensor, op: Any) -> _Steps:
    """This process's part of the sum, or mean, of all processes' flat tensors: steps."""
    part = whole.new_empty(whole.numel() // group.size())
    opts = ReduceScatterOptions()
    opts.reduceOp = op
    yield group._reduce_scatter_base(part, whole, opts)
    return part


def summed(group: Any, tensor: rushlight.Tensor, op: Any = ReduceOp.SUM) -> _Steps:
    """The sum, or mean, of all processes' tensors, in place: steps."""
    opts = AllreduceOptions()
    opts.reduceOp = op
    yield group.allreduce([tensor], opts)
    return tensor


class Travelling:
    """Something on its way.

    Args:
        steps: a generator that starts what moves the data, yields each such work, is resumed with
            what waiting for that gave, and returns what arrives.
    """

    def __init__(self, steps: _Steps):
        self._steps = steps
        self._work: Any = None
        self._result: Any = None
        self._go_on(None)

    def _go_on(self, waited: Any) -> None:
        with rushlight.no_grad():
            try:
                self._work = self._steps.send(waited)
            except StopIteration as end:
                self._work, self._result = None, end.value

    def arrive(self) -> Any:
        """Wait for it; gives what arrived."""
        while self._work is not None:
            self._go_on(self._work.wait())
        return self._result


class Traffic:
    """What the units below one outermost module know of each other."""

    def __init__(self):
        self.units: list[Any] = []  # all of them
        self._now: list[Any] = []  # the units of this forward, as they began
        self._expected: list[Any] = []  # those of the forward before
        self._returning: list[Any] = []  # those that backward will come to, the next one last
        self._reductions: list[Travelling] = []

    def begin(self) -> None:
        """A forward of the outermost module begins."""
        self._expected, self._now, self._returning = self._now, [], []
        self.units = []
        self.settle()

    def going(self, unit) -> Any:
        """A unit's forward begins; gives who came after it last time, as long as all were alike."""
        place = len(self._now)
        self._now.append(unit)
        if self._now != self._expected[: place + 1]:
            self._expected = []
        return self._expected[place + 1] if place + 1 < len(self._expected) else None

    def will_return(self, unit) -> None:
        """A unit's forward has ended, of which there will be a backward."""
        self._returning.append(unit)

    def returning(self, unit) -> Any:
        """A unit's backward begins; gives whose comes next."""
        while self._returning:
            if self._returning.pop() is unit:
                break
        return self._returning[-1] if self._returning else None

    def reduce(self, steps, limit: int) -> Travelling:
        """Start a unit's reduction. Whole gradients of `limit` units at a time travel."""
        self.settle(limit - 1)
        travelling = Travelling(steps)
        self._reductions.append(travelling)
        return travelling

    def settle(self, left: int = 0) -> None:
        """Wait for reductions until so many are under way."""
        while len(self._reductions) > left:
            self._reductions.pop(0).arrive()
