"""Settings of modules whose parameters are spread over processes, as plain data."""

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
    """What is spread over the processes."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward fetches the next parameters."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """How much of a state each process has."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """What the keys of an optimiser's state are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclasses.dataclass
class MixedPrecision:
    """The dtypes of parameters, of gradients as they are added up, and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[nn.Module]] = (nn.modules.batchnorm._BatchNorm,)


@dataclasses.dataclass
class CPUOffload:
    """Whether parameters wait in the CPU's memory."""

    offload_params: bool = False


@dataclasses.dataclass
class StateDictConfig:
    """How a state is made."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """A whole state, on the first process alone if asked for."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalStateDictConfig(StateDictConfig):
    """The pieces of a process as they are."""


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The pieces of a process, each of which knows the whole."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    """How an optimiser's state is made."""

    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """A whole state, on the first process alone if asked for."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The pieces of a process as they are."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """The pieces of a process, each of which knows the whole."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class StateDictSettings:
    """The kind and the settings of states."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
