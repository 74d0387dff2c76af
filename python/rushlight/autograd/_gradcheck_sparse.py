"""Gradients of functions of sparse tensors, checked as those of functions of their values.

A sparse tensor that requires a gradient is taken apart: what is moved, and has the gradient, are
its values; the function is given a sparse tensor made of them. Where a check is not masked, places
without an entry count too, so the tensor is given an entry at each place.
"""

from __future__ import annotations

import rushlight
from rushlight import _C

_COMPRESSED = {
    rushlight.sparse_csr: ("crow_indices", "col_indices"),
    rushlight.sparse_csc: ("ccol_indices", "row_indices"),
    rushlight.sparse_bsr: ("crow_indices", "col_indices"),
    rushlight.sparse_bsc: ("ccol_indices", "row_indices"),
}


def is_sparse(value):
    return isinstance(value, _C.TensorBase) and value.layout != rushlight.strided


def with_values(pattern: rushlight.Tensor, values: rushlight.Tensor) -> rushlight.Tensor:
    """A sparse tensor with entries where `pattern`, a coalesced one, has them."""
    if pattern.layout == rushlight.sparse_coo:
        return rushlight.sparse_coo_tensor(
            pattern.indices(), values, pattern.shape, is_coalesced=True
        )
    first, second = (getattr(pattern, name)() for name in _COMPRESSED[pattern.layout])
    return rushlight.sparse_compressed_tensor(
        first, second, values, pattern.shape, layout=pattern.layout
    )


def to_dense(tensor):
    return tensor.to_dense() if is_sparse(tensor) else tensor


def _with_all_entries(tensor: rushlight.Tensor) -> rushlight.Tensor:
    blocksize = None
    if tensor.layout in (rushlight.sparse_bsr, rushlight.sparse_bsc):
        batch = tensor.dim() - tensor.sparse_dim() - tensor.dense_dim()
        blocksize = tuple(tensor.values().shape[batch + 1 : batch + 3])
    everywhere = rushlight.ones(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    mask = everywhere.to_sparse(
        layout=tensor.layout, blocksize=blocksize, dense_dim=tensor.dense_dim()
    )
    full = tensor.to_dense().sparse_mask(mask)
    if tensor.layout == rushlight.sparse_coo:
        return full
    first, second = _COMPRESSED[tensor.layout]
    dtype = getattr(tensor, first)().dtype
    return rushlight.sparse_compressed_tensor(
        getattr(full, first)().to(dtype),
        getattr(full, second)().to(dtype),
        full.values(),
        full.shape,
        layout=full.layout,
    )


def of_values(func, inputs, masked):
    """`func` and `inputs` where the values of sparse inputs stand for them, outputs dense."""
    patterns = {}
    parameters = list(inputs)
    for i, value in enumerate(inputs):
        if is_sparse(value) and value.requires_grad:
            pattern = value.detach() if masked else _with_all_entries(value.detach())
            patterns[i] = pattern.coalesce() if pattern.layout == rushlight.sparse_coo else pattern
            parameters[i] = patterns[i].values().clone().requires_grad_()

    def of_parameters(*arguments):
        given = list(arguments)
        for i, pattern in patterns.items():
            given[i] = with_values(pattern, given[i])
        results = func(*given)
        if isinstance(results, _C.TensorBase):
            return to_dense(results)
        return tuple(map(to_dense, results))

    return of_parameters, tuple(parameters)
