"""skip_init."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ..modules.module import Module

if TYPE_CHECKING:
    from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Module:
    """Make a module whose parameters are not initialised.

    Args:
        module_cls: a class of modules that takes `device`.
        args: its arguments.
        kwargs: its arguments by name.

    Example:
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 3, 4).weight.shape
        torch.Size([4, 3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init: Module must support a 'device' arg, which {module_cls.__name__} does not"
        )
    unfilled = module_cls(*args, **{**kwargs, "device": "meta"})
    return unfilled.to_empty(device=kwargs.get("device", "cpu"))
