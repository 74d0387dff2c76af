"""`FakeTensorMode`: programs run on shapes, dtypes and devices alone, without memory.

A `FakeTensor` says that it is on a device, and holds a tensor on meta. Its ops run on those meta
tensors; what comes out is fake again, on the device where it would be.
"""

from __future__ import annotations

import contextlib
import copy
import weakref

import rushlight
from rushlight import Tensor
from rushlight._library.registry import CustomOverload
from rushlight._subclasses import settings as config
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
    return_and_correct_aliasing,
)


class DataDependentOutputException(RuntimeError):
    """A result that depends on values, which fake tensors lack: `item`, a truth value."""

    def __init__(self, func):
        super().__init__(f"{func}: the result depends on the values of a fake tensor")
        self.func = func


class DynamicOutputShapeException(RuntimeError):
    """A result whose shape depends on values, which fake tensors lack: `nonzero`."""

    def __init__(self, func):
        super().__init__(f"{func}: the shape of the result depends on the values of a fake tensor")
        self.func = func


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be made a fake one."""


class UnsupportedOperatorException(RuntimeError):
    """An op of one's own without a function for fake tensors."""

    def __init__(self, func):
        super().__init__(f"{func}: there is no function for fake tensors (library.register_fake)")
        self.func = func


class MetadataMismatchError(RuntimeError):
    """A fake tensor differs in size, strides, dtype or device from the real one."""


class FakeTensor(Tensor):
    """A tensor without values: sizes, strides, a dtype, and the device on which it would be."""

    fake_mode: FakeTensorMode
    fake_device: rushlight.device
    constant: Tensor | None  # its value where that is known: one number from the program
    real_tensor: Tensor | None  # its values, where the mode propagates them
    _meta: Tensor

    @staticmethod
    def __new__(cls, fake_mode, elem, device, requires_grad=False, constant=None, real_tensor=None):
        """`elem` lies on meta."""
        fake = Tensor._make_wrapper_subclass(
            cls,
            tuple(elem.shape),
            elem.stride(),
            elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=requires_grad,
        )
        fake.fake_mode, fake.fake_device, fake._meta = fake_mode, rushlight.device(device), elem
        fake.constant, fake.real_tensor = None, real_tensor
        if constant is not None:
            fake_mode._constants.add(fake, constant)
        return fake

    @staticmethod
    def from_tensor(t, fake_mode):
        """Convert a real tensor to a fake one, as `fake_mode.from_tensor(t)`."""
        return fake_mode.from_tensor(t)

    def __repr__(self, *, tensor_contents=None):
        said = ["..."]
        if self.fake_device.type != "cpu":
            said.append(f"device='{self.fake_device}'")
        said.append(f"size={tuple(self.shape)}")
        if self.dtype != rushlight.get_default_dtype():
            said.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            said.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            said.append("requires_grad=True")
        return f"FakeTensor({', '.join(said)})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        mode = next(
            leaf.fake_mode
            for leaf in _pytree.tree_iter((args, kwargs))
            if isinstance(leaf, FakeTensor)
        )
        with mode:
            return func(*args, **(kwargs or {}))

    def __deepcopy__(self, memo: dict) -> Tensor:
        """A fake tensor of the same mode, which is not copied."""
        if id(self) in memo or not self.is_leaf:
            return super().__deepcopy__(memo)
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = copied
        copied.grad = copy.deepcopy(self.grad, memo)
        vars(copied).update(copy.deepcopy(self._attributes_of_programs(), memo))
        return copied

    def __copy__(self) -> Tensor:
        copied = self.detach().requires_grad_(self.requires_grad)
        vars(copied).update(self._attributes_of_programs())
        return copied

    def _attributes_of_programs(self) -> dict:
        return {k: v for k, v in vars(self).items() if k not in FakeTensor.__annotations__}

    def untyped_storage(self):
        """The storage on the meta device."""
        return self._meta.untyped_storage()

    def tolist(self):
        raise DataDependentOutputException("tolist")

    def numpy(self, *, force=False):
        raise DataDependentOutputException("numpy")


def _dtype_of(number):
    """The dtype of a tensor that stands for a number."""
    if isinstance(number, bool):
        return rushlight.bool
    if isinstance(number, int):
        return rushlight.int64
    default = rushlight.get_default_dtype()
    return default if isinstance(number, float) else default.to_complex()


def is_fake(x: object) -> bool:
    """Whether an object is a fake tensor."""
    return isinstance(x, FakeTensor)


def _without_masks(func, args):
    """Arguments of a write at indices, with places instead of masks: it changes no shape."""
    if func.overloadpacket not in (rushlight.ops.aten.index_put, rushlight.ops.aten.index_put_):
        return args
    x, indices, values, *rest = args
    masks = [i for i in indices if i is not None and i.dtype == rushlight.bool]
    if not masks:
        return args
    # How many elements are written nobody knows; it is as many as there are values, or one.
    first = next(i for i, index in enumerate(indices) if index is not None)
    written = sum(1 if i.dtype != rushlight.bool else i.dim() for i in indices if i is not None)
    behind = x.dim() - first - written
    count = values.shape[-1 - behind] if values.dim() > behind else 1
    places = rushlight.zeros(count, dtype=rushlight.int64, device="meta")
    found = []
    for index in indices:
        if index is not None and index.dtype == rushlight.bool:
            found += [places] * index.dim()
        else:
            found.append(index)
    return (x, found, values, *rest)


class FakeTensorConverter:
    """Converts real tensors to fake ones; the same tensor gives the same fake, while both exist.

    Tensors on one storage get meta tensors on one.
    """

    def __init__(self) -> None:
        # By the id of a real tensor; an entry goes with it or with its fake.
        self.tensor_memo: dict[int, weakref.ref] = {}
        self._watched: dict[int, weakref.ref] = {}
        self._storages: dict[tuple[int, int], weakref.ref] = {}
        self._copies: dict[tuple[int, int], weakref.ref] = {}

    def _find_fake(self, tensor):
        watched, fake = self._watched.get(id(tensor)), self.tensor_memo.get(id(tensor))
        return fake() if watched is not None and watched() is tensor and fake is not None else None

    def _remember(self, tensor, fake):
        key, this = id(tensor), weakref.ref(self)

        def forget(_):
            converter = this()
            if converter is not None:
                converter.tensor_memo.pop(key, None)
                converter._watched.pop(key, None)

        self._watched[key] = weakref.ref(tensor, forget)
        self.tensor_memo[key] = weakref.ref(fake, forget)
        return fake

    def _move_storage(self, tensor, move, storages):
        """What `move` makes of a tensor's storage, seen as the tensor sees it."""
        if tensor.layout is not rushlight.strided or tensor.is_meta:
            return move(tensor.detach())
        storage = tensor.untyped_storage()
        key = storage._cdata, storage.nbytes()
        known = storages.get(key)
        whole = known() if known is not None else None
        if whole is None:
            size = storage.nbytes() // tensor.element_size()
            flat = rushlight.empty(0, dtype=tensor.dtype, device=tensor.device)
            whole = move(flat.set_(storage, 0, (size,), (1,)))
            storages[key] = weakref.ref(whole, lambda _: storages.pop(key, None))
            if not whole.is_meta:
                whole._of = storage  # while it lives, no other storage has its address
        if whole.dtype != tensor.dtype:
            other = rushlight.empty(0, dtype=tensor.dtype, device=whole.device)
            whole = other.set_(whole.untyped_storage())
        moved = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).detach()
        moved._whole = whole
        return moved

    def from_real_tensor(self, fake_mode, tensor):
        """Convert a real tensor to a fake one."""
        known = self._find_fake(tensor)
        if known is not None:
            return known
        with _disable_current_modes():
            meta = self._move_storage(tensor, lambda t: t.to("meta"), self._storages)
            real = None
            if fake_mode.propagate_real_tensors:
                real = self._move_storage(tensor, Tensor.clone, self._copies)
        fake = fake_mode.kind(
            fake_mode, meta, tensor.device, tensor.requires_grad, real_tensor=real
        )
        if isinstance(tensor, rushlight.nn.Parameter):
            fake._is_param = True
        self._remember(tensor, fake)
        if tensor.is_leaf and tensor.grad is not None:
            fake.grad = fake_mode.from_tensor(tensor.grad)
        return fake

    def from_meta_and_device(self, fake_mode, tensor, device):
        """A fake on a device that stands on a tensor on meta."""
        known = self._find_fake(tensor)
        if known is not None and known.fake_device == rushlight.device(device):
            return known
        if not tensor.is_meta:
            raise AssertionError(f"tensor's device must be `meta`, got {tensor.device.type}")
        return self._remember(tensor, fake_mode.kind(fake_mode, tensor, device))


class Constants:
    """Which fakes have a known value, by the storage of that value."""

    def __init__(self) -> None:
        self._fakes: dict[int, list[weakref.ref]] = {}

    def add(self, fake, value):
        """The value of a fake."""
        fake.constant = value
        self._fakes.setdefault(value.untyped_storage()._cdata, []).append(weakref.ref(fake))

    def drop(self, value):
        """Forgets the values of all fakes on a storage."""
        for known in self._fakes.pop(value.untyped_storage()._cdata, ()):
            fake = known()
            if fake is not None:
                fake.constant = None

    @staticmethod
    def fits(value):
        """Whether a tensor is kept as a value."""
        return (
            isinstance(value, Tensor)
            and not isinstance(value, FakeTensor)
            and value.layout is rushlight.strided
            and value.numel() <= 1
            and not value.is_meta
        )


@contextlib.contextmanager
def unset_fake_temporarily():
    """A context manager in which no fake mode is active, and tensors are real."""
    with _disable_current_modes():
        yield


class FakeTensorMode(TorchDispatchMode):
    """A mode in which factories make fake tensors, and ops on fake tensors compute only shapes.

    If `_functorch.config.fake_tensor_propagate_real_tensors` is set when the mode is made, fakes
    carry copies of real tensors (`real_tensor`), and ops run on those, too.

    Args:
        allow_fallback_kernels: accepted; ops run on meta alone.
        allow_non_fake_inputs: real tensors among the arguments of an op are taken as their fakes;
            otherwise they raise an AssertionError.
    """

    kind = FakeTensor  # what tensors of the mode are
    whole: frozenset = frozenset()  # ops made of others that a trace runs as one

    def __init__(
        self,
        *,
        allow_fallback_kernels=True,
        allow_non_fake_inputs=False,
        shape_env=None,
        static_shapes=None,
        export=False,
    ):
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: sizes are numbers; there is no shape_env")
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.static_shapes, self.shape_env, self.export = True, None, export
        self.propagate_real_tensors = config.fake_tensor_propagate_real_tensors
        self.fake_tensor_converter = FakeTensorConverter()
        self._constants = Constants()

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None):
        """Convert a real tensor to a fake one; the same tensor gives the same fake."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError(
                    "Mixing fake modes NYI: this FakeTensor belongs to another FakeTensorMode"
                )
            return tensor
        if not isinstance(tensor, Tensor):
            raise UnsupportedFakeTensorException(f"expected a Tensor, but got {type(tensor)}")
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def _lift(self, tensor):
        """A tensor that the program wrote down: one number of it is known."""
        real = tensor.clone() if self.propagate_real_tensors else None
        fake = self.kind(self, tensor.to("meta"), tensor.device, real_tensor=real)
        if Constants.fits(tensor):
            self._constants.add(fake, tensor)
        return fake

    def _numbers_lifted(self, func, args):
        """Arguments with tensors in place of the numbers that stand for them."""
        kinds = [a.type for a in func._schema.arguments]
        return tuple(
            self._lift(rushlight.scalar_tensor(a, dtype=_dtype_of(a)))
            if kind == "Tensor" and isinstance(a, (bool, int, float, complex))
            else a
            for a, kind in zip(args, kinds, strict=False)
        )

    def _fold_constants(self, func, fakes, args, kwargs):
        """The result on known values; None if one is not known, or chance is in it."""
        written = [
            t
            for a, v in zip(func._schema.arguments, args, strict=False)
            if a.alias_info is not None and a.alias_info.is_write
            for t in _pytree.tree_iter(v)
            if isinstance(t, FakeTensor) and t.constant is not None
        ]
        known = fakes and all(t.constant is not None for t in fakes)
        result = None
        if known:
            values = _pytree.tree_map_only(FakeTensor, lambda t: t.constant, (args, kwargs))
            with _disable_current_modes(), rushlight.no_grad():
                state = rushlight.get_rng_state()
                result = func(*values[0], **values[1])
                drawn = not rushlight.equal(state, rushlight.get_rng_state())
                if drawn:
                    rushlight.set_rng_state(state)
            leaves = _pytree.tree_leaves(result)
            if not drawn and all(Constants.fits(v) for v in leaves):
                return result
            for v in leaves:
                if isinstance(v, Tensor):
                    self._constants.drop(v)
        for t in written:
            if t.constant is not None:
                self._constants.drop(t.constant)
        return None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [t for t in _pytree.tree_iter((args, kwargs)) if isinstance(t, Tensor)]
        real = [t for t in tensors if not isinstance(t, FakeTensor)]
        if func is rushlight.ops.aten.lift_fresh.default and real:
            with _disable_current_modes():
                return self._lift(real[0])
        if real and not self.allow_non_fake_inputs:
            raise AssertionError(
                f"{func} got a real tensor of shape {real[0].shape}. Please convert all Tensors to "
                "FakeTensors, by `mode.from_tensor`, or let the mode do so: "
                "FakeTensorMode(allow_non_fake_inputs=True)"
            )
        args, kwargs = _pytree.tree_map_only(Tensor, self.from_tensor, (args, kwargs))
        with _disable_current_modes():
            args = self._numbers_lifted(func, args)
        fakes = [t for t in _pytree.tree_iter((args, kwargs)) if isinstance(t, FakeTensor)]
        if func is rushlight.ops.aten._local_scalar_dense.default:
            if fakes[0].constant is None:
                return self.unknown_number(func, fakes[0])
            with _disable_current_modes():
                return fakes[0].constant.item()
        real = self._on_real(func, fakes, args, kwargs)
        if isinstance(func, CustomOverload):
            return self._with_real(self._custom(func, args, kwargs), real)
        computed = self._fold_constants(func, fakes, args, kwargs)
        device = self._device(func, fakes, kwargs)
        if any(a.name == "device" for a in func._schema.arguments):
            kwargs["device"] = "meta"
        on_meta = _pytree.tree_map_only(FakeTensor, lambda t: t._meta, (args, kwargs))
        try:
            made = self.of_unknown_size(func, *on_meta)
            if made is NotImplemented:
                with self._others_disabled():
                    made = func(*_without_masks(func, on_meta[0]), **on_meta[1])
        except NotImplementedError as error:
            if "depends on values" in str(error):
                raise DynamicOutputShapeException(func) from error
            raise
        fakes = _pytree.tree_map_only(Tensor, lambda t: self.kind(self, t, device), made)
        result = return_and_correct_aliasing(func, args, kwargs, fakes)
        if computed is not None:
            pairs = zip(_pytree.tree_leaves(result), _pytree.tree_leaves(computed), strict=True)
            for fake, value in pairs:
                if fake.constant is not value:
                    self._constants.add(fake, value)
        return self._with_real(result, real)

    def _others_disabled(self) -> contextlib.AbstractContextManager:
        """No mode, if this one is within a fake mode: the innermost alone makes fakes."""
        fakes = [m for m in _get_current_dispatch_mode_stack() if isinstance(m, FakeTensorMode)]
        return _disable_current_modes() if len(fakes) > 1 else contextlib.nullcontext()

    def unknown_number(self, func, tensor):
        """The number in a tensor whose value is not known."""
        raise DataDependentOutputException(func)

    def of_unknown_size(self, func, args, kwargs):
        """The result, on meta, of an op whose sizes depend on values; NotImplemented of others.

        `func`, `args` and `kwargs` are the call. A mode that knows such sizes overrides it.
        """
        del func, args, kwargs
        return NotImplemented

    def _on_real(self, func, fakes, args, kwargs):
        """The result on the real tensors; None if they are not carried along."""
        if not self.propagate_real_tensors or any(t.real_tensor is None for t in fakes):
            return None
        args, kwargs = _pytree.tree_map_only(FakeTensor, lambda t: t.real_tensor, (args, kwargs))
        with _disable_current_modes():
            return func(*args, **kwargs)

    @staticmethod
    def _with_real(result, real):
        """The fakes, each with its real tensor."""
        if real is not None:
            pairs = zip(_pytree.tree_leaves(result), _pytree.tree_leaves(real), strict=True)
            for fake, tensor in pairs:
                if isinstance(fake, FakeTensor):
                    fake.real_tensor = tensor
        return result

    def _custom(self, func, args, kwargs):
        """An op of one's own: by its function for fake tensors, or by what it is made of."""
        function = func.fake or func.composite
        if function is None:
            raise UnsupportedOperatorException(func)
        with self:
            return function(*args, **kwargs)

    @staticmethod
    def _device(func, fakes, kwargs):
        """Where the results of an op are."""
        said = kwargs.get("device")
        if said is not None:
            return rushlight.device(said)
        if not fakes:
            return rushlight.get_default_device()
        # A 0-d tensor on the CPU may be an operand anywhere.
        placed = [t for t in fakes if t.dim() > 0 or t.fake_device.type != "cpu"] or fakes
        devices = dict.fromkeys(t.fake_device for t in placed)
        if len(devices) > 1:
            names = ", ".join(map(str, devices))
            raise RuntimeError(
                f"Unhandled FakeTensor Device Propagation for {func}, found two different devices "
                f"{names}"
            )
        return next(iter(devices))
