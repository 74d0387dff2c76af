"""What kind of tensor it is that is cut into boxes, or stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import rushlight

__all__ = ["TensorProperties"]

_WHERE = "rushlight.distributed.checkpoint.metadata"  # by which files mention the classes


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as they stand in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _formats():
    return {
        rushlight.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
        rushlight.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
        rushlight.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
    }


@dataclass
class TensorProperties:
    """What is to be known to make a tensor, but for its sizes.

    Args:
        dtype, layout, requires_grad, memory_format, pin_memory: those of the tensor.

    For an example see `distributed.checkpoint.save`.
    """

    dtype: Any = field(default_factory=rushlight.get_default_dtype)
    layout: Any = field(default=rushlight.strided)
    requires_grad: bool = False
    memory_format: Any = field(default=rushlight.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self):
        formats = _formats()
        if self.memory_format not in formats:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        encoded = formats[self.memory_format]
        return (self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory)

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = next(f for f, code in _formats().items() if code == encoded)

    @staticmethod
    def create_from_tensor(tensor) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            memory_format=rushlight.contiguous_format,
            pin_memory=tensor.is_pinned(),
        )


for _kind in (_MEM_FORMAT_ENCODING, TensorProperties):
    _kind.__module__ = _WHERE
