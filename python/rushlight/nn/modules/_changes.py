"""What a module does to all modules, parameters and buffers below it: modes, devices, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import __future__
from rushlight._warnings import warn
from rushlight.utils import swap_tensors

if TYPE_CHECKING:
    from typing_extensions import Self

    from rushlight.nn.modules.module import Module
    from rushlight.types import Device

from ..parameter import Parameter, clear_grads, is_lazy
from ._to import _parse_to
from ._tree import ModuleTree


class _Application:
    """A function that `_apply` hands down, and what became of the tensors that it has met.

    So a parameter or buffer of several names, and of several modules, stays one.
    """

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self._made: dict[int, tuple[Any, Any]] = {}  # with the tensor, for ids are used again

    def __call__(self, tensor: Any) -> Any:
        return self.fn(tensor)

    def once(self, tensor: Any, change: Callable[[Any], Any]) -> Any:
        """`change` of a tensor, or what that was before; a result is not changed again."""
        if id(tensor) not in self._made:
            result = change(tensor)
            self._made[id(tensor)] = tensor, result
            self._made[id(result)] = result, result
        return self._made[id(tensor)][1]


class ModuleChanges(ModuleTree):
    """The methods of `Module` that change everything that it holds."""

    training: bool

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` with every submodule, then with this module; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and its submodules; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and its submodules; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether parameters are trained; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        clear_grads(self.parameters(), set_to_none)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory; returns self."""
        return self._apply(lambda t: t.share_memory_())

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by `fn` of it; parameters stay the same
        objects where their kind of memory allows it. `rushlight.__future__` may say otherwise."""
        fn = fn if isinstance(fn, _Application) else _Application(fn)
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = fn.once(
                    parameter, lambda p, name=name: self._apply_to_parameter(name, p, fn)
                )
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn.once(buffer, fn)
        return self

    def _apply_to_parameter(
        self, name: str, parameter: rushlight.Tensor, fn: _Application
    ) -> rushlight.Tensor:
        """A parameter and its gradient after `fn`."""
        with rushlight.no_grad():
            applied = fn(parameter)
            grad = parameter.grad
            applied_grad = None if grad is None else fn(grad)
        if __future__.get_swap_module_params_on_conversion():
            parameter.grad = None
            try:
                swap_tensors(parameter, Parameter(applied, parameter.requires_grad))
            except Exception as error:
                raise RuntimeError(
                    f"_apply(): Couldn't swap {type(self).__name__}.{name}"
                ) from error
            if grad is not None and applied_grad is not None:
                swap_tensors(grad, applied_grad.requires_grad_(grad.requires_grad))
                parameter.grad = grad
            return parameter
        if parameter.is_meta == applied.is_meta and not (
            __future__.get_overwrite_module_params_on_conversion()
        ):
            parameter.data = applied
        elif is_lazy(applied):
            parameter = applied
        else:
            parameter = Parameter(applied, parameter.requires_grad)
        if grad is not None and applied_grad is not None:
            parameter.grad = applied_grad.requires_grad_(grad.requires_grad)
        return parameter

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move the module to a device, convert floating-point tensors to a dtype, or both; returns
        self.

        Forms: `to(device=None, dtype=None, non_blocking=False)`, `to(dtype, non_blocking=False)`,
        `to(tensor, non_blocking=False)`, each with `memory_format=` for 4-d and 5-d tensors.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"Module.to only accepts floating point or complex dtypes, not {dtype}"
                )
            if dtype.is_complex:
                warn(
                    "Complex modules are a new feature: all floating-point parameters and buffers "
                    "become complex, and modules whose ops take no complex numbers raise when they "
                    "are called.",
                )

        def convert(tensor: rushlight.Tensor) -> rushlight.Tensor:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, kind, non_blocking, memory_format=memory_format)
            return tensor.to(device, kind, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Device, recurse: bool = True) -> Self:
        """Move the module to a device without copying values; returns self."""
        return self._apply(lambda t: rushlight.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device: Device = None) -> Self:
        """Move all parameters and buffers to a GPU; returns self."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU; returns self."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype; returns self."""
        return self._apply(lambda t: t.type(dst_type))

    def _convert_floats(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32; returns self."""
        return self._convert_floats(rushlight.float32)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64; returns self."""
        return self._convert_floats(rushlight.float64)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16; returns self."""
        return self._convert_floats(rushlight.float16)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16; returns self."""
        return self._convert_floats(rushlight.bfloat16)

    def _replicate_for_data_parallel(self) -> Module:
        """A module with the same attributes, which has dicts of its own and no parameters: those
        that a copy on another device is given are results, plain attributes."""
        copy: Any = self.__new__(type(self))
        copy.__dict__ = self.__dict__.copy()
        copy._parameters = {}
        copy._buffers = self._buffers.copy()
        copy._modules = self._modules.copy()
        copy._former_parameters = {}
        copy._is_replica = True
        return copy
