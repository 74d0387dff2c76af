"""What dtypes and tensors are in ONNX; the one place that imports the package `onnx`."""

from __future__ import annotations

import importlib
from typing import Any

import rushlight
from rushlight import Tensor

# By dtype: TensorProto.DataType, as the format numbers them.
ELEMENT_TYPES = {
    rushlight.float32: 1,
    rushlight.uint8: 2,
    rushlight.int8: 3,
    rushlight.uint16: 4,
    rushlight.int16: 5,
    rushlight.int32: 6,
    rushlight.int64: 7,
    rushlight.bool: 9,
    rushlight.float16: 10,
    rushlight.float64: 11,
    rushlight.uint32: 12,
    rushlight.uint64: 13,
    rushlight.bfloat16: 16,
    rushlight.float8_e4m3fn: 17,
    rushlight.float8_e4m3fnuz: 18,
    rushlight.float8_e5m2: 19,
    rushlight.float8_e5m2fnuz: 20,
}
DTYPES = {number: dtype for dtype, number in ELEMENT_TYPES.items()}


def onnx_package() -> Any:
    """The `onnx` package, which writes and checks the files.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "torch.onnx needs the package `onnx`, which is not installed: pip install onnx"
        ) from error


def element_type(dtype: rushlight.dtype) -> int:
    """The number of a dtype in ONNX.

    Raises:
        TypeError: ONNX has no such dtype.
    """
    if dtype not in ELEMENT_TYPES:
        raise TypeError(f"ONNX has no element type for {dtype}")
    return ELEMENT_TYPES[dtype]


def raw_bytes(tensor: Tensor) -> bytes:
    """The elements of a tensor in order, as ONNX stores them (little-endian)."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(rushlight.uint8).numpy().tobytes() if flat.numel() else b""


def tensor_proto(name: str, tensor: Tensor) -> Any:
    """A tensor as a `TensorProto` that contains its elements."""
    proto = onnx_package().TensorProto(name=name, data_type=element_type(tensor.dtype))
    proto.dims.extend(tensor.shape)
    proto.raw_data = raw_bytes(tensor)
    return proto
