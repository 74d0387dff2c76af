"""Where the pieces of a distributed tensor lie, under PyTorch's name of this module."""

from __future__ import annotations

from rushlight.distributed.tensor._spec import DTensorSpec, TensorMeta

__all__ = ["DTensorSpec", "TensorMeta"]
