"""DLPack: tensors to and from numpy, CuPy, JAX and others without copying."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor
    from rushlight.types import Device

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The device types with DLPack's numbers.

    Example:
        >>> torch.utils.dlpack.DLDeviceType.kDLCPU
        <DLDeviceType.kDLCPU: 1>
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that shares the tensor's memory; it can be consumed once.

    Raises:
        BufferError: for tensors that are not on the CPU.

    Args:
        tensor: the tensor.

    Example:
        >>> capsule = torch.utils.dlpack.to_dlpack(torch.tensor([1, 2]))
        >>> torch.utils.dlpack.from_dlpack(capsule)
        tensor([1, 2])
    """
    return _C._to_dlpack(tensor, False, False)


def _dlpack(tensor, stream, max_version, dl_device, copy):
    """`Tensor.__dlpack__`."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError(f"stream should be None on {tensor.device}, but got {stream}")
    here = _dlpack_device(tensor) if tensor.device.type != "meta" else None
    if dl_device is not None and here is not None and tuple(dl_device) != here:
        raise BufferError(
            f"cannot export a tensor on {tensor.device} to the DLPack device {tuple(dl_device)}"
        )
    if copy:
        tensor = tensor.clone()
    versioned = max_version is not None and max_version[0] >= 1
    return _C._to_dlpack(tensor, versioned, bool(copy))


def _dlpack_device(tensor):
    """`Tensor.__dlpack_device__`: the kind and the number of its device."""
    kind = tensor.device.type
    if kind == "cpu":
        return DLDeviceType.kDLCPU, 0
    if kind == "cuda":
        return DLDeviceType.kDLCUDA, tensor.device.index or 0
    raise ValueError(f"Unknown device type {kind} for Dlpack")


def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an object with `__dlpack__`, or of a capsule.

    Args:
        device: must be the device of the tensor.
        copy: True for a copy, False for an error where one would be needed.
        ext_tensor: an object with `__dlpack__`, or a capsule.

    What may only be read is copied (with copy=False: BufferError).

    Example:
        >>> import numpy
        >>> torch.from_dlpack(numpy.arange(3))
        tensor([0, 1, 2])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported for a capsule: pass what it was made of"
            )
        return _C._from_dlpack(ext_tensor, True)
    kwargs: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        kwargs["copy"] = copy
    if device is not None:
        kwargs["dl_device"] = _dlpack_device(rushlight.empty(0, device=device))
    try:
        capsule = ext_tensor.__dlpack__(**kwargs)
    except TypeError:  # of the time before versions
        kwargs.pop("max_version")
        capsule = ext_tensor.__dlpack__(**kwargs)
    return _C._from_dlpack(capsule, copy is not False)
