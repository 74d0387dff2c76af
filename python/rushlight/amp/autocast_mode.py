"""Autocast: ops with a rule take their floating-point arguments in 16 or in 32 bits.

Which op has which rule is a key of the op table; docs/mixed-precision.md lists them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.autograd.grad_mode import ContextDecorator

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOW = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast exists for a device type, such as "cpu".

    Args:
        device_type: the kind of device.

    Example:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return _C._is_autocast_available(device_type)


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast(ContextDecorator):
    """A context manager and decorator in which each op runs in the dtype that suits it.

    Products, convolutions, attention and recurrent cells take their arguments in 16 bits; what
    loses too much there, such as losses and norms, takes them in float32; all other ops take them
    as they come. float64, integers and complex numbers are left alone, and so are `out=` and
    in-place forms. Weights that require grad are cast once and kept until the outermost context
    ends. Backward passes belong outside of the context: each op's runs in the dtype of its forward.

    Args:
        device_type: "cpu" or "cuda".
        dtype: bfloat16 or float16; None takes `rushlight.get_autocast_dtype(device_type)`.
        enabled: False leaves all dtypes alone, also inside of another autocast.
        cache_enabled: whether cast weights are cached; None keeps the current setting.

    Raises:
        ValueError: if `device_type` is no string.
        RuntimeError: if there is no autocast for such devices.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"unsupported autocast device_type {device_type!r}: expected 'cpu' or 'cuda'"
            )
        self.device = device_type
        self.fast_dtype = rushlight.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            rushlight.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = bool(enabled) and self._is_possible()
        self._before: list[tuple[bool, _C.dtype, bool]] = []

    def _is_possible(self) -> bool:
        """Whether the device and the dtype serve; warns where they do not."""
        if self.device == "cuda" and not rushlight.cuda.is_available():
            warn("autocast of device type 'cuda': CUDA is not available. Disabling autocast.")
            return False
        if self.fast_dtype not in _LOW:
            warn(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. "
                f"Disabling autocast: it lowers to bfloat16 or float16, not to {self.fast_dtype}.",
            )
            return False
        return True

    def clone(self):
        """A context manager with the same settings, for a further use."""
        fresh = object.__new__(type(self))
        vars(fresh).update(vars(self), _before=[])
        return fresh

    def __enter__(self):
        self._before.append(
            (
                rushlight.is_autocast_enabled(self.device),
                rushlight.get_autocast_dtype(self.device),
                rushlight.is_autocast_cache_enabled(),
            )
        )
        rushlight.set_autocast_enabled(self.device, self._enabled)
        if self._enabled:
            rushlight.set_autocast_dtype(self.device, self.fast_dtype)
        rushlight.autocast_increment_nesting()
        rushlight.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, kind, value, trace):
        enabled, dtype, cache_enabled = self._before.pop()
        if rushlight.autocast_decrement_nesting() == 0:
            rushlight.clear_autocast_cache()
        rushlight.set_autocast_enabled(self.device, enabled)
        rushlight.set_autocast_dtype(self.device, dtype)
        rushlight.set_autocast_cache_enabled(cache_enabled)
        return False


def _cast(value: Any, device_type: str, dtype: _C.dtype) -> Any:
    """The floating-point tensors of a device in nested containers, cast; float64 is left alone."""
    if isinstance(value, _C.TensorBase):
        fits = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not _C.float64
        )
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)) or type(value).__module__.startswith("numpy"):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(v, device_type, dtype) for v in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: _C.dtype | None = None,
) -> Callable[..., Any]:
    """Decorates `forward` of an `autograd.Function` for use under autocast.

    Args:
        fwd: the function; None returns a decorator.
        device_type: "cpu" or "cuda".
        cast_inputs: where autocast is on, floating-point tensors among the arguments are cast to
            it, and `forward` runs without autocast; None lets it run under the autocast there is.

    Example:
        >>> class Twice(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(context, x):
        ...         return x + x
        ...
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(context, grad):
        ...         return grad + grad
        >>> with torch.autocast("cpu"):
        ...     print(Twice.apply(torch.ones(2, dtype=torch.bfloat16)).dtype)
        torch.float32
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = rushlight.get_autocast_dtype(device_type)
        enabled = rushlight.is_autocast_enabled(device_type)
        context._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                context,
                *_cast(args[1:], device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward` of a function whose `forward` has `custom_fwd`: same autocast.

    For an example see `amp.custom_fwd`.

    Args:
        bwd: the function; None returns a decorator.
        device_type: "cpu" or "cuda".
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return backward
