"""The dense tensors that a sparse tensor consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from rushlight import Tensor


def sparse_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Indices and values of a sparse tensor: what it is made of."""
    if tensor.layout is _C.sparse_coo:
        return tensor._indices(), tensor._values()
    by_row = tensor.layout in (_C.sparse_csr, _C.sparse_bsr)
    names = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
    return (*(getattr(tensor, name)() for name in names), tensor.detach().values())
