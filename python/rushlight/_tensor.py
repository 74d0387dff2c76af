"""`Tensor`: the Python class over the C type `_C.TensorBase`.

What is hot or touches memory is in C++ (`src/python`); here is what reads better in Python:
copying, pickling, conversion to text and to numpy, `__torch_function__` of subclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import _C, functional
from rushlight._lazy import later

# Modules that themselves need this class, and one that not every program needs.
_tensor_str = later("rushlight._tensor_str")
_page = later("rushlight._texts.page")
overrides = later("rushlight.overrides")
_utils = later("rushlight._utils")
dlpack = later("rushlight.utils.dlpack")
legacy = later("rushlight._names.legacy")
_types = later("rushlight.sparse._types")
_storage = later("rushlight.storage")
reductions = later("rushlight.multiprocessing.reductions")
_quantized = later("rushlight._quantized")
_copy = later("copy")

_NO_WRAP = frozenset({"grad", "_grad", "_base"})


class Tensor(_C.TensorBase, metaclass=_C._TensorMeta):
    """A view of memory with sizes, strides, a dtype and a device: the values that programs compute
    with.

    `Tensor(2, 3)` makes an uninitialised tensor of these sizes, `Tensor([1, 2])` one of the default
    dtype with this data. `rushlight.tensor` is the better way to make one.

    Args:
        data: sizes, or the elements.
        device: where it lies.

    Example:
        >>> x = torch.tensor([[1.0, 0.5], [3.0, 4.0]])
        >>> x.shape, x.dtype, x.device
        (torch.Size([2, 2]), torch.float32, device(type='cpu'))
        >>> (x @ x.T).sum().item()
        36.25
    """

    __module__ = "rushlight"
    # numpy's operators leave mixed expressions to this class.
    __array_priority__ = 1000
    # Names of Python 2, which programs still hand on.
    __div__ = _C.TensorBase.__truediv__
    __rdiv__ = _C.TensorBase.__rtruediv__
    __idiv__ = _C.TensorBase.__itruediv__
    # Subclasses that define it see every op that they take part in (utils/_python_dispatch.py).
    __torch_dispatch__ = _C._disabled_torch_dispatch_impl

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Runs the function as for plain tensors and gives its results this class."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        before = _C._swap_torch_function_disabled(True, False)
        try:
            result = func(*args, **({} if kwargs is None else kwargs))
        finally:
            _C._swap_torch_function_disabled(*before)
        owner = getattr(func, "__self__", None)
        if (
            getattr(func, "__name__", "") == "__get__"
            and getattr(owner, "__name__", "") in _NO_WRAP
        ):
            return result
        return _convert(result, cls)

    def __repr__(self, *, tensor_contents=None):
        if type(self).__torch_function__ is not Tensor.__torch_function__:
            return _without_override(_tensor_str._str, self, tensor_contents=tensor_contents)
        return _tensor_str._str(self, tensor_contents=tensor_contents)

    def _repr_html_(self):
        return _without_override(_page.of_tensor, self)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    def __reversed__(self):
        return self if self.dim() == 0 else self.flip(0)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A plain tensor of the components of a nested one, padded with `padding`."""
        if _C._has_torch_function(self):
            return overrides.handle_torch_function(
                Tensor.to_padded_tensor, (self,), self, padding, output_size
            )
        raise NotImplementedError("to_padded_tensor(): the tensor is not nested")

    # ---- copying and pickling ----

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user are copied by deepcopy, and this one "
                "was computed; detach() gives one that can be copied. In a module it may be an "
                "attribute that a forward pass or weight_norm has left."
            )
        if id(self) in memo:
            return memo[id(self)]
        copy = _on_copied_storage(self, memo)
        if type(copy) is not type(self):
            copy = copy.as_subclass(type(self))
        copy.requires_grad_(self.requires_grad)
        memo[id(self)] = copy
        if self.grad is not None:
            copy.grad = _copy.deepcopy(self.grad, memo)
        if self.__dict__:
            vars(copy).update(_copy.deepcopy(self.__dict__, memo))
        return copy

    def __reduce_ex__(self, protocol):
        function, parts = _utils.reduce_tensor(self)
        if type(self) is Tensor and not self.__dict__:
            return function, parts
        state = _utils._get_obj_state(self)
        return _rebuild_from_type_v2, (function, type(self), parts, state)

    # ---- numpy ----

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array.dtype == bool:
            array = array.astype("uint8")  # as numpy's comparisons with tensors have always given
        return _C.ops.from_numpy(array) if array.ndim else _C.ops.as_tensor(array)

    # ---- DLPack ----

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule that shares the memory (with copy=True: of a copy).

        Raises:
            BufferError: it requires grad, or it cannot be shared with `dl_device`.
        """
        return dlpack._dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        """The kind of its device and its number, as DLPack counts them."""
        return dlpack._dlpack_device(self)

    # ---- types ----

    def type(
        self,
        dtype: Any = None,
        non_blocking: bool = False,
        *,
        memory_format: _C.memory_format = _C.preserve_format,
        **kwargs: Any,
    ) -> Any:
        """The name of the tensor's type, "torch.FloatTensor"; with a dtype, name or class, a
        converted tensor. `async` is an old name of non_blocking.
        """
        non_blocking = kwargs.pop("async", non_blocking)
        if kwargs:
            raise TypeError(f"type() got an unexpected keyword argument {next(iter(kwargs))!r}")
        if dtype is None:
            return legacy.type_name(self.dtype, self.device, self.layout)
        target, device = legacy.parse_type(dtype)
        return self.to(device or self.device, target, non_blocking, memory_format=memory_format)

    def new(self, *args: Any, **kwargs: Any) -> Tensor:
        """A new tensor of the same dtype from sizes or data, as the constructor takes them."""
        if self.layout is not _C.strided:
            return _types.legacy_sparse(self.dtype, args, kwargs)
        if "device" not in kwargs:
            kwargs["device"] = self.device
        return _C._legacy_tensor(self.dtype, args, kwargs)

    # ---- what stands before ops in Python ----

    nonzero: Callable[..., Any] = _C._Offered(functional.nonzero.__wrapped__)
    norm: Callable[..., Tensor] = _C._Offered(functional.norm.__wrapped__)
    unique: Callable[..., Any] = _C._Offered(functional.unique.__wrapped__)
    unique_consecutive: Callable[..., Any] = _C._Offered(functional.unique_consecutive.__wrapped__)
    lu: Callable[..., Any] = _C._Offered(functional.lu.__wrapped__)
    eig, symeig, lstsq = functional.eig, functional.symeig, functional.lstsq
    solve, matrix_rank = functional.solve, functional.matrix_rank

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """The tensor that replaces this parameter in `load_state_dict` when tensors are swapped.

        Args:
            other: the tensor from the state.
            assign: take it as it is; otherwise its numbers are copied into this one.
        """
        if _C._has_torch_function(self, other):
            return _C._offer_torch_function(
                Tensor.module_load, (self, other), (self, other), {"assign": assign}
            )
        return other.detach() if assign else self.copy_(other).detach()

    def dim_order(self, *, ambiguity_check: bool = False) -> tuple[int, ...]:
        """The dimensions in their order in memory, the outermost first.

        Raises:
            RuntimeError: `ambiguity_check`, and sizes of 1 or equal strides allow several orders.
        """
        order = sorted(range(self.dim()), key=lambda d: (-self.stride(d), d))
        if ambiguity_check:
            strides = [self.stride(d) for d in order]
            if len(set(strides)) < len(strides) or 1 in self.shape:
                raise RuntimeError("The tensor does not have unique dim order.")
        return tuple(order)

    def apply_(self, callable: Callable[..., Any]) -> Tensor:
        """Replace every element by `callable(element)`; slow, for experiments."""
        return _map_into("apply_", callable, self)

    def map_(self, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
        """Replace every element by `callable(element, element of tensor)`; slow."""
        return _map_into("map_", callable, self, tensor)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
        """Replace every element by `callable(element, element of x, element of y)`; slow."""
        return _map_into("map2_", callable, self, x, y)

    # ---- memory ----

    def set_(
        self,
        source: Any = None,
        storage_offset: int | None = None,
        size: Any = None,
        stride: Any = None,
    ) -> Tensor:
        """Make the tensor a view of other memory, in place; other tensors on its old memory stay
        there.

        Args:
            source: a tensor or storage; None: no elements.
            storage_offset: where it begins, in elements. With it `size` is needed.
            size: its size; by default that of `source`.
            stride: its strides; by default those of a contiguous tensor.
        """
        if _C._has_torch_function(self, source):
            return _C._offer_torch_function(
                Tensor.set_, (self, source), (self, source, storage_offset, size, stride), {}
            )
        return _storage.set_tensor(self, source, storage_offset, size, stride)

    def _is_view(self) -> bool:
        """Whether it is a view that autograd follows."""
        return self._base is not None

    def storage(self) -> Any:
        """The memory of the tensor, as elements of its dtype."""
        _storage._warn_typed_storage_removal()
        return _storage.TypedStorage._from_untyped(self.untyped_storage(), self.dtype)

    def storage_type(self) -> Any:
        """The class of the tensor's storage, such as `FloatStorage`."""
        if not self.is_meta:
            self.untyped_storage()  # raises where there is none
        return _storage.OF_DTYPE.get(self.dtype, _storage.TypedStorage)

    @_C._Offered
    def dequantize(self) -> Tensor:
        """Convert the codes of a quantised tensor to float32."""
        return _quantized.dequantize(self)

    @_C._Offered
    def int_repr(self) -> Tensor:
        """The codes of a quantised tensor."""
        return _quantized.int_repr(self)

    @_C._Offered
    def q_scale(self) -> float:
        """The scale of a quantised tensor that has one."""
        return _quantized.q_scale(self)

    @_C._Offered
    def q_zero_point(self) -> int:
        """The zero point of a quantised tensor that has one."""
        return _quantized.q_zero_point(self)

    @_C._Offered
    def q_per_channel_scales(self) -> Tensor:
        """The scales of a tensor that is quantised by channels."""
        return _quantized.q_per_channel_scales(self)

    @_C._Offered
    def q_per_channel_zero_points(self) -> Tensor:
        """The zero points of a tensor that is quantised by channels."""
        return _quantized.q_per_channel_zero_points(self)

    @_C._Offered
    def q_per_channel_axis(self) -> int:
        """The dimension of the channels of a tensor that is quantised by them."""
        return _quantized.q_per_channel_axis(self)

    @_C._Offered
    def qscheme(self) -> Any:
        """The scheme of a quantised tensor."""
        return _quantized.scheme_of(self)

    def to_sparse_coo(self) -> Tensor:
        """`to_sparse` with the layout COO."""
        return self.to_sparse()

    def share_memory_(self) -> Tensor:
        """Move the tensor to shared memory, in place, so that other processes can see it."""
        return reductions.share_memory_(self)

    def is_shared(self) -> bool:
        """Whether other processes may see the tensor's memory."""
        return reductions.is_shared(self)

    def pin_memory(self, device: Any = None) -> Tensor:
        """A copy in pinned memory, which a GPU can read directly; RuntimeError without a GPU."""
        return _C._pin_memory(self)

    def record_stream(self, stream: Any) -> None:
        """Keep the memory from being reused until the work that is queued on `stream` is done."""
        stream._record_use(self)


def _map_into(name, callable, tensor, *others):
    """Writes what `callable` gives for the elements of `tensor` and of those that follow it."""
    if tensor.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. "
            f"Use var.detach().{name}() instead."
        )
    elements = [t.expand_as(tensor).reshape(-1).tolist() for t in (tensor, *others)]
    values = [callable(*element) for element in zip(*elements, strict=True)]
    for value in values:
        if not isinstance(value, (bool, int, float, complex, _C.TensorBase)):
            raise TypeError(f"{name}(): expected a number, but got {type(value).__name__}")
    return tensor.copy_(_C.ops.tensor(values, dtype=tensor.dtype).reshape(tensor.shape))


def _without_override(function, *args, **kwargs):
    """Calls with `__torch_function__` switched off."""
    before = _C._swap_torch_function_disabled(True, True)
    try:
        return function(*args, **kwargs)
    finally:
        _C._swap_torch_function_disabled(*before)


def _convert(result, cls):
    """Tensors in a result, also inside lists and tuples, as instances of a subclass."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        # Sparse tensors have no memory that another class could be put over.
        return result.as_subclass(cls) if result.layout is _C.strided else result
    if type(result) in (list, tuple):
        return type(result)(_convert(r, cls) for r in result)
    if isinstance(result, tuple) and hasattr(result, "n_sequence_fields"):  # a named result
        return type(result)(_convert(r, cls) for r in result)
    return result


def _rebuild_from_type_v2(func, new_type, args, state):
    """What pickles call to make a tensor of a subclass, or one with attributes."""
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if hasattr(tensor, "__setstate__"):
        tensor.__setstate__(state)
    else:
        _utils._set_obj_state(tensor, state)
    return tensor


def _on_copied_storage(tensor, memo):
    """The same window on a copy of the storage; tensors that share one share its copy."""
    if tensor.device.type == "meta" or tensor.layout is not _C.strided:
        return tensor.detach().clone()
    if _utils.is_wrapper(tensor):
        copy = tensor.detach().clone()
        if type(copy) is not type(tensor):
            raise RuntimeError(
                f"__deepcopy__(): {type(tensor).__name__} wraps tensors, so clone() copies it, and "
                f"its clone() gave a {type(copy).__name__}: return a {type(tensor).__name__}"
            )
        return copy
    storage = _storage._deepcopy_storage(tensor.untyped_storage(), memo)
    size, stride = tuple(tensor.size()), tensor.stride()
    return _C._tensor_on(storage, tensor.dtype, tensor.storage_offset(), size, stride)


class _DisableTorchFunctionSubclass:
    """Within it `__torch_function__` of arguments is not asked.

    Example:
        >>> class Silent(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, function, *rest):
        ...         raise LookupError(f"nobody may call {function.__name__}")
        >>> x = torch.ones(2).as_subclass(Silent)
        >>> with torch._C.DisableTorchFunctionSubclass():
        ...     print(torch.dot(x, x).item())
        2.0
    """

    _modes_too = False

    def __enter__(self):
        self._before = _C._swap_torch_function_disabled(True, self._modes_too)
        return self

    def __exit__(self, kind, value, trace):
        _C._swap_torch_function_disabled(*self._before)


class _DisableTorchFunction(_DisableTorchFunctionSubclass):
    """Within it neither arguments nor modes are asked.

    For an example see `DisableTorchFunctionSubclass`.
    """

    _modes_too = True


def _log_api_usage_once(event):
    """Accepted: nothing is told to anybody."""


_C._set_tensor_class(Tensor)
_C._log_api_usage_once = _log_api_usage_once


class _DisableTorchDispatch:
    """Within it tensors whose class has `__torch_dispatch__` are plain ones on this thread."""

    def __enter__(self) -> None:
        self._before = _C._swap_dispatch_disabled(True)

    def __exit__(self, *error):
        _C._swap_dispatch_disabled(self._before)


_C._DisableTorchDispatch = _DisableTorchDispatch
_C.DisableTorchFunctionSubclass = _DisableTorchFunctionSubclass
_C.DisableTorchFunction = _DisableTorchFunction
