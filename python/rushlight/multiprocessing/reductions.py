"""How tensors are sent to other processes: as file descriptors of shared memory.

The memory is an anonymous file, which is gone with the last process that maps it.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._parameter import Parameter
from rushlight.sparse._parts import sparse_parts

__all__ = [
    "StorageWeakRef",
    "init_reductions",
    "is_shared",
    "memory_of_file",
    "rebuild_tensor",
    "reduce_tensor",
    "share_memory_",
    "share_storage_",
    "shared_file",
]


class StorageWeakRef:
    """A weak reference to a storage; references to the same storage are equal.

    Args:
        storage: what `untyped_storage()` gives, or a `TypedStorage`.

    Example:
        >>> from rushlight.multiprocessing.reductions import StorageWeakRef
        >>> x = torch.ones(2)
        >>> seen = StorageWeakRef(x.untyped_storage())
        >>> del x
        >>> seen.expired()
        True
    """

    __slots__ = ["_free_weak_ref", "cdata"]

    def __init__(self, storage: Any) -> None:
        self.cdata = storage._weak_ref()
        self._free_weak_ref = _C.StorageBase._free_weak_ref  # still there at the end of Python

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """Take over the result of `storage._weak_ref()`."""
        made = cls.__new__(cls)
        made.cdata = cdata
        made._free_weak_ref = _C.StorageBase._free_weak_ref
        return made

    def expired(self) -> bool:
        """Whether the storage has been freed."""
        return _C.StorageBase._expired(self.cdata)

    def __del__(self) -> None:
        self._free_weak_ref(self.cdata)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


class _Block(mmap.mmap):
    """Shared memory and the file descriptor that stands for it."""

    fd: int

    @classmethod
    def of_file(cls, fd: int, nbytes: int) -> _Block:
        block = cls(fd, nbytes)
        block.fd = fd
        weakref.finalize(block, os.close, fd)
        return block


# The blocks that are mapped, by their address, and those of other processes by their file.
_blocks: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()
_files: weakref.WeakValueDictionary[tuple[int, int], _Block] = weakref.WeakValueDictionary()


def _memory_of(block: _Block) -> Tensor:
    """All of a block as bytes; it lives as long as the tensor."""
    memory = rushlight.frombuffer(block, dtype=rushlight.uint8)
    _blocks[memory.data_ptr()] = block
    return memory


def _new_block(nbytes: int) -> _Block:
    fd = os.memfd_create("rushlight")
    os.ftruncate(fd, nbytes)
    return _Block.of_file(fd, nbytes)


def _block_of(tensor):
    """The block that a tensor lies in, or None."""
    return _blocks.get(tensor.untyped_storage().data_ptr())


def shared_file(tensor: Tensor):
    """The file descriptor of a tensor's shared memory; None for other memory.

    Args:
        tensor: the tensor.

    For an example see `multiprocessing.reductions.memory_of_file`.
    """
    block = _block_of(tensor)
    return None if block is None else block.fd


def memory_of_file(fd: int, nbytes: int):
    """The memory of a file descriptor, which is mapped once, however often it is received.

    Args:
        fd: the number of the file in this process.
        nbytes: how much of it is mapped.

    Example:
        >>> from rushlight.multiprocessing import reductions
        >>> x = reductions.share_memory_(torch.arange(3, dtype=torch.uint8))
        >>> reductions.memory_of_file(reductions.shared_file(x), 3)
        tensor([0, 1, 2], dtype=torch.uint8)
    """
    status = os.fstat(fd)
    file = (status.st_dev, status.st_ino)
    block = _files.get(file)
    if block is None or len(block) != nbytes:
        block = _Block.of_file(os.dup(fd), nbytes)
        _files[file] = block
    return _memory_of(block)


def is_shared(tensor: Tensor) -> bool:
    """Whether other processes may see a tensor's memory.

    Args:
        tensor: the tensor.

    For an example see `multiprocessing.reductions.share_memory_`.
    """
    if tensor.layout is not _C.strided:
        return all(map(is_shared, sparse_parts(tensor)))
    return tensor.device.type != "cpu" or _block_of(tensor) is not None


def share_storage_(storage: Any):
    """Move a storage to shared memory, with all tensors on it.

    Args:
        storage: the storage.

    Raises:
        RuntimeError: it is not on the CPU.

    For an example see `multiprocessing.reductions.share_memory_`.
    """
    if storage.device.type != "cpu":
        raise RuntimeError(f"share_memory_: only available on CPU, not on {storage.device}")
    if _blocks.get(storage.data_ptr()) is None:
        storage._move_to(_memory_of(_new_block(max(storage.nbytes(), 1))).untyped_storage())


def share_memory_(tensor: Tensor) -> Tensor:
    """Move a tensor to shared memory, in place, with all tensors on its storage.

    Args:
        tensor: the tensor.

    Example:
        >>> from rushlight.multiprocessing import reductions
        >>> x = torch.ones(2)
        >>> reductions.is_shared(x), reductions.is_shared(reductions.share_memory_(x))
        (False, True)
    """
    if tensor.layout is not _C.strided:
        for part in sparse_parts(tensor):
            share_memory_(part)
        return tensor
    if tensor.device.type == "cpu":
        share_storage_(tensor.untyped_storage())
    return tensor


def rebuild_tensor(
    cls: type,
    handle: Any,
    nbytes: int,
    dtype: rushlight.dtype,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    requires_grad: bool,
):
    """The tensor on shared memory that another process has sent.

    Args:
        cls: `Tensor` or `Parameter`.
        handle: what the file of the memory was sent as; None: there are no elements.
        nbytes: the size of the memory.
        dtype: the dtype.
        size: the shape.
        stride: the strides.
        offset: where in memory it begins, in elements.
        requires_grad: whether gradients are recorded.

    For an example see `multiprocessing.reductions.reduce_tensor`.
    """
    if handle is None:
        tensor = rushlight.empty(size, dtype=dtype)
    else:
        memory = _memory_of(_Block.of_file(handle.detach(), nbytes))
        tensor = _C._tensor_on(memory.untyped_storage(), dtype, offset, size, stride)
    if cls is Parameter:
        return Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and arguments that rebuild a tensor in another process.

    Args:
        tensor: the tensor, which moves to shared memory.

    Raises:
        RuntimeError: it is the result of a recorded op.

    Example:
        >>> from rushlight.multiprocessing.reductions import reduce_tensor
        >>> rebuild, arguments = reduce_tensor(torch.ones(2, 3))
        >>> rebuild.__name__, arguments[4]
        ('rebuild_tensor', (2, 3))
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor that requires gradients: its graph "
            "stays in this process. detach() gives what can be sent"
        )
    if tensor.device.type != "cpu" or tensor.layout is not _C.strided:
        return tensor.__reduce_ex__(2)  # of a sparse one: its parts, which are tensors
    share_memory_(tensor)
    block = _block_of(tensor)
    handle = None if block is None else reduction.DupFd(block.fd)
    return rebuild_tensor, (
        type(tensor),
        handle,
        tensor.untyped_storage().nbytes(),
        tensor.dtype,
        tuple(tensor.size()),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
    )


def init_reductions():
    """Let multiprocessing's pickler send tensors in shared memory; ordinary pickles contain
    values.

    For an example see `multiprocessing.reductions.share_memory_`.
    """
    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
