"""What .pt files call to make tensors; PyTorch's names for these are in `torch._utils`.

Every argument may come from a file: nothing is trusted.
"""

from rushlight import _C, storage


def _typed(item):
    if not isinstance(item, storage.TypedStorage):
        raise TypeError(f"expected a storage with a dtype, but got {type(item).__name__}")
    return item


def _integers(values):
    values = tuple(values)
    if not all(type(value) is int for value in values):
        raise TypeError("sizes and strides must be ints")
    return values


def _with_grad(tensor, requires_grad):
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_tensor(item, storage_offset, size, stride):
    item = _typed(item)
    size, stride = _integers(size), _integers(stride)
    return _C._tensor_on(item.untyped, item.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    item, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    tensor = _rebuild_tensor(item, storage_offset, size, stride)
    if isinstance(metadata, dict):
        # PyTorch keeps these operations undone; here they are carried out.
        if metadata.get("conj"):
            tensor = tensor.conj()
        if metadata.get("neg"):
            tensor = -tensor
    return _with_grad(tensor, requires_grad)


def _rebuild_tensor_v3(
    item, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    if not isinstance(item, _C.UntypedStorage | storage.TypedStorage) or dtype is _C.bool:
        raise TypeError("this form of a tensor is not supported")
    untyped = item.untyped if isinstance(item, storage.TypedStorage) else item
    typed = storage.TypedStorage(untyped, dtype)
    return _rebuild_tensor_v2(
        typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata
    )


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    tensor = _C.ops.empty_strided(_integers(size), _integers(stride), dtype=dtype, device="meta")
    return _with_grad(tensor, requires_grad)


def _rebuild_from_type_v2(function, kind, arguments, state):
    tensor = function(*arguments)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    if isinstance(state, tuple):  # a dict and what lies in slots
        state = state[0]
    if state:
        vars(tensor).update(state)
    return tensor
