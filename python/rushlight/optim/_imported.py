"""What optimisers of other packages import from `optim.optimizer` beside the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import rushlight
from rushlight import Tensor
from rushlight._parameter import Parameter
from rushlight.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[rushlight.device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[rushlight.device, rushlight.dtype] | None, Tensor]
R = TypeVar("R")
T = TypeVar("T")

# Parts of docstrings: what these arguments mean here.
_params_doc = """params (iterable): tensors, (name, tensor) pairs, or dicts with "params" and
            settings of that group"""
_foreach_doc = """foreach (bool, optional): means nothing, there is one way to do a step"""
_fused_doc = """fused (bool, optional): means nothing, there is one way to do a step"""
_capturable_doc = """capturable (bool, optional): means nothing on the CPU"""
_differentiable_doc = """differentiable (bool, optional): record the step, so that gradients pass
            through it"""
_maximize_doc = """maximize (bool, optional): climb instead of descending"""


def _get_scalar_dtype(is_fused: bool | None = None) -> rushlight.dtype:
    """The dtype of counts of steps: float32 where a fused step takes them, else the default."""
    if is_fused or rushlight.get_default_dtype() != rushlight.float64:
        return rushlight.float32
    return rushlight.float64


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices whose steps can be captured."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is fused, and whether it goes over lists, where nobody has said so."""
    if differentiable:
        return False, False

    def all_on(devices: list[str], fits: Any = lambda p: True) -> bool:
        return all(
            p is None or (type(p) in (Tensor, Parameter) and p.device.type in devices and fits(p))
            for p in params
        )

    fused = use_fused and all_on(_get_fused_kernels_supported_devices(), Tensor.is_floating_point)
    return fused, not fused and all_on(_get_foreach_kernels_supported_devices())


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """RuntimeError if a fused step cannot take a parameter."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point and on a device of "
            f"{devices}, but one is {p.dtype} on {p.device.type}: leave `fused` out"
        )


def _stack_if_compiling(x: Any) -> Any:
    """A list as it is: nothing is compiled."""
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element in a dimension as one of none."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Puts views as real tensors where lists have complex ones."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = rushlight.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = rushlight.view_as_real(tensors[i])


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[T], T]:
    """Leaves a function as it is: nothing is compiled."""
    return lambda function: function
