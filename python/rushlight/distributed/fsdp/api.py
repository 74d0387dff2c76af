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
    """What is sharded over the processes.

    Example:
        >>> torch.distributed.fsdp.ShardingStrategy.FULL_SHARD
        <ShardingStrategy.FULL_SHARD: 1>
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward gathers the next parameters.

    Example:
        >>> torch.distributed.fsdp.BackwardPrefetch.BACKWARD_PRE
        <BackwardPrefetch.BACKWARD_PRE: 1>
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whether a state dict is full, local or sharded.

    Example:
        >>> torch.distributed.fsdp.StateDictType.FULL_STATE_DICT
        <StateDictType.FULL_STATE_DICT: 1>
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """The keys of an optimiser's state: names or indices.

    Example:
        >>> torch.distributed.fsdp.OptimStateKeyType.PARAM_NAME
        <OptimStateKeyType.PARAM_NAME: 1>
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclasses.dataclass
class MixedPrecision:
    """The dtypes of parameters, of reduced gradients, and of buffers.

    Args:
        param_dtype: the dtype in which parameters are gathered and computed with; None: their own.
        reduce_dtype: the dtype in which gradients are added up; None: `param_dtype`.
        buffer_dtype: the dtype of buffers; None: their own.
        keep_low_precision_grads: whether gradients keep the dtype in which they were added up.
        cast_forward_inputs: whether floating-point inputs of the module get `param_dtype`.
        cast_root_forward_inputs: whether those of the outermost module do.

    Example:
        >>> torch.distributed.fsdp.MixedPrecision(param_dtype=torch.bfloat16).buffer_dtype
    """

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
    """Settings of state dicts.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.StateDictConfig(offload_to_cpu=True)
        StateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """A full state dict, only in the first process if asked for.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.
        rank0_only: whether other processes get an empty dict.

    Example:
        >>> torch.distributed.fsdp.FullStateDictConfig(rank0_only=True)
        FullStateDictConfig(offload_to_cpu=False, rank0_only=True)
    """

    rank0_only: bool = False


@dataclasses.dataclass
class LocalStateDictConfig(StateDictConfig):
    """A state dict of this process's flat shards.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.LocalStateDictConfig()
        LocalStateDictConfig(offload_to_cpu=False)
    """


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """A state dict of this process's shards, which know the full tensors.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
        False
    """

    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    """Settings of optimisers' state dicts.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.OptimStateDictConfig()
        OptimStateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """A full state dict of an optimiser, only in the first process if asked for.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.
        rank0_only: whether other processes get an empty dict.

    Example:
        >>> torch.distributed.fsdp.FullOptimStateDictConfig()
        FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=False)
    """

    rank0_only: bool = False


@dataclasses.dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """An optimiser's state dict of this process's flat shards.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.LocalOptimStateDictConfig().offload_to_cpu
        False
    """

    offload_to_cpu: bool = False


@dataclasses.dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """An optimiser's state dict of this process's shards, which know the full tensors.

    Args:
        offload_to_cpu: whether tensors are moved to the CPU.

    Example:
        >>> torch.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
        True
    """

    _use_dtensor: bool = False


@dataclasses.dataclass
class StateDictSettings:
    """The type and the settings of state dicts.

    For an example see `distributed.fsdp.FullStateDictConfig`.

    Args:
        state_dict_type: the kind of state dict.
        state_dict_config: its settings.
        optim_state_dict_config: settings of optimisers' state dicts.
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
