"""Which modules of a network are wrapped: policies, as functions of modules and sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import nn
from rushlight.distributed import _refused

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

wrap = _refused.function("torch.distributed.fsdp.wrap.wrap")


def always_wrap_policy(*args, **kwargs) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[..., Any]
) -> bool:
    """Those for which a function says so."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[nn.Module]],
) -> bool:
    """Those of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:
    """Those with many parameters."""
    leaves = {nn.MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = (
        {nn.ModuleList, nn.ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    )
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


class ModuleWrapPolicy:
    """Those of some classes, as a policy for others.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module, recurse, *args, **kwargs) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """Those for which a function of the module is true, or gives arguments.

    Args:
        lambda_fn: the function.
    """

    def __init__(self, lambda_fn: Callable[[nn.Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module, recurse, *args, **kwargs):
        return recurse or self._lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies) -> bool:
    """Those for which one of several policies says so."""
    arguments = {"module": module, "recurse": recurse, "nonwrapped_numel": nonwrapped_numel}
    return any(policy(**arguments) for policy in policies)


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Refused: nothing is wrapped yet."""
    _refused.function("torch.distributed.fsdp.wrap.enable_wrap")(wrapper_cls, wrapper_kwargs)
    yield
