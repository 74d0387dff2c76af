"""Optimisers that step in backward, as soon as a parameter's gradient is computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight.distributed._reducer import step_in_backward

__all__: list[str] = []


def _apply_optimizer_in_backward(
    optimizer_class: type[rushlight.optim.Optimizer],
    params: Iterable[rushlight.nn.Parameter],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Give each parameter an optimiser of its own, which steps when its gradient is whole.

    Args:
        optimizer_class: the optimiser's class.
        params: the parameters; one that is listed twice gets two optimisers.
        optimizer_kwargs: the optimisers' settings.
        register_hook: False only notes the optimisers, for whoever lets them step.
    """
    for p in params:
        known: Any = p
        if not hasattr(p, "_in_backward_optimizers"):
            known._in_backward_optimizers = []
            known._optimizer_classes = []
            known._optimizer_kwargs = []
            known._in_backward_handles = []
        known._in_backward_optimizers.append(optimizer_class([p], **optimizer_kwargs))
        known._optimizer_classes.append(optimizer_class)
        known._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and not known._in_backward_handles:
            handle = p.register_post_accumulate_grad_hook(step_in_backward)
            known._in_backward_handles.append(handle)


def _get_in_backward_optimizers(module: rushlight.nn.Module) -> list[rushlight.optim.Optimizer]:
    """The optimisers that step in backward, for checkpoints."""
    return [
        optimizer
        for p in module.parameters()
        for optimizer in getattr(p, "_in_backward_optimizers", ())
    ]
