"""Sparse tensors from indices and values, with or without checks of the indices.

Indices are always checked before anything reads them; `check_invariants` is accepted, as programs
pass it, and `check_sparse_tensor_invariants` keeps what it is told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import rushlight
from rushlight import _C, Tensor
from rushlight._table import ops
from rushlight._texts.docstrings import with_arguments

COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


def _sizes(sizes: Any) -> tuple[int, ...]:
    """The sizes, as a tuple."""
    if not isinstance(sizes, Iterable) or isinstance(sizes, str):
        kind = type(sizes).__name__
        raise TypeError(f"sparse_coo_tensor(): argument 'size' must be tuple of ints, not {kind}")
    return tuple(sizes)


def _indices(data: Any, device: Any) -> Tensor:
    found = rushlight.as_tensor(data, device=device)
    if found.is_complex():
        raise RuntimeError(f"indices must be an int64 tensor, but got {found.dtype}")
    return found.to(_C.int64) if found.is_floating_point() else found


def _values(data: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data.to(device=device or data.device, dtype=dtype or data.dtype)
    return rushlight.tensor(data, dtype=dtype, device=device)


def _require_grad(made: Tensor, requires_grad: bool) -> Tensor:
    """A leaf where a gradient is asked for and the values have no graph that gives it."""
    leaf = requires_grad and not made.requires_grad
    return made.detach().requires_grad_() if leaf else made


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A COO tensor: the value `values[i]` stands at `indices[:, i]`, equal places are added up.

    Args:
        indices: a matrix of ints with a row for each sparse dimension; or, alone, the sizes of a
            tensor without specified elements.
        values: a value, or a tensor of the dense dimensions, for each column.
        size: the sizes; without them the smallest that hold the indices.
        is_coalesced: the indices are sorted, and each is there once.
        dtype: the dtype of the values.
        layout: must be `torch.sparse_coo`.
        device: where the tensor lies.
        pin_memory: whether memory is locked for copies to an accelerator.
        requires_grad: whether autograd records what is done with it.
        check_invariants: whether indices are checked against the sizes.

    Raises:
        RuntimeError: an index is negative or too large, or shapes do not belong together.

    Example:
        >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if indices is None or values is None:
        sizes = size if size is not None else indices
        if sizes is None:
            raise TypeError("sparse_coo_tensor() needs indices and values, or sizes")
        sizes = (sizes,) if isinstance(sizes, int) else _sizes(sizes)
        empty = rushlight.empty((len(sizes), 0), dtype=_C.int64)
        none = rushlight.empty((0,), dtype=dtype, device=device)
        return _require_grad(ops._sparse_coo_tensor(empty, none, sizes, True), requires_grad)
    index = _indices(indices, device).to(_C.int64)
    value = _values(values, dtype, device)
    if value.dim() == 0 and index.dim() == 2:
        value = value.reshape(1)
    if index.dim() == 1 and index.numel() == 0:
        index = index.reshape(0, value.shape[0] if value.dim() else 0)
        if size is not None and value.dim() and value.shape[0] == 0:
            index = index.new_empty((len(tuple(size)) - value.dim() + 1, 0))
    sizes = None if size is None else _sizes(size)
    made = ops._sparse_coo_tensor(index, value, sizes, bool(is_coalesced))
    return _require_grad(made, requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor in the compressed layout that is named.

    Args:
        compressed_indices: where each row (column) begins among the values, and their number.
        plain_indices: the column (row) of each value.
        values: a value, a block or a tensor of dense dimensions for each plain index.
        size: the sizes; without them the smallest that hold the indices.
        layout: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.
        dtype: of the values; None keeps theirs.
        device: where the tensor lies; None: where the values do.
        pin_memory: whether its memory is pinned; needs a GPU.
        requires_grad: whether gradients of the values are recorded.
        check_invariants: whether the indices are checked; None: as
            `sparse.check_sparse_tensor_invariants` says.

    Raises:
        RuntimeError: the indices break a rule of the layout.

    Example:
        >>> row_ends, columns = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        >>> values = torch.tensor([5.0, 6.0])
        >>> m = torch.sparse_compressed_tensor(row_ends, columns, values, layout=torch.sparse_csr)
        >>> m.to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if layout not in COMPRESSED:
        raise RuntimeError(f"expected a compressed sparse layout but got {layout}")
    first, second = _indices(compressed_indices, device), _indices(plain_indices, device)
    value = _values(values, dtype, device)
    sizes = None if size is None else tuple(size)
    made = ops._sparse_compressed_tensor(first, second, value, sizes, layout)
    return _require_grad(made, requires_grad)


def _make(name, wanted, layout, *arguments, **options):
    """A tensor of the layout that the function `name` makes."""
    if layout not in (wanted, None):
        raise RuntimeError(f"{name}: expected the layout {wanted}, but got {layout}")
    return sparse_compressed_tensor(*arguments, layout=wanted, **options)


def _by_rows(name: str, wanted: rushlight.layout) -> Callable[..., Tensor]:
    def make(
        crow_indices: Any,
        col_indices: Any,
        values: Any,
        size: Any = None,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        check_invariants: bool | None = None,
    ) -> Tensor:
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return _make(name, wanted, layout, crow_indices, col_indices, values, size, **options)

    return _set_name(make, name, wanted)


def _by_columns(name: str, wanted: rushlight.layout) -> Callable[..., Tensor]:
    def make(
        ccol_indices: Any,
        row_indices: Any,
        values: Any,
        size: Any = None,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        check_invariants: bool | None = None,
    ) -> Tensor:
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return _make(name, wanted, layout, ccol_indices, row_indices, values, size, **options)

    return _set_name(make, name, wanted)


_ARGUMENTS = {
    "crow_indices": "where each row (of blocks) begins among the values, and their number.",
    "col_indices": "the column (of blocks) of each value.",
    "ccol_indices": "where each column (of blocks) begins among the values, and their number.",
    "row_indices": "the row (of blocks) of each value.",
    "values": "the values, or blocks of them.",
    "size": "the shape; None: the least that fits.",
    "dtype": "the dtype; None: that of the values.",
    "layout": "the layout that the name says, or None.",
    "device": "where it lies; None: where the values do.",
    "pin_memory": "without effect.",
    "requires_grad": "whether gradients are recorded for it.",
    "check_invariants": "without effect: indices are always checked.",
}


def _set_name(
    make: Callable[..., Any], name: str, layout: rushlight.layout
) -> Callable[..., Tensor]:
    make.__name__ = make.__qualname__ = name
    one = "[[[4.0]], [[5.0]]]" if "_bs" in name else "[4.0, 5.0]"
    make.__doc__ = f"""`sparse_compressed_tensor` of the layout {layout}.

Example:
    >>> x = torch.{name}([0, 1, 2], [1, 0], {one}, (2, 2))
    >>> x.to_dense()
    tensor([[{"0., 4." if "_csr" in name or "_bsr" in name else "0., 5."}],
            [{"5., 0." if "_csr" in name or "_bsr" in name else "4., 0."}]])
"""
    return with_arguments(make, _ARGUMENTS)


sparse_csr_tensor = _by_rows("sparse_csr_tensor", _C.sparse_csr)
sparse_csc_tensor = _by_columns("sparse_csc_tensor", _C.sparse_csc)
sparse_bsr_tensor = _by_rows("sparse_bsr_tensor", _C.sparse_bsr)
sparse_bsc_tensor = _by_columns("sparse_bsc_tensor", _C.sparse_bsc)
_sparse_coo_tensor_unsafe = sparse_coo_tensor
_sparse_compressed_tensor_unsafe = sparse_compressed_tensor
_sparse_csr_tensor_unsafe = sparse_csr_tensor
_sparse_csc_tensor_unsafe = sparse_csc_tensor
_sparse_bsr_tensor_unsafe = sparse_bsr_tensor
_sparse_bsc_tensor_unsafe = sparse_bsc_tensor


def _validate_sparse_coo_tensor_args(
    indices, values, size, is_coalesced=None, check_pinning=None
) -> None:
    """Raises RuntimeError if these are no COO tensor."""
    ops._check_sparse_coo(indices, values, tuple(size), bool(is_coalesced))


def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
) -> None:
    """Raises RuntimeError if these are no compressed tensor."""
    ops._check_sparse_compressed(compressed_indices, plain_indices, values, tuple(size), layout)


def _validator(layout: rushlight.layout) -> Callable[..., Any]:
    def validate(compressed_indices, plain_indices, values, size, check_pinning=None) -> None:
        """Raises RuntimeError if these are no tensor of the layout."""
        _validate_sparse_compressed_tensor_args(
            compressed_indices, plain_indices, values, size, layout
        )

    return validate


_validate_sparse_csr_tensor_args = _validator(_C.sparse_csr)
_validate_sparse_csc_tensor_args = _validator(_C.sparse_csc)
_validate_sparse_bsr_tensor_args = _validator(_C.sparse_bsr)
_validate_sparse_bsc_tensor_args = _validator(_C.sparse_bsc)


class check_sparse_tensor_invariants:  # PyTorch's name
    """Whether programs have asked for checks of indices, which are always made.

    A context manager, a decorator, and `enable()` and `disable()`.

    Args:
        enable: what `is_enabled()` returns inside.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     print(torch.sparse.check_sparse_tensor_invariants.is_enabled())
        True
    """

    _enabled = False

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check by default."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Do not check from now on."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self):
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated; another one can be entered "
                "within it"
            )
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error) -> None:
        assert self.saved_state is not None
        check_sparse_tensor_invariants._enabled = self.saved_state
        self.saved_state = None

    def __call__(self, function):
        @functools.wraps(function)
        def call_with_checks(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return call_with_checks
