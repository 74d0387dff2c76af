"""Comparing what tensors say of themselves, apart from their values."""

from __future__ import annotations

from collections.abc import Callable

import rushlight
from rushlight import Tensor


def assert_metadata_eq(
    assert_eq: Callable[[object, object], None],
    m1: Tensor,
    m2: Tensor,
    *,
    skip_symbolic: bool = False,
    skip_leaf: bool = False,
) -> None:
    """Call `assert_eq` with each fact of m1 and of m2: sizes, strides, dtype, flags, gradients.

    skip_symbolic: not sizes, strides and offsets. skip_leaf: not whether they are leaves.
    """

    def compare(a: Tensor, b: Tensor) -> None:
        assert_eq(a.dtype, b.dtype)
        assert_eq(a.layout, b.layout)
        if not skip_symbolic:
            assert_eq(a.shape, b.shape)
        assert_eq(a.requires_grad, b.requires_grad)
        if not skip_leaf:
            assert_eq(a.is_leaf, b.is_leaf)
        assert_eq(a.is_inference(), b.is_inference())
        assert_eq(a.is_conj(), b.is_conj())
        assert_eq(a.is_neg(), b.is_neg())
        assert_eq(a.grad is None, b.grad is None)
        if a.grad is not None and b.grad is not None:
            compare(a.grad, b.grad)
        if a.is_sparse:
            assert_eq(a.dense_dim(), b.dense_dim())
            assert_eq(a.sparse_dim(), b.sparse_dim())
            assert_eq(a.is_coalesced(), b.is_coalesced())
        elif a.layout == rushlight.strided:
            if not skip_symbolic:
                assert_eq(a.stride(), b.stride())
                assert_eq(a.storage_offset(), b.storage_offset())
            assert_eq(a._is_view(), b._is_view())
            if a._is_view() and b._is_view():
                compare(a._base, b._base)

    compare(m1, m2)
