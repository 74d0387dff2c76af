"""Nested tensors: batches of tensors whose sizes differ, without padding.

The jagged layout (`layout=torch.jagged`) has one ragged dimension and is a tensor of values with
offsets; ops go over all values at once. The strided layout lets any dimension differ and has fewer
ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight.types import Device, _dtype, _layout

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _check_layout(layout: rushlight.layout | None) -> rushlight.layout:
    layout = rushlight.strided if layout is None else layout
    if layout not in (rushlight.strided, rushlight.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def nested_tensor(
    tensor_list: Sequence[Tensor],
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor of copies of a list of tensors or of lists of numbers; it is a leaf.

    Args:
        tensor_list: tensors, or what `torch.tensor` takes, of equally many dimensions; in the
            jagged layout they differ in the size of one dimension.
        dtype: the dtype of the elements; that of the first tensor by default.
        layout: `torch.strided` or `torch.jagged`.
        device: the device of the result; that of the first tensor by default.
        requires_grad: whether gradients are recorded for it.
        pin_memory: whether its memory is page-locked.

    Example:
        >>> nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        >>> nested.size(0), nested.unbind()
        (2, (tensor([1., 1.]), tensor([1., 1., 1.])))
    """
    layout = _check_layout(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            "Only lists of tensors, or of lists of numbers, are accepted in nested_tensor, not "
            f"{type(tensor_list)}"
        )
    parts = [
        t.detach() if isinstance(t, Tensor) else rushlight.tensor(t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    made = _of_list(parts, dtype, layout, device)
    if pin_memory:
        made = made.pin_memory()
    return made.requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Any,
    dtype: _dtype | None = None,
    device: Device | None = None,
    layout: _layout | None = None,
) -> Tensor:
    """A nested tensor of a list of tensors, or of the slices of a tensor; gradients flow through.

    A nested tensor of this layout is given back as it is.

    Args:
        ts: a tensor of at least 2 dimensions, a nested tensor, or a list of tensors.
        dtype: the dtype of the elements; that of `ts` by default.
        device: the device of the result; that of `ts` by default.
        layout: `torch.strided` or `torch.jagged`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.nested.as_nested_tensor([x, torch.ones(3)]).requires_grad
        True
    """
    if not isinstance(ts, Tensor) and not (
        isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    ):
        raise TypeError(
            "as_nested_tensor(): parts are tensors, so ts is a tensor or a list of them, not "
            f"{ts!r}"
        )
    layout = rushlight.strided if layout is None else layout
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, Tensor) and ts.is_nested:
        if layout == ts.layout:
            return ts.to(device=device, dtype=dtype)
        raise RuntimeError(
            "as_nested_tensor(): Converting between nested tensor layouts is not supported"
        )
    layout = _check_layout(layout)
    if isinstance(ts, Tensor) and layout == rushlight.jagged:
        from rushlight.nested._internal.nested_tensor import nested_view_from_values_offsets

        ts = ts.to(device=device, dtype=dtype)
        batch, length = ts.shape[:2]
        offsets = rushlight.arange(batch + 1, device=ts.device) * length
        return nested_view_from_values_offsets(
            ts.flatten(0, 1), offsets, min_seqlen=length, max_seqlen=length
        )
    if isinstance(ts, Tensor):
        from rushlight.nested._strided import of_slices

        return of_slices(ts.to(device=device, dtype=dtype))
    return _of_list(list(ts), dtype, layout, device)


def _of_list(parts, dtype, layout, device):
    if layout == rushlight.jagged:
        from rushlight.nested._internal.nested_tensor import jagged_from_list

        return jagged_from_list(parts, None, dtype, device)[0]
    from rushlight.nested._strided import of_list

    return of_list(parts, dtype, device)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A jagged nested tensor on the memory of `values`; gradients flow through.

    Args:
        values: the components, one behind the other along `jagged_dim - 1`.
        offsets: where each begins and the last ends, one more than components.
        lengths: the lengths of the components; with offsets, the rows after them up to the next
            offset are unused.
        jagged_dim: the ragged dimension of the result; 1 by default.
        min_seqlen: the shortest length, where it is known.
        max_seqlen: the longest length, where it is known; also the length of padding.

    Example:
        >>> values, offsets = torch.tensor([2, 4, 6, 8]), torch.tensor([0, 1, 4])
        >>> torch.nested.nested_tensor_from_jagged(values, offsets).unbind()
        (tensor([2]), tensor([4, 6, 8]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets = rushlight.nn.functional.pad(lengths.cumsum(0), (1, 0))
        lengths = None
    from rushlight.nested._internal import nested_tensor as jagged

    dim = 1 if jagged_dim is None else jagged_dim
    if lengths is None:
        return jagged.nested_view_from_values_offsets(
            values, offsets, dim, min_seqlen=min_seqlen, max_seqlen=max_seqlen
        )
    return jagged.nested_view_from_values_offsets_lengths(
        values, offsets, lengths, dim, min_seqlen=min_seqlen, max_seqlen=max_seqlen
    )


def narrow(
    tensor: Tensor,
    dim: int,
    start: int | Tensor,
    length: int | Tensor,
    layout: _layout = rushlight.strided,
) -> Tensor:
    """A nested tensor of slices along `dim`, one for each row of a tensor.

    Args:
        tensor: a plain tensor.
        dim: the dimension that is cut; 1 in the jagged layout.
        start: where windows begin: an int or, in the jagged layout, a tensor with one for each
            slice.
        length: how long they are, likewise.
        layout: `torch.strided` (copies) or `torch.jagged` (a view with holes).

    Example:
        >>> first, count = torch.tensor([0, 1]), torch.tensor([2, 3])
        >>> rows = torch.arange(8).view(2, 4)
        >>> parts = torch.nested.narrow(rows, dim=1, length=count, start=first, layout=torch.jagged)
        >>> parts.unbind()
        (tensor([0, 1]), tensor([5, 6, 7]))
    """
    if _check_layout(layout) == rushlight.jagged:
        if dim != 1:
            raise RuntimeError("jagged layout only supports dim=1")
        from rushlight.nested._internal.nested_tensor import jagged_from_tensor_and_lengths

        return jagged_from_tensor_and_lengths(tensor, start, length)[0]
    if isinstance(start, Tensor) or isinstance(length, Tensor):
        raise RuntimeError("start and length must be integers in the strided layout, not tensors")
    return as_nested_tensor(tensor.narrow(dim, start, length), layout=layout)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The jagged nested tensor of the elements of each row for which a mask is True.

    Args:
        tensor: a plain tensor of 2 dimensions.
        mask: a bool tensor that is broadcast to it.

    Example:
        >>> x = torch.tensor([[5, 6], [7, 8]])
        >>> torch.nested.masked_select(x, x != 6).unbind()
        (tensor([5]), tensor([7, 8]))
    """
    if tensor.layout != rushlight.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.layout != rushlight.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided mask, given: {mask.layout}"
        )
    mask = mask.expand(rushlight.broadcast_shapes(tensor.shape, mask.shape))
    lengths = mask.sum(dim=tuple(range(1, mask.dim()))) if mask.dim() > 1 else mask.sum()[None]
    offsets = rushlight.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return nested_tensor_from_jagged(tensor.masked_select(mask), offsets)


def to_padded_tensor(
    input: Tensor, padding: float, output_size: int | Sequence[int] | None = None, out: Any = None
) -> Tensor:
    """A plain tensor of the components of `input`, each padded to the largest size.

    Args:
        input: a nested tensor.
        padding: the number that fills up.
        output_size: the sizes of the result, which are at least the largest components'; those by
            default.
        out: not supported.

    Example:
        >>> nested = torch.nested.nested_tensor([torch.tensor([4.0, 5.0]), torch.tensor([6.0])])
        >>> torch.nested.to_padded_tensor(nested, 0.0)
        tensor([[4., 5.],
                [6., 0.]])
    """
    if out is not None:
        raise RuntimeError("to_padded_tensor(): nested tensors have no out= form")
    return input.to_padded_tensor(padding, output_size)
