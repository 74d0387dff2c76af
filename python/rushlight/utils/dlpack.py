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
        BufferError: for tensors that are not on the CPU, or have no memory of their own.

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
    if copy is not None and type(copy) is not bool:
        raise TypeError(f"__dlpack__(): argument 'copy' must be bool, not {type(copy).__name__}")
    if dl_device is not None:
        _check_dl_device(tensor, dl_device)
    versioned = max_version is not None and max_version[0] >= 1
    return _C._to_dlpack(tensor.clone() if copy else tensor, versioned, bool(copy))


def _check_dl_device(tensor, dl_device):
    """BufferError where it is not the tensor's; all memory of processors is one device."""
    pair = isinstance(dl_device, tuple) and len(dl_device) == 2
    if not pair or not all(isinstance(n, int) for n in dl_device):
        raise TypeError(
            "__dlpack__(): argument 'dl_device' must be a tuple of two ints, the type and the "
            f"number of a device, not {dl_device!r}"
        )
    if tensor.device.type == "meta":
        return  # which cannot be packed at all
    here = _dlpack_device(tensor)
    if dl_device[0] != here[0] or (here[0] != DLDeviceType.kDLCPU and dl_device[1] != here[1]):
        raise BufferError(
            f"cannot export a tensor on {tensor.device} to the DLPack device {tuple(dl_device)}"
        )


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
        if not isinstance(device, (str, _C.device)):
            raise AssertionError(
                f"from_dlpack: unsupported device type: {type(device).__name__}; it is a "
                "torch.device or its name"
            )
        place = rushlight.empty(0, device=device)
        if place.is_meta:
            raise BufferError("from_dlpack: no memory can be packed on meta")
        kwargs["dl_device"] = _dlpack_device(place)
    try:
        capsule = ext_tensor.__dlpack__(**kwargs)
    except TypeError:  # of the time before versions
        kwargs.pop("max_version")
        capsule = ext_tensor.__dlpack__(**kwargs)
    return _C._from_dlpack(capsule, copy is not False)
