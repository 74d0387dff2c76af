"""The GGUF format: a file of metadata and named tensors, as llama.cpp and its kin read them.

Tensors may have their numbers packed in blocks (Q8_0, Q4_0, Q4_K, Q6_K): those become weights whose
`dequantize()` gives the numbers, which linear layers and embeddings read as they are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight.ao._gguf_weights import Panels, Stored
from rushlight.ao._integer_weights import IntegerWeight, wrap

__all__ = ["load", "save"]

_MAGIC, _VERSION, _ALIGNMENT = b"GGUF", 3, 32
_STRING, _ARRAY = 8, 9

# The numbers of types of values, with letters of `struct`.
_VALUES = {
    rushlight.uint8: (0, "B"),
    rushlight.int8: (1, "b"),
    rushlight.uint16: (2, "H"),
    rushlight.int16: (3, "h"),
    rushlight.uint32: (4, "I"),
    rushlight.int32: (5, "i"),
    rushlight.float32: (6, "f"),
    rushlight.bool: (7, "?"),
    rushlight.uint64: (10, "Q"),
    rushlight.int64: (11, "q"),
    rushlight.float64: (12, "d"),
}
# The numbers of types of tensors.
_TENSORS = {
    rushlight.float32: 0,
    rushlight.float16: 1,
    "Q4_0": 2,
    "Q8_0": 8,
    "Q4_K": 12,
    "Q6_K": 14,
    rushlight.int8: 24,
    rushlight.int16: 25,
    rushlight.int32: 26,
    rushlight.int64: 27,
    rushlight.float64: 28,
    rushlight.bfloat16: 30,
}


def load(path: Any, *, mmap: bool = True) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Load a file: its metadata, and its tensors by name.

    Values of the metadata are numbers, bools and strings; arrays of strings are lists, and arrays
    of numbers tensors. Nothing that the file says is trusted: sizes, places and lengths are checked
    before anything is made.

    Args:
        path: a path, or the bytes of a file.
        mmap: map the file: tensors are read when they are used, and written to memory only.

    Raises:
        RuntimeError: the file is damaged, or has tensors of a type that is not known.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.gguf")
        >>> torch.gguf.save(path, {"general.name": "small"}, {"bias": torch.tensor([4.0])})
        >>> torch.gguf.load(path)
        ({'general.name': 'small'}, {'bias': tensor([4.])})
    """
    given = path if isinstance(path, (bytes, bytearray, memoryview)) else os.fsdecode(path)
    metadata, tensors = _C._load_gguf(given, mmap)
    found = {}
    for name, tensor, blocks in tensors:
        found[name] = tensor if blocks is None else wrap(Stored(tensor, blocks), rushlight.float32)
    return dict(metadata), found


# ---- writing ----


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def _dtype_of_numbers(values: Sequence[Any]) -> Any:
    """The narrowest type that files usually have for such numbers."""
    if all(isinstance(v, bool) for v in values):
        return rushlight.bool
    if any(isinstance(v, float) for v in values):
        return rushlight.float32
    low, high = min(values), max(values)
    if low < 0:
        return rushlight.int32 if low >= -(1 << 31) and high < 1 << 31 else rushlight.int64
    return rushlight.uint32 if high < 1 << 32 else rushlight.uint64


def _numbers(values: Sequence[Any], dtype: Any, *count: int) -> bytes:
    """The type of numbers, how many there are, where that is said, and the numbers."""
    kind, letter = _VALUES[dtype]
    head = struct.pack("<I" + "Q" * len(count), kind, *count)
    return head + struct.pack(f"<{len(values)}{letter}", *values)


def _value(key: str, value: Any) -> bytes:
    """A value with its type in front."""
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, (bool, int, float)):
        return _numbers([value], _dtype_of_numbers([value]))
    if isinstance(value, Tensor) and value.dim() <= 1 and value.dtype in _VALUES:
        if value.dim() == 0:
            return _numbers([value.item()], value.dtype)
        return struct.pack("<I", _ARRAY) + _numbers(value.tolist(), value.dtype, len(value))
    if isinstance(value, (list, tuple)):
        head = struct.pack("<I", _ARRAY)
        if all(isinstance(v, str) for v in value):
            count = struct.pack("<IQ", _STRING, len(value))
            return head + count + b"".join(map(_text, value))
        if all(isinstance(v, (bool, int, float)) for v in value):
            return head + _numbers(value, _dtype_of_numbers(value), len(value))
    raise TypeError(
        f"gguf.save: the value {key!r} must be a number, a string, a list of one of them or a "
        f"tensor of at most one dimension, not {value!r:.80}"
    )


def _stored(name: str, tensor: Any) -> tuple[Any, Tensor]:
    """The type of a tensor, and what has its bytes."""
    layout = getattr(tensor, "_layout", None) if isinstance(tensor, IntegerWeight) else None
    if isinstance(layout, (Stored, Panels)):
        stored = layout.stored()
        return stored.format, stored.blocks
    if layout is not None or not isinstance(tensor, Tensor) or tensor.dtype not in _TENSORS:
        about = getattr(tensor, "dtype", type(tensor).__name__)
        if layout is not None:
            about = f"{layout.about}; its dequantize() can be written"
        raise TypeError(f"gguf.save: files cannot hold {name!r}, which is of {about}")
    return tensor.dtype, tensor.detach()


def _alignment(metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if type(alignment) is not int or alignment & (alignment - 1) or not 8 <= alignment <= 1 << 20:
        raise ValueError(
            f"gguf.save: general.alignment must be a power of two from 8 to 2**20, not {alignment}"
        )
    return alignment


def save(path: Any, metadata: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a file; an existing one is replaced in one step.

    Integers of the metadata are written as uint32 where they fit, and else as int32, uint64 or
    int64; floats as float32. A tensor without dimensions is a number of its own dtype, and one with
    one an array.

    Args:
        path: a path.
        metadata: numbers, bools, strings, lists of one of them, and tensors, by name.
        tensors: tensors of float32, float16, bfloat16, float64 and int8 to int64, and weights in
            blocks as `load` gives them, of at most four dimensions.

    Raises:
        TypeError: files cannot hold a value or a tensor.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "net.gguf")
        >>> torch.gguf.save(path, {"words": ["a", "b"]}, {"weight": torch.ones(2, 3)})
        >>> torch.gguf.load(path)[1]["weight"].shape
        torch.Size([2, 3])
    """
    alignment = _alignment(metadata)
    header = [_MAGIC, struct.pack("<IQQ", _VERSION, len(tensors), len(metadata))]
    header += [_text(key) + _value(key, value) for key, value in metadata.items()]
    bytes_of = []
    at = 0
    for name, tensor in tensors.items():
        kind, stored = _stored(name, tensor)
        if tensor.dim() > 4:
            raise ValueError(f"gguf.save: {name!r} has {tensor.dim()} dimensions, more than four")
        sizes = struct.pack(f"<I{tensor.dim()}Q", tensor.dim(), *reversed(tensor.shape))
        header.append(_text(name) + sizes + struct.pack("<IQ", _TENSORS[kind], at))
        bytes_of.append(stored)
        at += -(-stored.nbytes // alignment) * alignment
    _C._save_gguf(os.fsdecode(os.fspath(path)), b"".join(header), bytes_of, alignment)
