"""Modules that keep nothing for backward but their inputs, and compute the rest again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight.autograd.graph import save_on_cpu
from rushlight.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_WRAPPED = "_checkpoint_wrapped_module"
_PREFIX = _WRAPPED + "."


class CheckpointImpl(Enum):
    """How `utils.checkpoint` records."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module):
    """A module around another; names of parameters and states are those of the inner one.

    Args:
        mod: the inner module.
    """

    _checkpoint_wrapped_module: nn.Module

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args, **kwargs):
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _WRAPPED:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key) -> Any:
        inner: Any = self._checkpoint_wrapped_module
        return inner[key]

    def named_parameters(self, *args, **kwargs) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters by the names that they have without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module, state_dict, prefix, *args):
        for key in [k for k in state_dict if k.startswith(prefix + _PREFIX)]:
            state_dict[prefix + key[len(prefix + _PREFIX) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module, state_dict, prefix, *args):
        for key in [k for k in state_dict if k.startswith(prefix)]:
            state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs in main memory."""

    def forward(self, *args, **kwargs):
        """Calls the module."""
        with save_on_cpu(pin_memory=rushlight.accelerator.is_available()):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that computes again in backward what it would keep.

    Args:
        mod: the inner module.
        checkpoint_impl: how it is recorded.
        checkpoint_fn: a function to call instead of `utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: passed to it.
    """

    def __init__(
        self,
        mod: nn.Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = checkpoint
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs = {"use_reentrant": reentrant, **checkpoint_fn_kwargs}
        self._call = checkpoint_fn
        self._options = checkpoint_fn_kwargs

    def forward(self, *args, **kwargs):
        inner = self._checkpoint_wrapped_module
        if not kwargs or self.checkpoint_impl is CheckpointImpl.NO_REENTRANT:
            return self._call(inner, *args, **self._options, **kwargs)
        # The other way passes no keyword arguments on.
        names, n = list(kwargs), len(args)

        def run(*values: Tensor):
            return inner(*values[:n], **dict(zip(names, values[n:], strict=True)))

        return self._call(run, *args, *kwargs.values(), **self._options)


def offload_wrapper(module: nn.Module) -> nn.Module:
    """A module that keeps what backward needs in main memory; see `OffloadWrapper`."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs,
) -> nn.Module:
    """A module that computes again in backward; see `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[[nn.Module], nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
) -> None:
    """Wraps, in place, the submodules for which `check_fn` is true."""
    for parent in list(model.modules()):
        if isinstance(parent, ActivationWrapper):
            continue
        for name, child in list(parent.named_children()):
            if check_fn(child):
                setattr(parent, name, checkpoint_wrapper_fn(child))
