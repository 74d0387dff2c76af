"""`FakeTensorMode`: programs run on shapes, dtypes and devices alone, without memory.

A `FakeTensor` says that it is on a device, and holds a tensor on meta. Its ops run on those meta
tensors; what comes out is fake again, on the device where it would be.
"""

from __future__ import annotations

import weakref
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing


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


class FakeTensor(Tensor):
    """A tensor without values: sizes, strides, a dtype, and the device on which it would be."""

    fake_mode: FakeTensorMode
    fake_device: rushlight.device
    _meta: Tensor

    @staticmethod
    def __new__(cls, fake_mode, elem, device, requires_grad=False):
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
        return fake

    @staticmethod
    def from_tensor(t, fake_mode):
        """The fake of a real tensor, `fake_mode.from_tensor(t)`."""
        return fake_mode.from_tensor(t)

    def __repr__(self, *, tensor_contents=None):
        return (
            f"FakeTensor(..., size={tuple(self.shape)}"
            + ("" if self.dtype == rushlight.get_default_dtype() else f", dtype={self.dtype}")
            + ("" if self.fake_device.type == "cpu" else f", device='{self.fake_device}'")
            + (", requires_grad=True)" if self.requires_grad and self.is_leaf else ")")
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        mode = next(
            leaf.fake_mode
            for leaf in _pytree.tree_iter((args, kwargs))
            if isinstance(leaf, FakeTensor)
        )
        with mode:
            return func(*args, **(kwargs or {}))

    def tolist(self):
        raise DataDependentOutputException("tolist")

    def numpy(self, *, force=False):
        raise DataDependentOutputException("numpy")


def is_fake(x: object) -> bool:
    """Whether it is a fake tensor."""
    return isinstance(x, FakeTensor)


class FakeTensorMode(TorchDispatchMode):
    """Within it, factories make fake tensors, and ops on fake tensors compute shapes alone.

    Args:
        allow_non_fake_inputs: real tensors among the arguments of an op are taken as their fakes;
            otherwise they raise an AssertionError.
    """

    def __init__(self, *, allow_non_fake_inputs=False, shape_env=None):
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: sizes are numbers; there is no shape_env")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self._known: dict[int, tuple[Any, FakeTensor]] = {}

    def from_tensor(self, tensor):
        """The fake of a real tensor: the same one each time, as long as the real one lives."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("this FakeTensor belongs to another FakeTensorMode")
            return tensor
        if not isinstance(tensor, Tensor):
            raise UnsupportedFakeTensorException(f"expected a Tensor, but got {type(tensor)}")
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        elem = rushlight.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
        )
        fake = FakeTensor(self, elem, tensor.device, tensor.requires_grad)
        if isinstance(tensor, rushlight.nn.Parameter):
            fake._is_param = True
        key = id(tensor)
        self._known[key] = (weakref.ref(tensor, lambda _: self._known.pop(key, None)), fake)
        return fake

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [t for t in _pytree.tree_iter((args, kwargs)) if isinstance(t, Tensor)]
        real = [t for t in tensors if not isinstance(t, FakeTensor)]
        if func is rushlight.ops.aten.lift_fresh.default and real:
            return self.from_tensor(real[0])
        if real and not self.allow_non_fake_inputs:
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                f"with 'allow_non_fake_inputs'. Found in {func}: {real[0].shape}"
            )
        if func is rushlight.ops.aten._local_scalar_dense.default:
            raise DataDependentOutputException(func)
        args, kwargs = _pytree.tree_map_only(Tensor, self.from_tensor, (args, kwargs))
        device = self._device(func, [self.from_tensor(t) for t in tensors], kwargs)
        if any(a.name == "device" for a in func._schema.arguments):
            kwargs["device"] = "meta"
        on_meta = _pytree.tree_map_only(FakeTensor, lambda t: t._meta, (args, kwargs))
        try:
            made = func(*on_meta[0], **on_meta[1])
        except NotImplementedError as error:
            if "depends on values" in str(error):
                raise DynamicOutputShapeException(func) from error
            raise
        fakes = _pytree.tree_map_only(Tensor, lambda t: FakeTensor(self, t, device), made)
        return return_and_correct_aliasing(func, args, kwargs, fakes)

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
