"""The forms of `Module.to`."""

from __future__ import annotations

from rushlight import _C, Tensor


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of the three forms of `Module.to`."""
    first = args[0] if args else None
    if isinstance(first, _C.dtype):
        return _to_dtype(*args, **kwargs)
    if isinstance(first, Tensor) or "tensor" in kwargs:
        return _to_tensor(*args, **kwargs)
    return _to_device(*args, **kwargs)


def _to_dtype(dtype, non_blocking=False, *, memory_format=None):
    return None, dtype, non_blocking, memory_format


def _to_tensor(tensor, non_blocking=False, *, memory_format=None):
    return tensor.device, tensor.dtype, non_blocking, memory_format


def _to_device(device=None, dtype=None, non_blocking=False, *, memory_format=None):
    if device is not None and not isinstance(device, _C.device):
        device = _C.device(device)
    return device, dtype, non_blocking, memory_format


setattr(_C._nn, "_parse_to", _parse_to)  # noqa: B010  # where PyTorch has it
