"""Device meshes, under the name of distributed tensors."""

from __future__ import annotations

from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
