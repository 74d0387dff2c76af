"""Lazy modules: they learn the number of their inputs' channels or features from the first call,
and are ordinary modules from then on. To add one: a class over `LazyModuleMixin` and the ordinary
class that creates uninitialized parameters and writes `initialize_parameters(input)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import rushlight
from rushlight import _C

from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from . import batchnorm, conv, instancenorm, linear
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.types import Device

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyModuleMixin(Module):
    """The base of lazy modules: the first call, or loading a state, determines the sizes.

    A class sets `cls_to_become` and writes `initialize_parameters(*args, **kwargs)`, which is
    called with the arguments of the first call and materialises the parameters.
    """

    cls_to_become: Any = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _own_tensors(self) -> Iterator[tuple[str, Any]]:
        yield from self._parameters.items()
        yield from self._buffers.items()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._own_tensors():
            if value is None or name in self._non_persistent_buffers_set:
                continue
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self, state_dict, prefix, *rest):
        """Sizes from a state that has them; a lazy state leaves a lazy module as it is."""
        for name, own in list(self._own_tensors()):
            value = state_dict.get(prefix + name)
            if is_lazy(own) and value is not None and not is_lazy(value):
                own.materialize(value.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Set the sizes of the parameters from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self):
        """Whether any parameter or buffer has no size yet."""
        return any(is_lazy(value) for _, value in self._own_tensors())

    def _infer_parameters(self, module, args, kwargs=None):
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook
        del self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            f"DataParallel: the parameters of {type(self).__name__} have no sizes yet; run a dummy "
            "forward pass first"
        )


def _materialize(module: LazyModuleMixin, weight_shape: Sequence[int], width: int) -> None:
    """Gives a weight and a bias, if there is one, their sizes and starting values."""
    module.weight.materialize(weight_shape)
    if module.bias is not None:
        module.bias.materialize((width,))
    module.reset_parameters()


class _SizedByInput(LazyModuleMixin):
    """Of layers whose weights get their sizes from the first input."""

    _size: str  # the attribute of the size that the input has

    def _leave_open(self, bias: bool, device: Device, dtype: _C.dtype | None) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once they have sizes."""
        if not self.has_uninitialized_params() and getattr(self, self._size) != 0:
            super().reset_parameters()  # type: ignore


class LazyLinear(_SizedByInput, linear.Linear):
    """`Linear` whose `in_features` is the size of the first input's last dimension.

    Args:
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (*, n) to (*, out_features).

    Example:
        >>> layer = torch.nn.LazyLinear(2)
        >>> layer(torch.zeros(3, 5)).shape, layer.in_features
        (torch.Size([3, 2]), 5)
    """

    cls_to_become = linear.Linear
    _size = "in_features"

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._leave_open(bias, device, dtype)

    def initialize_parameters(self, input):
        self.in_features = input.shape[-1]
        if self.has_uninitialized_params():
            _materialize(self, (self.out_features, self.in_features), self.out_features)


class _LazyConv(_SizedByInput):
    """Of convolutions: `in_channels` is the first input's."""

    _size = "in_channels"
    groups: int
    kernel_size: tuple[int, ...]
    transposed: bool
    _dimensions: int

    def __init__(
        self, out_channels: int, kernel_size: int | tuple[int, ...], *args, **kwargs
    ) -> None:
        signature = inspect.signature(self.cls_to_become.__init__)
        given = signature.bind(self, 0, 0, kernel_size, *args, **kwargs).arguments
        device, dtype = given.pop("device", None), given.pop("dtype", None)
        bias = given.pop("bias", True)
        del given["self"]
        super().__init__(**given, bias=False)
        self.out_channels = out_channels
        if out_channels % self.groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self._leave_open(bias, device, dtype)

    def initialize_parameters(self, input, *args, **kwargs):
        dims = self._dimensions
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, not one of shape {input.shape}"
            )
        self.in_channels = input.shape[-dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if not self.has_uninitialized_params():
            return
        first, second = self.out_channels, self.in_channels // self.groups
        if self.transposed:
            first, second = self.in_channels, self.out_channels // self.groups
        _materialize(self, (first, second, *self.kernel_size), self.out_channels)


class _LazyNorm(_SizedByInput):
    """Of batch and instance norm: `num_features` is the number of the first input's channels."""

    _size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self._leave_open(True, device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = rushlight.tensor(0, dtype=rushlight.int64, device=device)

    def initialize_parameters(self, input: rushlight.Tensor) -> None:
        self._check_input_dim(input)
        unbatched = getattr(self, "_batched_dim", 0) - 1 == input.dim()
        self.num_features = input.shape[0 if unbatched else 1]
        if self.has_uninitialized_params():
            for _, value in list(self._own_tensors()):
                if is_lazy(value):
                    value.materialize((self.num_features,))
            self.reset_parameters()


_Lazy = TypeVar("_Lazy", bound=_SizedByInput)


def _lazy(shared: type[_Lazy], ordinary: type) -> type[_Lazy]:
    """The lazy form of an ordinary module: without its first argument."""
    name = ordinary.__name__
    text = (ordinary.__doc__ or "").partition("\n\n")[2]
    text = text.replace(f"{name}(3, ", f"Lazy{name}(").replace(f"{name}(3)", f"Lazy{name}()")
    _, *others = inspect.signature(ordinary).parameters.values()
    members = {
        "__doc__": f"`{name}` that learns its channels from the first input.\n\n{text}",
        "__module__": __name__,
        "__signature__": inspect.Signature(others),
        "cls_to_become": ordinary,
    }
    made: Any = type(f"Lazy{name}", (shared, ordinary), members)
    return made


LazyConv1d = _lazy(_LazyConv, conv.Conv1d)
LazyConv2d = _lazy(_LazyConv, conv.Conv2d)
LazyConv3d = _lazy(_LazyConv, conv.Conv3d)
LazyConvTranspose1d = _lazy(_LazyConv, conv.ConvTranspose1d)
LazyConvTranspose2d = _lazy(_LazyConv, conv.ConvTranspose2d)
LazyConvTranspose3d = _lazy(_LazyConv, conv.ConvTranspose3d)
LazyBatchNorm1d = _lazy(_LazyNorm, batchnorm.BatchNorm1d)
LazyBatchNorm2d = _lazy(_LazyNorm, batchnorm.BatchNorm2d)
LazyBatchNorm3d = _lazy(_LazyNorm, batchnorm.BatchNorm3d)
LazyInstanceNorm1d = _lazy(_LazyNorm, instancenorm.InstanceNorm1d)
LazyInstanceNorm2d = _lazy(_LazyNorm, instancenorm.InstanceNorm2d)
LazyInstanceNorm3d = _lazy(_LazyNorm, instancenorm.InstanceNorm3d)
