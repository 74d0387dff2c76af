"""States of modules that are spread over processes: whole, as parts, or as distributed tensors."""

from __future__ import annotations

import contextlib
from typing import Any

import rushlight
from rushlight.distributed import _world
from rushlight.distributed._shard.sharded_tensor import Shard as ShardedShard
from rushlight.distributed._shard.sharded_tensor import (
    ShardedTensor,
    ShardedTensorMetadata,
    ShardMetadata,
    TensorProperties,
)
from rushlight.distributed.fsdp import api
from rushlight.distributed.fsdp._common import FSDP_PREFIX
from rushlight.distributed.fsdp.api import StateDictSettings, StateDictType

_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (api.FullStateDictConfig, api.FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (api.LocalStateDictConfig, api.LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (
        api.ShardedStateDictConfig,
        api.ShardedOptimStateDictConfig,
    ),
}


def set_type(units, kind, config, optim_config) -> StateDictSettings:
    """Give units their kind of state; returns the one before."""
    config_class, optim_class = _CONFIGS[kind]
    config = config_class() if config is None else config
    optim_config = optim_class() if optim_config is None else optim_config
    for given, wanted in ((config, config_class), (optim_config, optim_class)):
        if not isinstance(given, wanted):
            raise RuntimeError(f"Expected a config of type {wanted} but got {type(given)}")
    before = get_type(units)
    for unit in units:
        unit._state_dict_type = kind
        unit._state_dict_config = config
        unit._optim_state_dict_config = optim_config
    return before


def get_type(units) -> StateDictSettings:
    """The kind of state of units, which must be one."""
    found: Any = None
    for unit in units:
        own = StateDictSettings(
            unit._state_dict_type, unit._state_dict_config, unit._optim_state_dict_config
        )
        if found is None:
            found = own
        elif found != own:
            raise AssertionError(
                "the FSDP modules of a model must have the same state dict settings, but got "
                f"{own} and {found}"
            )
    return found or StateDictSettings(
        StateDictType.FULL_STATE_DICT, api.FullStateDictConfig(), api.FullOptimStateDictConfig()
    )


def state_dict(unit, plain, destination, prefix, keep_vars):
    """The state of a unit; `plain` collects it as modules do."""
    unit._find_root()
    kind, config = unit._state_dict_type, unit._state_dict_config
    handle = unit._handle
    first_only = getattr(config, "rank0_only", False)
    here = not first_only or _world.get_rank() == 0
    before = set() if destination is None else set(destination)
    summoned: Any = contextlib.nullcontext()
    whole = kind != StateDictType.LOCAL_STATE_DICT
    if handle is not None and whole:
        summoned = handle.summon(writeback=False)
    with summoned:
        result = plain(destination=destination, prefix=prefix, keep_vars=keep_vars)
        inner = prefix + FSDP_PREFIX
        own = set()
        if handle is not None and whole:
            own = {inner + name for name in _paths(handle)}
        for key in [k for k in result if k not in before]:
            if not key.startswith(inner):
                continue
            value = result.pop(key)
            if not here:
                continue
            if key in own and isinstance(value, rushlight.Tensor) and not keep_vars:
                value = _as_asked(unit, kind, value)
            if config.offload_to_cpu and isinstance(value, (rushlight.Tensor, ShardedTensor)):
                value = value.cpu()
            result[prefix + key[len(inner) :]] = value
    return result


def _paths(handle):
    """Where the parameters of a unit are in the module that it wraps, wrappers' names included."""
    names = {id(m): name for name, m in handle.module.named_modules()}
    for place in handle.places:
        path = names[id(place.module)]
        yield f"{path}.{place.name}" if path else place.name


def _as_asked(unit, kind, value):
    """A whole parameter as an entry of a state."""
    if kind == StateDictType.SHARDED_STATE_DICT:
        return chunk(unit, value)
    return value.detach().clone()


def chunk(unit, value):
    """A process's rows of a whole tensor, as an entry of a state that knows where all rows are."""
    if value.dim() == 0:
        return value.detach().clone()
    rank, size = unit.process_group.rank(), unit.process_group.size()
    rows, step = value.shape[0], -(-value.shape[0] // size)
    spans = [(min(r * step, rows), min((r + 1) * step, rows)) for r in range(size)]
    first, last = spans[rank]
    local = value.detach()[first:last].clone()
    if unit._device_mesh is not None:
        from rushlight.distributed.tensor import DTensor, Replicate, Shard

        mesh = unit._device_mesh
        placements = [Replicate()] * (mesh.ndim - 1) + [Shard(0)]
        return DTensor.from_local(
            local, mesh, placements, run_check=False, shape=value.shape, stride=value.stride()
        )
    boxes = [
        ShardMetadata(
            [first] + [0] * (value.dim() - 1),
            [last - first, *value.shape[1:]],
            f"rank:{_world.get_global_rank(unit.process_group, r)}/{value.device}",
        )
        for r, (first, last) in enumerate(spans)
        if last > first
    ]
    metadata = ShardedTensorMetadata(
        boxes, value.size(), TensorProperties.create_from_tensor(local)
    )
    mine = [ShardedShard(local, boxes[rank])] if last > first else []
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        mine, metadata, unit.process_group
    )


def to_full(value):
    """The whole of what an entry of a state may be."""
    if not hasattr(value, "full_tensor"):
        return value
    if hasattr(value, "device_mesh"):  # a piece may lie on the CPU, where no engine may serve
        value = value.to(value.device_mesh.device_type)
    return value.full_tensor()


def loading(unit, states, prefix):
    """Before a unit's state is loaded: whole parameters, and names of the wrapped module."""
    unit._find_root()
    inner = prefix + FSDP_PREFIX
    full = unit._state_dict_type != StateDictType.LOCAL_STATE_DICT
    for key in [k for k in states if k.startswith(prefix) and not k.startswith(inner)]:
        value = states.pop(key)
        states[inner + key[len(prefix) :]] = to_full(value) if full else value
    stack = contextlib.ExitStack()
    if unit._handle is not None and full:
        stack.enter_context(unit._handle.summon(writeback=True))
    unit.__dict__["_loading"] = stack


def after_load(unit, keys):
    """After a unit's state was loaded: parts again, and names without those of wrappers."""
    stack = unit.__dict__.pop("_loading", None)
    if stack is not None:
        stack.close()
    for names in keys:
        names[:] = [name.replace(FSDP_PREFIX, "") for name in names]
