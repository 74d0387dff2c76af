"""Where parts of distributed tensors lie."""

from __future__ import annotations

from rushlight.distributed.tensor._spec import local_shape_and_offset

__all__ = ["compute_local_shape", "compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """The shape of this process's piece, and where in each dimension it begins.

    Args:
        global_shape: the shape of the whole tensor.
        mesh: the mesh of the tensor.
        placements: one for each dimension of the mesh.
    """
    return local_shape_and_offset(global_shape, mesh, placements)


def compute_local_shape(global_shape, mesh, placements):
    """The shape of this process's piece; arguments as above."""
    return local_shape_and_offset(global_shape, mesh, placements)[0]
