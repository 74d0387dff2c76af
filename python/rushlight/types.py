"""Type aliases for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

import rushlight
from rushlight import Size, Tensor, device, dtype, layout

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number = int | float | bool
_Number = Number
_bool = builtins.bool
_int = builtins.int
_float = builtins.float
_complex = builtins.complex
_device = device
_dtype = dtype
_layout = layout
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge = Any
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
Storage = rushlight.UntypedStorage
