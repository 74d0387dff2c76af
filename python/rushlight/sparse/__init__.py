"""Functions of sparse tensors; docs/sparse.md lists what is supported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._lazy import lazy
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

_OLD_TYPES = (
    "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
    "ShortTensor"
)
lazy(__name__, {"rushlight.sparse._types": _OLD_TYPES})

sampled_addmm = ops.sparse_sampled_addmm


_REDUCTIONS = {
    "sum": "sum",
    "mean": "mean",
    "amax": "amax",
    "max": "amax",
    "amin": "amin",
    "min": "amin",
}


def mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    """The matrix product of a sparse and a dense matrix.

    Args:
        reduce: instead of adding the products of an element up, "mean", "amax" or "amin" of those
            whose factor of `sparse`, a CSR matrix, is specified; 0 where there are none.
        sparse: a sparse matrix (n, m).
        dense: a matrix (m, p).

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> torch.sparse.mm(sparse, torch.tensor([[5.0], [7.0]]))
        tensor([[14.],
                [15.]])
    """
    if reduce is None:
        return ops._sparse_mm(sparse, dense)
    if reduce not in _REDUCTIONS:
        what = "sum, mean, amax or amin"
        raise RuntimeError(f"reduce argument must be either {what}, got {reduce}")
    if sparse.layout is not _C.sparse_csr:
        raise NotImplementedError(f"products are reduced of a CSR matrix, not of {sparse.layout}")
    if dense.layout is not _C.strided:
        raise RuntimeError(f"Expected tensor to have Strided Layout, but got {dense.layout}")
    if dense.dim() != 2 or dense.size(0) != sparse.size(1):
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {sparse.size(1)} but got: "
            f"dimension {dense.dim()} and tensor.size[0] = {dense.size(0)}"
        )
    if reduce == "sum":
        return ops._sparse_mm(sparse, dense)
    row, column = rushlight._convert_indices_from_csr_to_coo(
        sparse.crow_indices(), sparse.col_indices()
    )
    products = sparse.values().unsqueeze(1) * dense[column]
    empty = products.new_zeros(sparse.size(0), dense.size(1))
    return empty.scatter_reduce(
        0, row.unsqueeze(1).expand_as(products), products, _REDUCTIONS[reduce], include_self=False
    )


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2 with a sparse mat1.

    Args:
        mat: what is added, (n, p).
        mat1: a sparse matrix (n, m).
        mat2: a matrix (m, p).
        beta: the factor of `mat`.
        alpha: the factor of the product.

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0]]).to_sparse()
        >>> torch.sparse.addmm(torch.ones(1, 1), sparse, torch.tensor([[5.0], [7.0]]))
        tensor([[15.]])
    """
    return rushlight.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all specified elements, or a sparse tensor of sums over dimensions.

    Args:
        input: a sparse tensor.
        dim: a dimension or several; None: all.
        dtype: the dtype of the result; None: that of the input.

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> torch.sparse.sum(sparse)
        tensor(5.)
    """
    if isinstance(dim, int):
        dim = (dim,)
    return ops._sum_of_sparse(input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax of the specified elements along a dimension; unspecified ones are -inf.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype in which it is computed; None: that of the input.

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0], [2.0, 2.0]]).to_sparse()
        >>> torch.sparse.softmax(sparse, 1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    return ops._softmax_of_sparse(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype in which it is computed; None: that of the input.

    Example:
        >>> sparse = torch.tensor([[0.0, 2.0], [2.0, 2.0]]).to_sparse()
        >>> torch.sparse.log_softmax(sparse, 1).values()
        tensor([ 0.0000, -0.6931, -0.6931])
    """
    return ops._log_softmax_of_sparse(input, dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix whose diagonals, named by `offsets`, are the rows of `diagonals`.

    Element j of a row stands in column j, as in SciPy.

    Args:
        diagonals: the rows, (k, n), or one, (n).
        offsets: the number of each diagonal: 0 is the main one, those above it are positive.
        shape: the size of the matrix.
        layout: `torch.sparse_coo`, `torch.sparse_csr` or `torch.sparse_csc`; None: the first.

    Example:
        >>> torch.sparse.spdiags(torch.tensor([[4, 5, 6]]), torch.tensor([1]), (3, 3)).to_dense()
        tensor([[0, 5, 0],
                [0, 0, 6],
                [0, 0, 0]])
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


def as_sparse_gradcheck(gradcheck: Any) -> Callable[..., bool]:
    """A `gradcheck` that varies the values of sparse inputs.

    Sparse inputs and outputs are replaced by their dense forms: the function is given
    `values -> sparse tensor` compositions, so that the differences are those of dense numbers.

    Args:
        gradcheck: `autograd.gradcheck`, or a function like it.

    Example:
        >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        >>> x = torch.tensor([[0.0, 2.0]], dtype=torch.float64).to_sparse().requires_grad_()
        >>> check(lambda x: x * 2, x)
        True
    """

    def check_strided(func, inputs, **kwargs):
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

    return check_strided


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
