"""Storages: `UntypedStorage` of bytes, `TypedStorage` of elements, `FloatStorage` and its like."""

from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING, Any

from rushlight import _C, _CODE_KINDS, _KINDS
from rushlight._warnings import warn

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage(_C.StorageBase):
    """The memory of tensors as bytes.

    Args:
        size: how many bytes, uninitialised ones, or a sequence of their values.
        device: the device of the memory.

    Example:
        >>> storage = torch.arange(3, dtype=torch.uint8).untyped_storage()
        >>> storage.nbytes(), storage[2]
        (3, 2)
    """

    @property
    def _bytes(self):
        """The bytes as a tensor of one dimension."""
        return _C._tensor_on(self, _C.uint8, 0, (self.nbytes(),), (1,))

    @classmethod
    def from_buffer(
        cls, buffer, byte_order=None, count: int = -1, offset: int = 0, dtype: Any = None
    ):
        """A copy of an object's memory, in this machine's byte order.

        Args:
            buffer: bytes, or what gives them.
            byte_order: of the elements in it, "native", "little" or "big"; needed where one has
                several bytes.
            count: how many elements; -1: all that are there.
            offset: the number of bytes before the first element.
            dtype: the dtype of the elements; by default bytes.
        """
        dtype = _C.uint8 if dtype is None else dtype
        item, available = dtype.itemsize, memoryview(buffer).nbytes
        if byte_order is None and item > 1:
            raise TypeError("from_buffer(): byte_order is needed for elements of several bytes")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(
                f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        if not 0 <= offset < max(available, 1):
            raise ValueError(
                f"offset must be one of the {available} bytes of the buffer, but got {offset}"
            )
        if count < 0 and (available - offset) % item != 0:
            raise ValueError(
                f"buffer size ({available}) must be a multiple of element size ({item})"
            )
        size = available - offset if count < 0 else count * item
        if offset + size > available:
            raise ValueError(
                f"buffer has only {available - offset} bytes behind offset {offset}, but {count} "
                f"elements have {size}"
            )
        new = cls._from_bytes(bytes(memoryview(buffer).cast("B")[offset : offset + size]))
        if dtype is _C.bool:
            new._bytes.copy_(new._bytes != 0)
        if byte_order not in (None, "native", sys.byteorder):
            new.byteswap(dtype)
        return new

    def byteswap(self, dtype: _C.dtype) -> None:
        """Reverse the bytes of each element of a dtype; complex numbers have two parts."""
        part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        parts = self._bytes[: self.nbytes() // part * part].view(-1, part)
        parts.copy_(parts.flip(1))

    def get_device(self):
        """The index of the storage's GPU; -1 for the CPU."""
        return (self.device.index or 0) if self.is_cuda else -1

    def cuda(self, device: Device = None, non_blocking: bool = False):
        """A copy on a GPU; the storage itself if it is there already."""
        place = _C.device("cuda" if device is None else device)
        return self.to(device=place, non_blocking=non_blocking)

    def is_shared(self) -> bool:
        """Whether other processes may see the memory."""
        return self.device.type != "meta" and self._bytes.is_shared()

    def share_memory_(self):
        """Move the memory to shared memory, so that other processes can see it.

        Tensors on it move with it. A numpy array that was made of one before keeps the old memory.
        """
        from rushlight.multiprocessing import reductions

        reductions.share_storage_(self)
        return self

    def is_pinned(self, device: Device = None) -> bool:
        """Whether the memory is pinned, so that a GPU can read it directly."""
        return self._bytes.is_pinned(device)

    def pin_memory(self, device: Device = None):
        """A copy in pinned memory, which a GPU can read directly; RuntimeError without a GPU."""
        return self._bytes.pin_memory(device).untyped_storage()

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return _deepcopy_storage(self, memo)

    def __repr__(self) -> str:
        about = f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"
        values = (
            "...\n" if self.device.type == "meta" else "".join(f" {v}\n" for v in self.tolist())
        )
        return values + about


def _deepcopy_storage(untyped: UntypedStorage, memo: dict) -> UntypedStorage:
    """The copy of a storage of one `deepcopy`; tensors note theirs under this key, too."""
    key = ("storage", untyped._cdata)
    if key not in memo:
        # The source is held, so that its identity stays its own.
        memo[key] = (untyped.clone(), untyped)
    return memo[key][0]


_warns_always = False
_has_warned = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Says once that typed storages are on their way out, as in PyTorch."""
    global _has_warned
    if _warns_always or not _has_warned:
        _has_warned = True
        warn(
            "TypedStorage is deprecated, as in PyTorch, which will remove it: "
            "tensor.untyped_storage() gives the bytes.",
        )


def _reset_warn_typed_storage_removal() -> None:
    """Makes it say so once more."""
    global _has_warned
    _has_warned = False


def _get_always_warn_typed_storage_removal():
    """Whether it says so every time."""
    return _warns_always


def _set_always_warn_typed_storage_removal(always_warn):
    """Makes it say so every time, or once."""
    global _warns_always
    if not isinstance(always_warn, bool):
        raise TypeError(f"always_warn must be a bool, not {type(always_warn).__name__}")
    _warns_always = always_warn


class TypedStorage:
    """The memory of tensors as elements of one dtype.

    `TypedStorage(3)` makes an uninitialised one, `TypedStorage([1, 2])` one with these values.

    Args:
        wrap_storage: an `UntypedStorage` to look at, instead of a size or values.
        dtype: the dtype of the elements; by default the default dtype.
        device: the device of new memory.
        args: how many elements, or a sequence of their values.

    Example:
        >>> storage = torch.TypedStorage([4.0, 7.0], dtype=torch.float32)
        >>> storage[1], storage.nbytes()
        (7.0, 8)
    """

    dtype: _C.dtype

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Device = None
    ) -> None:
        _warn_typed_storage_removal()
        dtype = _C.ops.get_default_dtype() if dtype is None else dtype
        if len(args) > 1:
            raise RuntimeError(
                f"TypedStorage takes a size or values, but got {len(args)} arguments"
            )
        if wrap_storage is None:
            content = args[0] if args else 0
            make = _C.ops.empty if isinstance(content, int) else _C.ops.tensor
            tensor = make(content, dtype=dtype, device=device)
            wrap_storage = tensor.untyped_storage()
        elif args or device is not None:
            raise RuntimeError(
                "TypedStorage takes either wrap_storage or what new memory is made of"
            )
        elif not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                f"wrap_storage must be an UntypedStorage, but got {type(wrap_storage).__name__}"
            )
        self._untyped = wrap_storage
        self.dtype = dtype

    @classmethod
    def _from_untyped(cls, untyped, dtype):
        """Of bytes that are there, without a warning."""
        new = cls.__new__(cls)
        new._untyped = untyped
        new.dtype = dtype
        return new

    @property
    def _elements(self):
        """The elements as a tensor of one dimension."""
        return _C._tensor_on(self._untyped, self.dtype, 0, (self.size(),), (1,))

    def untyped(self):
        """The same memory as bytes."""
        return self._untyped

    _untyped_storage = property(untyped)

    # ---- what it is ----

    @property
    def device(self):
        """The device of the memory."""
        return self._untyped.device

    @property
    def is_cuda(self):
        """Whether the memory is on a GPU."""
        return self.device.type == "cuda"

    @property
    def _cdata(self):
        return self._untyped._cdata

    def _weak_ref(self) -> int:
        return self._untyped._weak_ref()

    def size(self):
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    def nbytes(self):
        """The number of bytes."""
        return self._untyped.nbytes()

    def element_size(self):
        """The number of bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped.data_ptr()

    def get_device(self):
        """The index of the storage's GPU; -1 for the CPU."""
        return (self.device.index or 0) if self.is_cuda else -1

    def resizable(self):
        """Whether `resize_` works."""
        return self._untyped.resizable()

    def is_shared(self):
        """Whether other processes may see the memory."""
        return self.device.type != "meta" and self._elements.is_shared()

    def type(self, dtype: Any = None, non_blocking: bool = False):
        """The name of the storage's class; with a dtype or a name, a storage of that dtype."""
        if dtype is None:
            if self.dtype not in OF_DTYPE:
                return "torch.storage.TypedStorage"
            kind = OF_DTYPE[self.dtype].__name__
            return f"torch.cuda.{kind}" if self.is_cuda else f"torch.{kind}"
        if isinstance(dtype, str):
            name = dtype.removeprefix("torch.")
            if name not in NAMES:
                raise ValueError(f"invalid type: '{dtype}'")
            dtype = NAMES[name]
        if isinstance(dtype, type) and issubclass(dtype, _StorageName):
            dtype = dtype.dtype
        return self._convert(dtype, non_blocking=non_blocking)

    # ---- its elements ----

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, index):
        self._needs_memory()
        if isinstance(index, slice):
            raise RuntimeError("a TypedStorage gives single elements, not slices")
        return self._elements[self._checked_index(index)].item()

    def __setitem__(self, index, value):
        if not isinstance(index, slice):
            index = self._checked_index(index)
        self._elements[index] = value

    def _needs_memory(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _checked_index(self, index: int | str) -> int:
        if not isinstance(index, int):
            raise TypeError(
                f"can't index a {type(self).__name__} with {type(index).__name__}: an int is needed"
            )
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return index

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """The elements as Python numbers."""
        self._needs_memory()
        return self._elements.tolist()

    def fill_(self, value):
        """Fill all elements with one value."""
        self._elements.fill_(value)
        return self

    def copy_(self, source, non_blocking: bool = False):
        """Copy and convert the elements of another storage of the same size."""
        if len(source) != self.size():
            raise RuntimeError(f"size does not match, self was {self.size()}, source {len(source)}")
        self._elements.copy_(_as_typed(source)._elements, non_blocking=non_blocking)
        return self

    def resize_(self, size):
        """Resize the memory to a number of elements and keep its contents."""
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    # ---- copies ----

    def _convert(self, dtype=None, device=None, non_blocking=False):
        """A storage with other elements or elsewhere; this one where nothing is to be done."""
        dtype, device = dtype or self.dtype, device or self.device
        moved = self._elements.to(dtype=dtype, device=device, non_blocking=non_blocking)
        untyped = moved.untyped_storage()
        return self if untyped == self._untyped else TypedStorage._from_untyped(untyped, dtype)

    def clone(self):
        """A copy of the storage."""
        return TypedStorage._from_untyped(self._elements.clone().untyped_storage(), self.dtype)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return TypedStorage._from_untyped(_deepcopy_storage(self._untyped, memo), self.dtype)

    def __reduce__(self):
        return TypedStorage._from_untyped, (self._untyped, self.dtype)

    def cpu(self):
        """A copy on the CPU; the storage itself if it is there already."""
        return self._convert(device="cpu")

    def cuda(self, device: Device = None, non_blocking: bool = False):
        """A copy on a GPU; the storage itself if it is there already."""
        return self._convert(device=device or "cuda", non_blocking=non_blocking)

    def to(self, *, device, non_blocking: bool = False):
        """A copy on a device; the storage itself if it is there already."""
        return self._convert(device=device, non_blocking=non_blocking)

    def pin_memory(self, device: Device = None):
        """A copy in pinned memory, which a GPU can read directly; RuntimeError without a GPU."""
        pinned = self._elements.pin_memory(device)
        return TypedStorage._from_untyped(pinned.untyped_storage(), self.dtype)

    def is_pinned(self, device: Device = None):
        """Whether the memory is pinned, so that a GPU can read it directly."""
        return self._elements.is_pinned(device)

    def share_memory_(self):
        """Move the memory to shared memory, so that other processes can see it.

        Tensors on it move with it.
        """
        self._untyped.share_memory_()
        return self

    # ---- as an object ----

    def __eq__(self, other):
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self._untyped == other._untyped and self.dtype == other.dtype

    def __hash__(self):
        return hash((self._untyped, self.dtype))

    def __str__(self):
        about = f"{self.dtype}, device={self.device}) of size {len(self)}"
        values = "...\n" if self.device.type == "meta" else "".join(f" {v}\n" for v in self)
        return f"{values}[torch.storage.TypedStorage(dtype={about}]"

    __repr__ = __str__


def _as_typed(source):
    typed = isinstance(source, TypedStorage)
    return source if typed else TypedStorage._from_untyped(source, _C.uint8)


def _add_conversions():
    """`float()`, `half()` and such: a storage of that dtype."""
    for dtype in _C._dtypes:
        if not (dtype._computes or dtype.is_floating_point):
            continue
        name = re.sub("(?<=[a-z])(?=[A-Z])", "_", dtype._kind).lower()

        def convert(self, dtype=dtype):
            return self._convert(dtype)

        convert.__name__ = name
        convert.__qualname__ = f"TypedStorage.{name}"
        convert.__doc__ = f"A storage of {dtype} with these elements; itself where it is one."
        setattr(TypedStorage, name, convert)


_add_conversions()


def set_tensor(tensor, source, offset, size, stride):
    """`tensor.set_`: make a tensor a view of the memory of a tensor or storage."""
    from rushlight import is_grad_enabled, no_grad

    kinds = (_C.TensorBase, UntypedStorage, TypedStorage, type(None))
    whole = offset is None and size is None and stride is None
    if not isinstance(source, kinds) or not (whole or (source is not None and size is not None)):
        raise TypeError(
            "set_() received an invalid combination of arguments - it takes nothing, a tensor or "
            "storage, or one with storage_offset, size and stride"
        )
    _C._check_inplace("set_", tensor)
    if source is None:
        source = _C.ops.empty(0, dtype=tensor.dtype, device=tensor.device)
    dtype = None if isinstance(source, UntypedStorage) else source.dtype
    if dtype not in (None, tensor.dtype):
        if isinstance(source, TypedStorage):
            raise RuntimeError(
                f"Expected a Storage of type {tensor.dtype} or an UntypedStorage, but got type "
                f"{dtype} for argument 1 'storage'"
            )
        raise RuntimeError(f"Could not set tensor of type {dtype} to a tensor of {tensor.dtype}")
    if source.device != tensor.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{tensor.device}" to a storage on '
            f'different device "{source.device}".  This is no longer allowed; the devices must '
            "match."
        )
    is_tensor = isinstance(source, _C.TensorBase)
    untyped = source.untyped_storage() if is_tensor else source
    untyped = untyped if isinstance(untyped, UntypedStorage) else untyped.untyped()
    item = tensor.dtype.itemsize
    if whole and is_tensor:
        offset, size, stride = source.storage_offset(), source.size(), source.stride()
    elif whole:
        size = (untyped.nbytes() // item,)
    offset = 0 if offset is None else offset
    size = (size,) if isinstance(size, int) else tuple(size or ())
    stride = (stride,) if isinstance(stride, int) else stride and tuple(stride)
    if stride is None or len(stride) == 0:
        stride = _C.ops.empty(size, device="meta").stride()
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in size and len(size) == len(stride):
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        if (last + 1) * item > untyped.nbytes():
            untyped.resize_((last + 1) * item)
    memory = _C._tensor_on(untyped, tensor.dtype, offset, size, stride)
    if is_grad_enabled() and (tensor.requires_grad or (is_tensor and source.requires_grad)):
        return _other_memory().apply(tensor, source, memory)
    _C._increment_version(tensor)
    with no_grad():
        tensor.data = memory
    return tensor


@functools.cache
def _other_memory() -> type:
    """`set_` where there is a history; which of the elements come from where, nobody knows."""
    from rushlight.autograd import Function

    class Set(Function):
        @staticmethod
        def forward(ctx, tensor, source, memory):
            tensor.data = memory
            ctx.mark_dirty(tensor)
            return tensor

        @staticmethod
        def backward(ctx, grad):
            raise NotImplementedError(
                "derivative for set_ is not implemented: the tensor has other memory; use copy_"
            )

    return Set


class _StorageKind(type):
    """The class of `FloatStorage` and its like: a TypedStorage of its dtype is an instance."""

    dtype: _C.dtype

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


class _StorageName(metaclass=_StorageKind):
    """A `TypedStorage` of {1}, by the name that files use.

    Args:
        args: how many elements, or a sequence of their values.
        wrap_storage: an `UntypedStorage` to look at, instead.

    Example:
        >>> torch.{0}Storage.dtype
        {1}
    """

    def __new__(cls, *args, wrap_storage=None):
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file, mapped; see `UntypedStorage.from_file`."""
        nbytes = size * cls.dtype.itemsize
        return TypedStorage._from_untyped(
            UntypedStorage.from_file(filename, shared, nbytes), cls.dtype
        )

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count: int = -1, offset: int = 0):
        """Elements copied from an object's memory; see `UntypedStorage.from_buffer`."""
        untyped = UntypedStorage.from_buffer(buffer, byte_order, count, offset, cls.dtype)
        return TypedStorage._from_untyped(untyped, cls.dtype)


NAMES: dict[str, Any] = {}
for _kind, _dtype in {**_KINDS, **_CODE_KINDS}.items():
    _said = (_StorageName.__doc__ or "").format(_kind, _dtype)
    _members = {"dtype": _dtype, "__module__": "rushlight", "__doc__": _said}
    NAMES[f"{_kind}Storage"] = _StorageKind(f"{_kind}Storage", (_StorageName,), _members)
globals().update(NAMES)
Storage = NAMES["FloatStorage"]
# How the codes of quantised tensors are held.
CODES = {_C.qint8: _C.int8, _C.quint8: _C.uint8, _C.qint32: _C.int32}
OF_DTYPE = {kind.dtype: kind for kind in NAMES.values()}


def _dtype_to_storage_type_map():
    """The names of storages by dtype."""
    return {dtype: kind.__name__ for dtype, kind in OF_DTYPE.items()}


def _storage_type_to_dtype_map():
    """The dtypes by the names of their storages."""
    return {name: kind.dtype for name, kind in NAMES.items()}


def _load_from_bytes(b: bytes) -> Any:
    """What a pickle holds that PyTorch wrote of a tensor without `save`: a file in bytes.

    Whoever reads a pickle runs what is in it; these bytes are no different.
    """
    import io

    import rushlight

    return rushlight.load(io.BytesIO(b), weights_only=False)


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> _C.dtype:
    """The dtype by the name of a storage in files, "torch.FloatStorage"."""
    name = pickle_storage_type.rpartition(".")[2]
    if name not in NAMES:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return NAMES[name].dtype
