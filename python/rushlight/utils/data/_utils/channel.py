"""A connection of two processes, over which objects go with the tensors in them.

A message is a pickle and what it refers to: small tensors stand beside it, larger ones lie in
shared memory (`shared.py`), and so does a message that is long itself. Nothing waits for an answer,
no thread is started, and the end of a process is seen at once, as the end of its messages.

Layout of a message: length of the head, head (marshal), the body at a multiple of 16.
"""

from __future__ import annotations

import array
import copyreg
import io
import marshal
import os
import pickle
import select
import socket
import threading
import weakref
from collections import deque
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C, Tensor
from rushlight._parameter import Parameter
from rushlight.multiprocessing import reductions

from .shared import Borrower, Lender, SpareBlock

if TYPE_CHECKING:
    from rushlight.storage import UntypedStorage

__all__ = ["Channel", "pair"]

# Bytes from which a tensor gets shared memory of its own, and from which a body does: copying twice
# costs less than mapping below.
LARGE = 1 << 15
_LONG = 1 << 16

_MOST_FILES = 200  # in a message; the system's limit is 253
_SCRATCH = 1 << 18
_INT = array.array("i")

_open: weakref.WeakSet[Channel] = weakref.WeakSet()
_context = threading.local()


def _close_in_child():
    # A child that held an end would hide from the other side that its parent is gone.
    for channel in list(_open):
        channel.close()


os.register_at_fork(after_in_child=_close_in_child)


def pair():
    """Two connected sockets that keep messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _align(n: int) -> int:
    return -(-n // 16) * 16


def _bytes_of(storage, start, count):
    return _C._tensor_on(storage, rushlight.uint8, start, (count,), (1,))


class _Packer:
    """What a pickle refers to: memories by number, and bytes that other types offer."""

    def __init__(self, lender) -> None:
        self.lender = lender
        self.memories: list[list] = []
        self.fds: list[int] = []
        self.buffers: list[pickle.PickleBuffer] = []
        self._numbers: dict[int, int] = {}
        self._storages: list = []  # kept, so that no address comes twice

    def dumps(self, value):
        """The pickle."""
        file = io.BytesIO()
        pickler = pickle.Pickler(file, 5, buffer_callback=self.buffers.append)
        pickler.dispatch_table = {
            **copyreg.dispatch_table,
            **ForkingPickler._extra_reducers,  # pyright: ignore
            Tensor: self.reduce,
            Parameter: self.reduce,
        }
        pickler.dump(value)
        return file.getbuffer()

    def reduce(self, tensor):
        """What is pickled of a tensor."""
        plain = tensor.device.type == "cpu" and tensor.layout is _C.strided
        if not plain or (tensor.requires_grad and not tensor.is_leaf):
            return reductions.reduce_tensor(tensor)
        storage = tensor.untyped_storage()
        size, stride, offset = tuple(tensor.size()), tensor.stride(), tensor.storage_offset()
        number = self._numbers.get(storage._cdata)
        if number is None:
            number = len(self.memories)
            memory = self._place(tensor, storage)
            if memory is None:
                return reductions.reduce_tensor(tensor)
            self._numbers[storage._cdata] = number
            self._storages.append(storage)
            self.memories.append(memory)
        memory = self.memories[number]
        if memory[0] == "copy" and tensor.numel():
            # Of a view of something larger only what it spans is sent.
            itemsize = tensor.element_size()
            last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
            memory[1] = min(memory[1], offset * itemsize // 16 * 16)
            memory[2] = max(memory[2], (last + 1) * itemsize)
        kind = type(tensor) is Parameter
        return _tensor, (number, tensor.dtype, offset, size, stride, tensor.requires_grad, kind)

    def _place(self, tensor, storage):
        """How a storage is sent: [how, from byte, to byte] or [how, number, bytes]."""
        lent = self.lender.lend(storage)
        if lent is not None:
            return ["lent", lent, storage.nbytes()]
        fd = reductions.shared_file(tensor)
        if fd is None:
            return ["copy", storage.nbytes(), 0]
        if len(self.fds) == _MOST_FILES:
            return None
        self.fds.append(fd)
        return ["shared", len(self.fds) - 1, storage.nbytes()]

    def body(self, payload):
        """The pickle and what is copied: (prepared head, bytes or None)."""
        end = _align(len(payload))
        small = []

        def place(count, source):
            nonlocal end
            if count >= LARGE:
                memory = self.lender.memory(count)
                memory.copy_(source())
                return ("lent", self.lender.lend(memory.untyped_storage()), count)
            small.append((end, count, source))
            start, end = end, _align(end + count)
            return ("body", start, count)

        memories = []
        for (how, low, high), storage in zip(self.memories, self._storages, strict=True):
            if how != "copy":
                memories.append((how, low, high, 0))
            elif low >= high:
                memories.append(("none", 0, 0, 0))
            else:
                count = high - low
                memories.append(
                    (
                        *place(count, lambda s=storage, a=low, n=count: _bytes_of(s, a, n)),
                        low,
                    )
                )
        buffers = []
        for buffer in self.buffers:
            raw = buffer.raw()
            if raw.nbytes == 0:
                buffers.append(("none", 0, 0))
                continue
            buffers.append(
                place(raw.nbytes, lambda b=raw: rushlight.frombuffer(b, dtype=rushlight.uint8))
            )
        number, content = 0, None
        if end > _LONG:
            target = self.lender.memory(end)
            number = self.lender.lend(target.untyped_storage())
            storage = target.untyped_storage()
            _bytes_of(storage, 0, len(payload)).copy_(
                rushlight.frombuffer(payload, dtype=rushlight.uint8)
            )
        else:
            content = bytearray(end)
            content[: len(payload)] = payload
            storage = None
            if small:
                storage = rushlight.frombuffer(content, dtype=rushlight.uint8).untyped_storage()
        for start, count, source in small:
            _bytes_of(storage, start, count).copy_(source())
        return (memories, buffers, len(payload), number, end), content


class _Unpacker:
    """The memories of a message, made into tensors when they are referred to.

    Args:
        memories: as `_Packer.body` gives them.
        body: the bytes of the message behind its head.
        lent: views of the blocks that came with it, by number.
        fds: files of memory that the sender shares.
    """

    def __init__(self, memories, body, lent, fds) -> None:
        self.memories = memories
        self._body = body
        self._lent = lent
        self._fds = fds
        self._made: dict = {}

    def storage(self, number: int) -> tuple[UntypedStorage, int]:
        """The storage, and where in it the first byte of the sender's storage would be."""
        made = self._made.get(number)
        if made is None:
            how, place, nbytes, low = self.memories[number]
            if how == "shared":
                memory = reductions.memory_of_file(self._fds[place], nbytes)
            else:
                memory = rushlight.frombuffer(self.bytes(how, place, nbytes), dtype=rushlight.uint8)
            made = self._made[number] = memory.untyped_storage(), -low
        return made

    def bytes(self, how, place, nbytes):
        """What was sent of a storage, or of what another type has offered."""
        if how == "none":
            return bytearray()
        return self._lent[place] if how == "lent" else self._body[place : place + nbytes]


def _tensor(number, dtype, offset, size, stride, requires_grad, is_parameter):
    """A tensor of the message that is being read."""
    unpacker = _context.unpacker
    if unpacker.memories[number][0] == "none" or 0 in size:
        tensor = rushlight.empty_strided(size, stride, dtype=dtype)
    else:
        storage, start = unpacker.storage(number)
        tensor = _C._tensor_on(storage, dtype, offset + start // dtype.itemsize, size, stride)
    if is_parameter:
        return Parameter(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _announcement(blocks):
    """The numbers and sizes of new blocks, and their files."""
    return [(block.number, block.nbytes) for block in blocks], [block.fd for block in blocks]


class Channel:
    """One end of a connection.

    Args:
        end: one of the sockets that `pair` gives.
    """

    def __init__(self, end) -> None:
        self._socket = end
        self.lender = Lender()
        self._borrower = Borrower()
        self._unsent: deque = deque()
        self._scratch = bytearray(_SCRATCH)
        _open.add(self)

    def fileno(self) -> int:
        """Its file, to wait for."""
        return self._socket.fileno()

    def close(self) -> None:
        """End it: the other side reads what was sent, and then the end."""
        self._socket.close()
        while self._unsent:
            for fd in self._unsent.popleft()[1]:
                os.close(fd)

    # ---- sending ----

    def send(self, kind, value=None, wait=True):
        """Send an object under a number that says what it is.

        Args:
            kind: an int.
            value: anything that can be pickled.
            wait: until there is room; else the rest goes with the next `send` or `flush`.

        Raises:
            OSError: the other side is gone.
        """
        packer = _Packer(self.lender)
        prepared, content = packer.body(packer.dumps(value))
        new = self.lender.new
        while len(new) + len(packer.fds) > _MOST_FILES:
            self._post(None, *_announcement(new[:_MOST_FILES]), (), ((), (), 0, 0, 0), b"")
            del new[:_MOST_FILES]
        self.lender.new = []
        self._post(int(kind), *_announcement(new), packer.fds, prepared, content)
        self.flush(wait)

    def give(self, spares):
        """Let the other side lend blocks that are here: the first thing that is sent."""
        for number, spare in enumerate(spares, 1):
            self._borrower.add(number, spare)
            blocks = [(-number, spare.nbytes)]
            self._post(None, blocks, [os.dup(spare.fd)], (), ((), (), 0, 0, 0), b"")

    def spare_blocks(self, keep):
        """The blocks of the other side, which has ended, without users; `keep` gets the others."""
        return self._borrower.spare_blocks(keep)

    def _post(self, kind, blocks, files, fds, prepared, content):
        # The borrower's list is filled by others meanwhile.
        returned = self._borrower.returned[:]
        del self._borrower.returned[: len(returned)]
        dropped, self.lender.dropped = self.lender.dropped, []
        head = marshal.dumps((kind, returned, dropped, blocks, *prepared))
        start = _align(4 + len(head))
        head = len(head).to_bytes(4, "little") + head + bytes(start - 4 - len(head))
        own = [os.dup(fd) for fd in fds]  # they may be closed before this is sent
        parts = [head] if content is None else [head, content]
        self._unsent.append((parts, files + own))

    def flush(self, wait: bool = False) -> None:
        """Send what there was no room for."""
        while self._unsent:
            parts, fds = self._unsent[0]
            rights = []
            if fds:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            try:
                self._socket.sendmsg(parts, rights, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._unsent.popleft()
            for fd in fds:
                os.close(fd)

    # ---- receiving ----

    def wait(self, seconds):
        """Wait for a message or the end, at most so long; whether there is one."""
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def receive(self, wait=True):
        """The next (kind, object); None if there is none and `wait` is False.

        Raises:
            EOFError: the other side is gone.
        """
        flags = socket.MSG_CMSG_CLOEXEC | (0 if wait else socket.MSG_DONTWAIT)
        while True:
            try:
                count, rights, _, _ = self._socket.recvmsg_into(
                    [self._scratch], socket.CMSG_SPACE(253 * _INT.itemsize), flags
                )
            except BlockingIOError:
                return None
            except OSError as error:
                raise EOFError from error
            if count == 0:
                raise EOFError
            fds = array.array("i")
            for _, _, content in rights:
                fds.frombytes(content[: len(content) // fds.itemsize * fds.itemsize])
            message = self._read(bytearray(memoryview(self._scratch)[:count]), fds.tolist())
            if message is not None:
                return message

    def _read(self, message, fds):
        length = int.from_bytes(message[:4], "little")
        (kind, returned, dropped, blocks, memories, buffers, end, number, size) = marshal.loads(
            memoryview(message)[4:]
        )
        borrower = self._borrower
        borrower.forget(dropped)
        for (name, nbytes), fd in zip(blocks, fds, strict=False):
            if name < 0:
                self.lender.adopt(-name, nbytes, fd)
            else:
                borrower.add(name, SpareBlock(nbytes, fd))
        self.lender.take_back(returned)
        if kind is None:
            return None
        shared = fds[len(blocks) :]
        # All of them are taken, so that they go back whatever becomes of the message.
        lent = {}
        for how, place, nbytes, *_ in (*memories, *buffers):
            if how == "lent":
                lent[place] = borrower.borrow(place, nbytes)
        body = memoryview(message)[_align(4 + length) :]
        if number:
            body = borrower.borrow(number, size)
        before = getattr(_context, "unpacker", None)
        _context.unpacker = unpacker = _Unpacker(memories, body, lent, shared)
        try:
            offered = [unpacker.bytes(*buffer) for buffer in buffers]
            return kind, pickle.loads(body[:end], buffers=offered)
        finally:
            _context.unpacker = before
            for fd in shared:
                os.close(fd)
