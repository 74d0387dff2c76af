"""Communication hooks of DistributedDataParallel, also by name."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from rushlight.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    quantization_hooks,
)

__all__ = [
    "DDPCommHookType",
    "debugging_hooks",
    "default_hooks",
    "post_localSGD_hook",
    "powerSGD_hook",
    "quantization_hooks",
    "register_ddp_comm_hook",
]


def _power(hook, rank, model, state):
    made = powerSGD_hook.PowerSGDState(process_group=state, matrix_approximation_rank=rank)
    model.register_comm_hook(made, hook)


def _register(hook, model, state):
    model.register_comm_hook(state, hook)


class DDPCommHookType(Enum):
    """Communication hooks by name: each registers one on a model, with a process group or None as
    state.

    Example:
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
        >>> DDPCommHookType.ALLREDUCE.name
        'ALLREDUCE'
    """

    ALLREDUCE = partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = partial(_register, quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = partial(_register, quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = partial(_power, powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = partial(_power, powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = partial(_power, powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = partial(_power, powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a communication hook on a model by its name.

    Args:
        comm_hook_type: which.
        model: a `DistributedDataParallel`.
        state: a process group, or the state that the hook has.

    For an example see `distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook`.
    """
    comm_hook_type.value(model=model, state=state)
