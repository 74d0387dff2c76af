"""Settings of fully sharded modules, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

from rushlight import nn

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is sharded over the processes."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward gathers the next parameters."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whether a state dict is full, local or sharded."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """The keys of an optimiser's state: names or indices."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclasses.dataclass
class MixedPrecision:
    """The dtypes of parameters, of reduced gradients, and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[nn.Module]] = (nn.modules.batchnorm._BatchNorm,)


@dataclasses.dataclass
class CPUOffload:
    """Whether parameters are kept in the CPU's memory.

    Args:
        offload_params: whether they are.

    Example:
        >>> torch.distributed.fsdp.CPUOffload(offload_params=True)
        CPUOffload(offload_params=True)
    """

    offload_params: bool = False


@dataclasses.dataclass
class StateDictConfig:
    """Settings of state dicts."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """A full state dict, only in the first process if asked for."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalStateDictConfig(StateDictConfig):
    """A state dict of this process's flat shards."""


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """A state dict of this process's shards, which know the full tensors."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    """Settings of optimisers' state dicts."""

    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """A full state dict of an optimiser, only in the first process if asked for."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """An optimiser's state dict of this process's flat shards."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """An optimiser's state dict of this process's shards, which know the full tensors."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class StateDictSettings:
    """The type and the settings of state dicts."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
