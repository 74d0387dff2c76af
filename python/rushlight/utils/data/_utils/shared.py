"""Blocks of shared memory that one process lends to another, again and again.

The `Lender` writes into a block and sends its number; the `Borrower` makes tensors on it. When the
last of them is gone the number goes back, and the lender writes into the same pages again: pages
are cleared and mapped once, not for each batch. What is left at the end of an epoch
(`SpareBlock`) is given to the workers of the next. Blocks are anonymous files: whoever dies leaves
nothing behind, and no size is set by /dev/shm.
"""

from __future__ import annotations

import itertools
import mmap
import os
import weakref
from typing import Any

import rushlight

__all__ = ["Borrower", "Lender", "SpareBlock"]

# Blocks of one lender that a borrower holds at a time. A caller who keeps more batches than this
# gets copies, so that neither files nor shared memory run out.
_MOST_HELD = 16

_forks = 0


def _count_forks() -> None:
    # A child sees the blocks that its parent holds, for longer perhaps: they are not used again.
    global _forks
    _forks += 1


os.register_at_fork(before=_count_forks)


def _round_up(nbytes):
    """A size for a block, at most an eighth more: batches differ a little in size."""
    step = max(mmap.PAGESIZE, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


def _map(fd, nbytes):
    return mmap.mmap(fd, nbytes, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))


class _Block:
    """A block of a lender.

    Attributes:
        number: its name on both sides, from 1.
        users: how often the other side holds it.
        lease: the view that this side's tensors are made on, or None.
    """

    def __init__(self, number, nbytes, fd) -> None:
        self.number = number
        self.nbytes = nbytes
        self.fd = fd
        self.memory = _map(fd, nbytes)
        self.users = 0
        self.lease: Any = None


class Lender:
    """The side that writes.

    Attributes:
        new: blocks that the other side does not know yet: their files go with the next message.
        dropped: numbers that the other side may forget.
    """

    def __init__(self) -> None:
        self.new: list[_Block] = []
        self.dropped: list[int] = []
        self._blocks: dict[int, _Block] = {}
        self._places: dict[int, _Block] = {}  # by address
        self._free: list[_Block] = []
        self._numbers = itertools.count(1)

    def memory(self, nbytes):
        """Shared bytes as a tensor; what they hold is not defined."""
        block = self._take(nbytes)
        view = memoryview(block.memory)[:nbytes]
        memory = rushlight.frombuffer(view, dtype=rushlight.uint8)
        block.lease = weakref.ref(view, lambda _: self._settle(block))
        self._places[memory.data_ptr()] = block
        return memory

    def lend(self, storage):
        """The number of the block that a storage lies on, which counts as held from now on.

        None if it lies elsewhere.
        """
        block = self._places.get(storage.data_ptr())
        if block is None:
            return None
        block.users += 1
        return block.number

    def take_back(self, numbers):
        """What the other side has returned: numbers of blocks, negative if of no use any more."""
        for number in numbers:
            block = self._blocks.get(abs(number))
            if block is None:
                continue
            block.users -= 1
            if number < 0:
                self._drop(block)
            else:
                self._settle(block)

    def adopt(self, number, nbytes, fd):
        """A block that the other side knows by this number; its file is closed."""
        block = self._blocks[number] = _Block(number, nbytes, fd)
        self._free.append(block)
        self._numbers = itertools.count(number + 1)
        os.close(fd)

    def is_crowded(self):
        """Whether so many blocks are about that a tensor had better lie elsewhere at first."""
        return len(self._blocks) > 2 * _MOST_HELD

    def _take(self, nbytes):
        fitting = [b for b in self._free if nbytes <= b.nbytes <= 2 * nbytes + mmap.PAGESIZE]
        if fitting:
            block = min(fitting, key=lambda b: b.nbytes)
            self._free.remove(block)
            return block
        # What is free and does not fit may not outgrow what is in use.
        unused = sum(b.nbytes for b in self._free)
        used = nbytes + sum(b.nbytes for b in self._blocks.values()) - unused
        while self._free and unused > used:
            block = self._free.pop(0)
            unused -= block.nbytes
            self._drop(block)
        nbytes = _round_up(nbytes)
        fd = os.memfd_create("rushlight-batch")
        os.ftruncate(fd, nbytes)
        block = _Block(next(self._numbers), nbytes, fd)
        self._blocks[block.number] = block
        self.new.append(block)
        return block

    def _settle(self, block):
        """Called when one side has let a block go."""
        unused = block.users == 0 and (block.lease is None or block.lease() is None)
        known = self._blocks.get(block.number) is block
        if unused and known and block not in self._free:
            self._free.append(block)

    def _drop(self, block):
        del self._blocks[block.number]
        self._places = {at: b for at, b in self._places.items() if b is not block}
        self.dropped.append(block.number)


class SpareBlock:
    """A block without a lender, with its file."""

    def __init__(self, nbytes, fd) -> None:
        self.nbytes = nbytes
        self.fd = fd
        self.memory = _map(fd, nbytes)
        self.seen = False  # by a child, perhaps: it is not written again
        weakref.finalize(self, os.close, fd)


class Borrower:
    """The side that reads.

    Attributes:
        returned: numbers of blocks that are not used here any more.
    """

    def __init__(self) -> None:
        self.returned: list[int] = []
        self._blocks: dict[int, SpareBlock] = {}
        self._held: dict[int, Any] = {}  # a reference to each view, and the number of its block
        self._count = itertools.count()
        self._keepers: list[Any] = []  # who gets blocks that are let go of after the lender's end

    def add(self, number, block):
        """Get to know a block."""
        self._blocks[number] = block

    def forget(self, numbers):
        """Let blocks go that the lender will not use again."""
        for number in numbers:
            self._blocks.pop(number, None)

    def borrow(self, number, nbytes):
        """The first bytes of a block; it goes back when nothing refers to them any more."""
        block = self._blocks[number]
        view = memoryview(block.memory)[:nbytes]
        if len(self._held) >= _MOST_HELD:
            self.returned.append(number)
            return memoryview(bytearray(view))
        forks, place = _forks, next(self._count)
        held, returned, keepers = self._held, self.returned, self._keepers

        def give_back(_):
            del held[place]
            block.seen = block.seen or forks != _forks
            returned.append(-number if block.seen else number)
            if keepers and not block.seen and all(number != other for _, other in held.values()):
                keepers[0](block)

        held[place] = weakref.ref(view, give_back), number
        return view

    def spare_blocks(self, keep):
        """The blocks without users, when the lender has ended; `keep` gets the others in time."""
        self._keepers.append(keep)
        used = {number for _, number in self._held.values()}
        return [b for number, b in self._blocks.items() if number not in used and not b.seen]
