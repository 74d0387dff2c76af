"""What saved files and pickles call to make tensors, with PyTorch's names and signatures.

Arguments of the functions that `load` lets a file call come from that file: they are not trusted.
"""

from __future__ import annotations

import contextlib
import copyreg
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rushlight import _C, storage
from rushlight._lazy import later
from rushlight._parameter import _rebuild_parameter, _rebuild_parameter_with_state  # noqa: F401
from rushlight._raised import ExceptionWrapper, KeyErrorMessage  # noqa: F401
from rushlight._tensor import Tensor
from rushlight.sparse._parts import sparse_parts
from rushlight.storage import CODES

if TYPE_CHECKING:
    from rushlight.storage import TypedStorage

_compiler = later("rushlight.compiler")


def _typed_storage(item):
    if not isinstance(item, storage.TypedStorage):
        raise TypeError(f"expected a storage with a dtype, but got {type(item).__name__}")
    return item


def _integers(values):
    values = tuple(values)
    if not all(type(value) is int for value in values):
        raise TypeError("sizes and strides must be ints")
    return values


def _with_grad(tensor: Tensor, requires_grad: bool) -> Tensor:
    return tensor.requires_grad_() if requires_grad is True else tensor


def _storage_on(storage, device):
    """A copy of a storage on a device: what a pickle of one that lay there calls."""
    return storage.to(device=device)


def _rebuild_tensor(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    item = _typed_storage(storage)
    size, stride = _integers(size), _integers(stride)
    return _C._tensor_on(item.untyped(), item.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if isinstance(metadata, dict):
        # PyTorch keeps these operations undone; here they are carried out.
        if metadata.get("conj"):
            tensor = _elementwise(_C.ops.conj, tensor)
        if metadata.get("neg"):
            tensor = _elementwise(_C.ops.neg, tensor)
    return _with_grad(tensor, requires_grad)


def _elementwise(op, tensor):
    """What an op makes of a tensor; where elements share memory, those of the result do."""
    there = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.numel() <= there:
        return op(tensor)
    whole = _C._tensor_on(tensor.untyped_storage(), tensor.dtype, 0, (there,), (1,))
    place = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    return _C._tensor_on(op(whole).untyped_storage(), tensor.dtype, *place)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    if not isinstance(storage, _C.StorageBase | _TypedStorage) or dtype is _C.bool:
        raise TypeError("this form of a tensor is not supported")
    typed = _TypedStorage._from_untyped(storage.untyped(), dtype)
    return _rebuild_tensor_v2(
        typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata
    )


_TypedStorage = storage.TypedStorage  # `storage` is a parameter's name above


def _rebuild_qtensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks
):
    from rushlight import _quantized

    item = _typed_storage(storage)
    size, stride = _integers(size), _integers(stride)
    codes = _C._tensor_on(item.untyped(), CODES[item.dtype], storage_offset, size, stride)
    return _quantized.of_codes(codes, *quantizer_params)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    tensor = _C.ops.empty_strided(_integers(size), _integers(stride), dtype=dtype, device="meta")
    return _with_grad(tensor, requires_grad)


def _rebuild_wrapper_subclass(
    cls, dtype, size, stride, storage_offset, layout, device, requires_grad
):
    """A tensor of a class that holds others; what it holds comes with its state."""
    return Tensor._make_wrapper_subclass(
        cls,
        _integers(size),
        strides=_integers(stride),
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_generator(device, state):
    return _C.Generator(device).set_state(state)


def _rebuild_nested_tensor(
    buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor
) -> Tensor:
    """The strided nested tensor of a buffer and tables of where its components lie."""
    from rushlight.nested._strided import of_tables

    return of_tables(buffer, sizes, strides, storage_offsets)


class _ReadState(threading.local):
    """Whether this thread reads objects before the bytes of their storages are there."""

    sparse: list[None] | None = None  # an item for each sparse tensor that was met


_unfilled = _ReadState()


@contextlib.contextmanager
def storages_unfilled() -> Iterator[list[None]]:
    """Within it sparse tensors are rebuilt as empty ones, for their indices cannot be checked yet.

    Yields:
        a list with an item for each of them.
    """
    before, _unfilled.sparse = _unfilled.sparse, []
    try:
        yield _unfilled.sparse
    finally:
        _unfilled.sparse = before


def _rebuild_sparse_tensor(layout, data):
    # What a file says is checked like what a program says.
    if _unfilled.sparse is not None:
        _unfilled.sparse.append(None)
        return _C.ops.empty((0,))
    *places, values, size = data[:3] if layout is _C.sparse_coo else data
    rest = tuple(data[3:])
    made = _sparse_of(layout, places, _C.ops.detach(values), _integers(size), rest)
    return made.requires_grad_(values.requires_grad)  # only its values say it


def _sparse_of(layout, places, values, size, coalesced):
    if layout is not _C.sparse_coo:
        return _C.ops._sparse_compressed_tensor(*places, values, size, layout)
    if coalesced == (True,):
        return _C.ops._sparse_coo_tensor(*places, values, size, is_coalesced=True)
    made = _C.ops._sparse_coo_tensor(*places, values, size)
    return made._coalesced_(False) if coalesced == (False,) else made.coalesce()


def is_wrapper(tensor):
    """Whether its class answers for elements that lie elsewhere."""
    return (
        type(tensor) is not Tensor
        and bool(tensor.numel())
        and not tensor.untyped_storage().nbytes()
    )


def reduce_tensor(tensor):
    """A function and arguments that make a plain tensor with this one's memory again."""
    if tensor.layout is not _C.strided:
        *places, values = sparse_parts(tensor)
        values = values.detach().requires_grad_(tensor.requires_grad)
        parts = (*places, values, tensor.size())
        if tensor.layout is _C.sparse_coo:
            parts = (*parts, tensor.is_coalesced())
        return _rebuild_sparse_tensor, (tensor.layout, parts)
    if tensor.device.type == "meta":
        parts = (tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.requires_grad)
        return _rebuild_meta_tensor_no_storage, parts
    storage = tensor.untyped_storage()
    if is_wrapper(tensor):
        place = (tuple(tensor.size()), tensor.stride(), tensor.storage_offset())
        rest = (tensor.layout, tensor.device, tensor.requires_grad)
        return _rebuild_wrapper_subclass, (type(tensor), tensor.dtype, *place, *rest)
    place = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    # Hooks are not saved; their place is part of the format.
    rest = (*place, tensor.requires_grad, OrderedDict())
    if tensor.dtype._computes:
        return _rebuild_tensor_v2, (_TypedStorage._from_untyped(storage, tensor.dtype), *rest)
    return _rebuild_tensor_v3, (storage, *rest, tensor.dtype)  # it has no class of storages


# ---- other helpers that programs reach for ----


def _element_size(dtype):
    """The bytes of an element."""
    return dtype.itemsize


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device that is given as a number, a name or a device.

    Args:
        optional: None, and a device without a number, mean the current one.
        allow_cpu: a CPU is -1 instead of an error.
    """
    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = device.index
    else:
        index = device
    if isinstance(index, int):
        return index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer: {device}")
    from rushlight import cuda

    return cuda.current_device()


def _flatten_dense_tensors(tensors):
    """All elements in one row."""
    return _C.ops.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Pieces of a row with the sizes of the tensors."""
    pieces = flat.split([tensor.numel() for tensor in tensors])
    return tuple(piece.view_as(tensor) for piece, tensor in zip(pieces, tensors, strict=True))


def _reorder_tensors_as(tensors, ordered_tensors):
    """Tensors that came sorted by dtype, in the order of the dtypes of others."""
    # Sorting is stable: places by type and the tensors, sorted too, lie in the same order.
    kinds = [tensor.type() for tensor in ordered_tensors]
    places = sorted(range(len(kinds)), key=kinds.__getitem__)
    found = dict(zip(places, sorted(tensors, key=lambda tensor: tensor.type()), strict=True))
    return tuple(found[place] for place in range(len(kinds)))


def _take_tensors(tensors, size_limit):
    """Lists of tensors of one dtype each, of about `size_limit` bytes."""
    rows = {}
    for tensor in tensors:
        kind = tensor.type()
        size = tensor.numel() * tensor.element_size()
        row, total = rows.get(kind, ([], 0))
        if row and total + size > size_limit:
            yield row
            row, total = [], 0
        rows[kind] = ([*row, tensor], total + size)
    yield from (row for row, _ in rows.values() if row)


def _get_obj_state(obj):
    """What a pickle keeps of a tensor beside its numbers: its dict, and its slots if it has any."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    slots = copyreg._slotnames(type(obj))  # pyright: ignore[reportAttributeAccessIssue]
    if not slots:
        return obj.__dict__
    return obj.__dict__, {name: getattr(obj, name) for name in slots if hasattr(obj, name)}


def _set_obj_state(obj, state):
    """Gives a tensor what `_get_obj_state` has kept."""
    values, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if isinstance(values, tuple):
        raise RuntimeError(f"Invalid serialized state: {state}")
    vars(obj).update(values or {})
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _import_dotted_name(name):
    """The object that a name with dots means: "torch.nn.Linear"."""
    first, *rest = name.split(".")
    value = __import__(first)
    for part in rest:
        value = getattr(value, part)
    return value


def _get_available_device_type():
    """The type of accelerator that is there, or None."""
    from rushlight import cuda

    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str):
    """The module of a kind of device.

    Raises:
        RuntimeError: there is none.
    """
    import rushlight

    module = getattr(rushlight, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' has no module torch.{device_type}")
    return module


def _get_all_device_indices():
    """The numbers of all accelerators."""
    from rushlight import cuda

    return list(range(cuda.device_count()))


def is_compiling():
    """Whether the program is being exported; nothing else is compiled."""
    return _compiler.is_compiling()
