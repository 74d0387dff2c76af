"""Devices in a grid: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "DeviceMesh",
    "init_device_mesh",
]

DeviceMesh = _refused.kind("DeviceMesh", __name__)
init_device_mesh = _refused.function("torch.distributed.device_mesh.init_device_mesh")
