"""`MaskedTensor`: data and a mask of the same shape, layout and device.

It stands for the data in programs and in the graph of gradients and has no memory of its own. A
call (`__torch_function__`) takes the data out, computes with plain tensors and puts the result
under its mask; both steps are recorded, so gradients are those of the plain ops. What reaches
`__torch_dispatch__` are calls without a graph: in-place ops, the engine's sums and `ops.aten`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight._lazy import later
from rushlight._warnings import warn
from rushlight.autograd import Function

if TYPE_CHECKING:
    from rushlight.autograd.function import BackwardCFunction

__all__ = ["MaskedTensor", "is_masked_tensor"]

_rules = later("rushlight._rules.masked")

_SPARSE = (rushlight.sparse_coo, rushlight.sparse_csr)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a `MaskedTensor`.

    Args:
        obj: the object.

    Example:
        >>> torch.masked.is_masked_tensor(torch.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


def _check(data, mask):
    for name, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or is_masked_tensor(value):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError(
            f"data and mask must have the same layout, not {data.layout} and {mask.layout}"
        )
    if data.layout not in (rushlight.strided, *_SPARSE):
        raise TypeError(f"data layout of {data.layout} is not supported in MaskedTensor")
    if mask.dtype != rushlight.bool:
        raise TypeError(f"mask must have dtype bool, not {mask.dtype}")
    if data.dtype.is_complex:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(), not {data.dim()} and {mask.dim()}")
    if data.size() != mask.size():
        raise ValueError(f"data.size() must equal mask.size(), not {data.size()} and {mask.size()}")
    if data.layout == rushlight.strided or data._nnz() != mask._nnz() or _same_indices(data, mask):
        return  # of more elements than the mask has, those are taken that it has
    if data.layout == rushlight.sparse_coo:
        raise ValueError(
            "data and mask do not have the same indices, as sparse COO tensors here must"
        )
    raise ValueError(
        "data and mask do not share either crow or col indices, as sparse CSR tensors here must"
    )


def _indices(t: Tensor) -> tuple[Tensor, ...]:
    if t.layout == rushlight.sparse_coo:
        return (t.coalesce().indices(),)
    return t.crow_indices(), t.col_indices()


def _all_equal(first: Sequence[Tensor], second: Sequence[Tensor]) -> bool:
    return all(
        a.shape == b.shape and bool((a == b).all()) for a, b in zip(first, second, strict=True)
    )


def _same_indices(first: Tensor, second: Tensor) -> bool:
    return _all_equal(_indices(first), _indices(second))


def _make(data: Tensor, mask: Tensor, requires_grad: bool = False) -> Tensor:
    """Around these two themselves; nothing is recorded."""
    if data.layout == rushlight.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout in _SPARSE and data._nnz() != mask._nnz():
        data = data.sparse_mask(mask)
    strided = data.layout == rushlight.strided
    made = Tensor._make_wrapper_subclass(
        MaskedTensor,
        data.size(),
        strides=data.stride() if strided else None,
        dtype=data.dtype,
        layout=data.layout,
        device=data.device,
        requires_grad=requires_grad,
    )
    made._data, made._mask = data.detach(), mask.detach()
    return made


def _fill_with_zeros(t: Tensor) -> Tensor:
    """Plain data, with zeros where nothing takes part."""
    if not is_masked_tensor(t):
        return t
    if t.layout in _SPARSE:
        return _values_of(lambda v, m: v.masked_fill(~m, 0), t._data, t._mask)
    return t._data.masked_fill(~t._mask, 0)


def _mask_gradient(grad: Tensor, mask: Tensor) -> Tensor:
    """A gradient as a masked tensor."""
    return grad if is_masked_tensor(grad) else _make(_in_layout_of(grad, mask), mask)


class _Out(Function):
    """The data of a masked tensor."""

    @staticmethod
    def forward(ctx, t):
        ctx.mask = t._mask
        return t._data.detach()

    @staticmethod
    def backward(ctx: BackwardCFunction, *grads: Tensor) -> Tensor:
        return _mask_gradient(grads[0], ctx.mask)


class AsMasked(Function):
    """A masked tensor of data, whose gradient is a masked tensor, too."""

    @staticmethod
    def forward(ctx, data, mask):
        _check(data, mask)
        ctx.mask = mask
        return _make(data, mask)

    @staticmethod
    def backward(ctx, *grads):
        return _mask_gradient(grads[0], ctx.mask), None


class _AsMaskedResult(AsMasked):
    """The same for a result, whose gradient is a plain tensor."""

    @staticmethod
    def backward(ctx, *grads):
        return _fill_with_zeros(_mask_gradient(grads[0], ctx.mask)), None


class _Convert(Function):
    """Another layout; the gradient comes back in the old one."""

    @staticmethod
    def forward(ctx, t, layout):
        ctx.mask = t._mask
        mask = _in_layout(t._mask, layout)
        return _make(_in_layout_of(t._data, mask), mask)

    @staticmethod
    def backward(ctx, *grads):
        return _make(_in_layout_of(_fill_with_zeros(grads[0]), ctx.mask), ctx.mask), None


def _in_layout(mask: Tensor, layout: rushlight.layout) -> Tensor:
    mask = mask.to_dense() if mask.layout in _SPARSE else mask
    if layout == rushlight.sparse_coo:
        return mask.to_sparse().coalesce()
    return mask.to_sparse_csr() if layout == rushlight.sparse_csr else mask


def _in_layout_of(data: Tensor, mask: Tensor) -> Tensor:
    """The data in the layout of a mask."""
    if data.layout == mask.layout:
        return data
    data = data.to_dense() if data.layout in _SPARSE else data
    return data.sparse_mask(mask) if mask.layout in _SPARSE else data


def _values_of(f, *tensors):
    """What f makes of the values of tensors with the same indices, at these."""
    first = tensors[0]
    if first.layout == rushlight.strided:
        return f(*tensors)
    made = f(*(t.values() for t in tensors))
    if first.layout == rushlight.sparse_coo:
        indices = first.indices()
        return rushlight.sparse_coo_tensor(indices, made, first.size(), is_coalesced=True)
    return rushlight.sparse_csr_tensor(
        first.crow_indices(), first.col_indices(), made, first.size()
    )


def _equal_masks(first: Tensor, second: Tensor) -> bool:
    if first is second:
        return True
    if first.layout != second.layout or first.shape != second.shape:
        return False
    if first.layout in _SPARSE:
        return _same_indices(first, second) and _all_equal([first.values()], [second.values()])
    return bool((first == second).all())


class MaskedTensor(Tensor):
    """A tensor with a mask that is True for valid elements.

    Ops of one tensor keep the mask, ops of two want equal ones (a plain tensor goes with any),
    reductions leave out what is masked and mask what is left of nothing. Gradients of leaves are
    masked tensors. `masked_tensor` and `as_masked_tensor` make one; they say what is supported.

    Args:
        data: the values.
        mask: True for valid elements, of the same shape.
        requires_grad: whether gradients are computed for it.

    Example:
        >>> masked = torch.masked.masked_tensor(
        ...     torch.tensor([5.0, 6.0]), torch.tensor([True, False])
        ... )
        >>> masked.sum()
        MaskedTensor(  5.0000, True)
    """

    _data: Tensor
    _mask: Tensor

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        if data.requires_grad:
            warn(
                "It is not recommended to create a MaskedTensor of what requires_grad: gradients "
                "do not pass. "
                "as_masked_tensor(data, mask) lets them, data.detach().clone() says that they need "
                "not.",
            )
        return _make(data.detach().clone(), mask.detach().clone(), requires_grad)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        first: Any = args[0] if args else None
        if name in ("to_dense", "to_sparse", "to_sparse_coo", "to_sparse_csr"):
            layout = {"to_dense": rushlight.strided, "to_sparse_csr": rushlight.sparse_csr}
            return _Convert.apply(first, layout.get(name, rushlight.sparse_coo))
        if name in ("contiguous", "is_contiguous") and first.layout in _SPARSE:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        with rushlight._C.DisableTorchFunctionSubclass():
            if name.strip("_") not in ("get", "is_contiguous", "detach"):
                made = _rules.Call(func, args, kwargs, recorded=True).run(name)
                if made is not NotImplemented:
                    return made
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if func.namespace == "rushlight":  # kernels behind composites: _clamp_, _logit
            name = name.lstrip("_")
        call = _rules.Call(func, args, kwargs or {}, recorded=False)
        if name == "copy_" and is_masked_tensor(args[0]):  # masks are shared among tensors
            old = args[0]._mask
            new = args[1]._mask if is_masked_tensor(args[1]) else rushlight.ones_like(old)
            args[0]._mask = new if new.shape == old.shape else new.expand_as(old)
        if name in _rules.IN_PLACE:
            return call.in_place(binary=name in _rules.INPLACE_BINARY_NAMES or name == "copy_")
        made = call.run(name)
        if made is NotImplemented:
            raise TypeError(f"masked tensors have no torch._ops.{func}")
        return made

    def get_data(self) -> Tensor:
        """All elements, also the invalid ones; gradients flow through."""
        return _Out.apply(self) if self.requires_grad else self._data

    def get_mask(self) -> Tensor:
        """The bool mask: True for valid elements."""
        return self._mask

    def to_tensor(self, value) -> Tensor:
        """The elements, with `value` for invalid ones; gradients flow through."""
        return self.get_data().masked_fill(~self._mask, value)

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are sparse COO or CSR tensors."""
        return self.layout in _SPARSE

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are sparse COO tensors."""
        return self.layout == rushlight.sparse_coo

    def is_sparse_csr(self) -> bool:
        """Whether data and mask are sparse CSR tensors."""
        return self.layout == rushlight.sparse_csr

    def __repr__(self, *, tensor_contents=None) -> str:
        data, mask = (t.detach().to_dense() for t in (self._data, self._mask))
        form = "{0:8.4f}" if data.dtype.is_floating_point else "{0}"
        numbers = map(form.format, data.flatten().tolist())
        shown = [n if m else "--" for n, m in zip(numbers, mask.flatten().tolist(), strict=True)]
        if data.dim() == 0:
            return f"MaskedTensor({shown[0]}, {bool(mask)})"
        width = max([8, *map(len, shown)])
        shown = [text.rjust(width) if text == "--" else text for text in shown]
        return f"MaskedTensor(\n{_bracketed_text(shown, list(data.shape), '  ')}\n)"

    __str__ = __repr__


def _bracketed_text(shown: list[str], shape: list[int], indent: str) -> str:
    if len(shape) == 1:
        return f"{indent}[{', '.join(shown)}]"
    step = len(shown) // shape[0] if shape[0] else 0
    rows = [shown[i * step : (i + 1) * step] for i in range(shape[0])]
    inner = ",\n".join(_bracketed_text(row, shape[1:], indent + "  ") for row in rows)
    return f"{indent}[\n{inner}\n{indent}]"


def _tensors_match(first, second, exact=True, rtol=1e-5, atol=1e-8):
    """Whether two plain tensors have the same layout, dtype and (nearly) the same elements."""
    _check_plain(first, second)
    if first.layout != second.layout:
        raise ValueError(f"layouts differ: {first.layout} and {second.layout}")
    if exact and first.dtype != second.dtype:
        return False
    first, second = (t.to_dense() for t in (first, second))
    if exact:
        return bool((first == second).all())
    return rushlight.allclose(first, second.to(first.dtype), rtol=rtol, atol=atol, equal_nan=True)


def _masks_match(first, second):
    """Whether two masked tensors, or two masks, are masked alike."""
    return _equal_masks(*(t._mask if is_masked_tensor(t) else t for t in (first, second)))


def _check_plain(*tensors):
    if any(map(is_masked_tensor, tensors)):
        raise ValueError("expected plain tensors, but got a MaskedTensor")
