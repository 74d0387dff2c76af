"""Functions of sparse tensors; docs/sparse.md says what there is."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._table import ops

from ._make import check_sparse_tensor_invariants

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

mm = ops._sparse_mm
sampled_addmm = ops.sparse_sampled_addmm


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2, where mat1 is sparse."""
    return rushlight.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all specified elements, or a sparse tensor of sums over dimensions."""
    if isinstance(dim, int):
        dim = (dim,)
    return ops._sum_of_sparse(input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """softmax of the specified elements along a dimension; the others count as -inf."""
    return ops._softmax_of_sparse(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Logarithm of `softmax`."""
    return ops._log_softmax_of_sparse(input, dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on the diagonals that `offsets` names.

    Element j of a row stands in column j, as in SciPy.
    """
    if diagonals.dim() == 1:
        diagonals = diagonals.unsqueeze(0)
    if offsets.dim() == 0:
        offsets = offsets.unsqueeze(0)
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(tuple(shape)) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    if len(diagonals) != len(offsets):
        raise RuntimeError(
            f"Number of diagonals ({len(diagonals)}) does not match the number of offsets "
            f"({len(offsets)})"
        )
    if len(set(offsets.tolist())) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got " + str(layout)
        )
    height, width = shape
    columns = rushlight.arange(diagonals.shape[1]).expand(diagonals.shape)
    rows = columns - offsets.unsqueeze(1)
    inside = (rows >= 0) & (rows < height) & (columns < width)
    indices = rushlight.stack([rows[inside], columns[inside]])
    made = rushlight.sparse_coo_tensor(indices, diagonals[inside], (height, width)).coalesce()
    return made if layout in (None, _C.sparse_coo) else made.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """A `gradcheck` whose sparse inputs are varied in their values.

    Sparse inputs and outputs are replaced by their dense forms: the function is given
    `values -> sparse tensor` compositions, so that the differences are those of dense numbers.
    """

    def checked(func, inputs, **kwargs):
        kwargs.pop("masked", None)
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        rebuild, dense = [], []
        for given in inputs:
            if isinstance(given, Tensor) and given.layout is not _C.strided:
                pattern = given.detach()
                pattern = pattern.coalesce() if pattern.layout is _C.sparse_coo else pattern
                values = pattern.values().clone().requires_grad_(given.requires_grad)
                dense.append(values)
                rebuild.append(lambda v, pattern=pattern: _with_values(pattern, v))
            else:
                dense.append(given)
                rebuild.append(lambda v: v)

        def on_values(*args):
            out = func(*(make(a) for make, a in zip(rebuild, args, strict=True)))
            several = isinstance(out, (tuple, list))
            outs = [
                o.to_dense() if isinstance(o, Tensor) and o.layout is not _C.strided else o
                for o in (out if several else (out,))
            ]
            return tuple(outs) if several else outs[0]

        return gradcheck(on_values, tuple(dense), **kwargs)

    return checked


def _with_values(pattern: Tensor, values: Tensor) -> Tensor:
    if pattern.layout is _C.sparse_coo:
        return rushlight.sparse_coo_tensor(
            pattern.indices(), values, pattern.shape, is_coalesced=True
        )
    first = getattr(pattern, _INDICES[pattern.layout][0])()
    second = getattr(pattern, _INDICES[pattern.layout][1])()
    return rushlight.sparse_compressed_tensor(
        first, second, values, pattern.shape, layout=pattern.layout
    )


_INDICES = {
    _C.sparse_csr: ("crow_indices", "col_indices"),
    _C.sparse_bsr: ("crow_indices", "col_indices"),
    _C.sparse_csc: ("ccol_indices", "row_indices"),
    _C.sparse_bsc: ("ccol_indices", "row_indices"),
}
