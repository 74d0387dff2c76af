"""GPUs as devices: their number, the current one, and their properties."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.cuda import _library as lib

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = [
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "set_device",
    "synchronize",
]


def device_count():
    """The number of GPUs that can be used; 0 without a driver, or in a build without CUDA.

    Where the library of CUDA kernels is there and cannot be loaded, a warning says why.

    Example:
        >>> torch.cuda.device_count() >= 0
        True
    """
    if not lib.is_built():
        return 0
    try:
        return lib.function("device_count")()
    except RuntimeError as error:
        warn(str(error))
        return 0


def is_available():
    """Whether a GPU can be used. Never raises.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return device_count() > 0


def is_initialized():
    """Whether the CUDA library has been loaded.

    Example:
        >>> isinstance(torch.cuda.is_initialized(), bool)
        True
    """
    return lib._library.cache_info().currsize > 0


def init():
    """Load the CUDA library; otherwise its first use loads it.

    AssertionError in a build without CUDA, RuntimeError without a driver or a GPU.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.init()
    """
    lib.require()


def call_when_initialized(function: Callable[[], Any], **kwargs: Any) -> None:
    """Call a function once the CUDA library is loaded; this loads the library and calls at once.

    Without a GPU it is never loaded, and the function never called.
    """
    if is_available():
        init()
        function()


def index_of(device):
    """The index of a GPU that is given as None (the current one), an index, a string or a
    device.
    """
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device < 0 else device
    place = rushlight.device(device)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return current_device() if place.index is None else place.index


def current_device() -> int:
    """The index of the GPU that "cuda" means on this thread.

    Example:
        >>> torch.cuda.current_device() if torch.cuda.is_available() else None
    """
    lib.require()
    return _C._current_device("cuda")


def set_device(device: Device) -> None:
    """Make a GPU the current one of this thread; a negative index is a no-op.

    Args:
        device: an index, a device or its name.

    Example:
        >>> torch.cuda.set_device(-1)
    """
    if not (isinstance(device, int) and device < 0):
        _C._set_device(rushlight.device("cuda", index_of(device)))


class device:
    """A context manager in which a GPU is the current one; None and negative indices are no-ops.

    Args:
        device: an index, a device or its name.

    Example:
        >>> with torch.cuda.device(-1):
        ...     pass
    """

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None or device == -1 else index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)
        return self

    def __exit__(self, *error):
        if self.idx >= 0:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """`device` for the GPU of a tensor; a no-op for a CPU tensor.

    Args:
        obj: the tensor.

    Example:
        >>> with torch.cuda.device_of(torch.ones(2)):
        ...     pass
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else None)


def synchronize(device: Device = None):
    """Wait until a GPU has done all its work.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.synchronize()
    """
    _C._synchronize(rushlight.device("cuda", index_of(device)))


def get_device_name(device: Device = None) -> str:
    """The name of a GPU.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> name = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    """
    room = ctypes.create_string_buffer(256)
    lib.call("name", index_of(device), room, len(room))
    return room.value.decode()


class _CudaDeviceProperties(NamedTuple):
    """What a GPU is; the order is that of rushlight_cuda_properties."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    warp_size: int
    L2_cache_size: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_multiprocessor: int
    is_integrated: int
    is_multi_gpu_board: int


def get_device_properties(device: Device = None):
    """The name, compute capability, memory and processors of a GPU.

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> properties = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
    """
    index = index_of(device)
    values = (ctypes.c_int64 * (len(_CudaDeviceProperties._fields) - 1))()
    lib.call("properties", index, values)
    return _CudaDeviceProperties(get_device_name(index), *values)


def get_device_capability(device: Device = None):
    """The compute capability of a GPU as (major, minor).

    Args:
        device: the GPU; the current one if None.

    Example:
        >>> capability = torch.cuda.get_device_capability() if torch.cuda.is_available() else None
    """
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether one GPU can read the memory of another directly.

    Args:
        device: the number of the GPU that reads.
        peer_device: the number of the other one.

    Example:
        >>> if torch.cuda.device_count() > 1:
        ...     print(torch.cuda.can_device_access_peer(0, 1))
    """
    return bool(lib.ask("can_access_peer", ctypes.c_int, index_of(device), index_of(peer_device)))


def is_bf16_supported(including_emulation: bool = True):
    """Whether there is a GPU that computes in bfloat16.

    Args:
        including_emulation: whether it counts that kernels compute in float32.

    Example:
        >>> isinstance(torch.cuda.is_bf16_supported(), bool)
        True
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def get_arch_list() -> list[str]:
    """The architectures of this build's kernels ("sm_90") and PTX ("compute_80"); empty without a
    GPU.

    Example:
        >>> isinstance(torch.cuda.get_arch_list(), list)
        True
    """
    if not is_available():
        return []
    found = []
    for name in lib.text("arch_list").split():
        number, _, kind = name.partition("-")
        found += [f"compute_{number}"] if kind != "real" else []
        found += [f"sm_{number}"] if kind != "virtual" else []
    return sorted(found)
