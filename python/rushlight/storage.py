"""`UntypedStorage`, and the names of storages with a dtype in saved files (`FloatStorage`)."""

from typing import Any

from rushlight import _C, _KINDS

UntypedStorage = _C.UntypedStorage


class _StorageName:
    """A dtype under the name that files use. Storages here have no dtype, so it makes none."""

    dtype: _C.dtype

    def __new__(cls, *args, **kwargs):
        raise TypeError(
            f"{cls.__name__} is a name in saved files; storages are UntypedStorage, without a dtype"
        )


NAMES: dict[str, Any] = {
    f"{kind}Storage": type(
        f"{kind}Storage", (_StorageName,), {"dtype": dtype, "__module__": "rushlight"}
    )
    for kind, dtype in _KINDS.items()
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
