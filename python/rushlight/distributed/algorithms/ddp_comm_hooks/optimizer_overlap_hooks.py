"""Hooks that step an optimiser for each bucket, when its gradients are reduced."""

from __future__ import annotations

__all__: list[str] = []


class _OptimizerHookState:
    """Which optimiser steps: one with `step_param(parameter, gradient)`; and for which parameters.

    Args:
        functional_optim: the optimiser.
        params: the parameters; None means all.
    """

    def __init__(self, functional_optim, params=None):
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)


def _hook_then_optimizer(hook, optimizer_state: _OptimizerHookState):
    """`hook`, and a step of the bucket's parameters with what it gives."""

    def stepping(state, bucket):
        def step(future):
            value = future.value()
            value = value[0] if isinstance(value, (list, tuple)) else value
            bucket.set_buffer(value.reshape(-1))
            chosen = optimizer_state.params_to_optimize
            for p, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
                if chosen is None or p in chosen:
                    optimizer_state.functional_optimizer.step_param(p, gradient)
            return bucket.buffer()

        return hook(state, bucket).then(step)

    return stepping
