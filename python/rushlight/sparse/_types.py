"""Sparse types by name, as older programs make tensors: `sparse.FloatTensor(indices, values)`."""

from __future__ import annotations

from typing import Any

from rushlight import _C, _KINDS, Tensor
from rushlight._names.legacy import _TensorType
from rushlight._warnings import warn
from rushlight.sparse._make import sparse_coo_tensor

__all__ = ["TYPES"]


def legacy_sparse(dtype: _C.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """A COO tensor of indices, values and perhaps a size, or of sizes, without entries."""
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, **kwargs)
    size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
    return sparse_coo_tensor(size, dtype=dtype, **kwargs)


class _SparseType(_TensorType):
    """The class of `sparse.FloatTensor` and its like: calling one makes a COO tensor."""

    layout = _C.sparse_coo

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """Of indices (dims, n), values and perhaps a size; of a size alone, without entries.

        Values keep their dtype, as with PyTorch.
        """
        warn(f"torch.sparse.{cls.__name__}() is deprecated. Please use torch.sparse_coo_tensor()")
        return legacy_sparse(cls.dtype, args, kwargs)

    def _text(cls) -> str:
        return f"torch.sparse.{cls.__name__}"


TYPES = {
    f"{kind}Tensor": _SparseType(
        f"{kind}Tensor", (), {"dtype": dtype, "place": "cpu", "__module__": "rushlight.sparse"}
    )
    for kind, dtype in _KINDS.items()
    if not kind.startswith(("Bool", "Complex"))
}
globals().update(TYPES)
