"""`UntypedStorage`, and the names of storages with a dtype in saved files (`FloatStorage`)."""

from typing import Any

from rushlight import _C

UntypedStorage = _C.UntypedStorage


class _StorageName:
    """A dtype under the name that files use. Storages here have no dtype, so it makes none."""

    dtype: _C.dtype

    def __new__(cls, *args, **kwargs):
        raise TypeError(
            f"{cls.__name__} is a name in saved files; storages are UntypedStorage, without a dtype"
        )


NAMES: dict[str, Any] = {
    name: type(name, (_StorageName,), {"dtype": dtype, "__module__": "rushlight"})
    for name, dtype in {
        "FloatStorage": _C.float32,
        "DoubleStorage": _C.float64,
        "HalfStorage": _C.float16,
        "BFloat16Storage": _C.bfloat16,
        "LongStorage": _C.int64,
        "IntStorage": _C.int32,
        "ShortStorage": _C.int16,
        "CharStorage": _C.int8,
        "ByteStorage": _C.uint8,
        "BoolStorage": _C.bool,
        "ComplexFloatStorage": _C.complex64,
        "ComplexDoubleStorage": _C.complex128,
    }.items()
}
globals().update(NAMES)
OF_DTYPE = {kind.dtype: kind for kind in NAMES.values()}


class TypedStorage:
    """A storage with the dtype that a file gave it; what tensors are rebuilt from.

    Args:
        untyped: the bytes.
        dtype: what they are.
    """

    def __init__(self, untyped, dtype):
        self.untyped = untyped
        self.dtype = dtype
