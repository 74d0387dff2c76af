"""`rushlight.cuda` of a build without CUDA.

Programs ask `is_available()` and go on with the CPU; seeding and emptying the cache are harmless
without a GPU, everything that needs one raises AssertionError as PyTorch's CPU build does.
"""

from rushlight import _C

__all__ = [
    "OutOfMemoryError",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "synchronize",
]

OutOfMemoryError = _C.OutOfMemoryError


def is_available():
    """Whether a GPU can be used: False."""
    return False


def device_count():
    """The number of GPUs: 0."""
    return 0


def is_initialized():
    """Whether CUDA has been used: False."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether a GPU computes in bfloat16: False."""
    return False


def _without_gpu(*args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled")


init = _without_gpu
current_device = _without_gpu
set_device = _without_gpu
synchronize = _without_gpu
get_device_name = _without_gpu
get_device_capability = _without_gpu
get_device_properties = _without_gpu


def manual_seed(seed):
    """Seeds the current GPU, if there is one."""


def manual_seed_all(seed):
    """Seeds all GPUs there are."""


def seed():
    """Gives the current GPU, if there is one, a random seed."""


def seed_all():
    """Gives all GPUs there are a random seed."""


def empty_cache():
    """Gives cached memory of the GPU back, if there is one."""


def reset_peak_memory_stats(device=None):
    """Forgets the peaks of `memory_stats`."""


def memory_stats(device=None):
    """Counters of the GPU's allocator: none."""
    return {}


def memory_allocated(device=None):
    """Bytes that tensors have on the GPU: 0."""
    return 0


max_memory_allocated = memory_allocated
memory_reserved = memory_allocated
max_memory_reserved = memory_allocated
