"""How a module is wrapped by `FullyShardedDataParallel`: groups, what is left out, real tensors."""

from __future__ import annotations

import os
from typing import Any

import rushlight
from rushlight import nn
from rushlight.distributed import _making, _world
from rushlight.distributed.fsdp import wrap as _wrap
from rushlight.distributed.fsdp._common import clean_tensor_name, modules_of, places_of
from rushlight.distributed.fsdp._flat_param import FlatParamHandle
from rushlight.distributed.fsdp.api import MixedPrecision, ShardingStrategy
from rushlight.distributed.utils import _broadcast_coalesced

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEEPING = (
    ShardingStrategy.SHARD_GRAD_OP,
    ShardingStrategy._HYBRID_SHARD_ZERO2,
    ShardingStrategy.NO_SHARD,
)
_machines: dict[Any, tuple[Any, Any]] = {}


def groups(process_group, device_mesh, strategy):
    """Who shares the parts, and who has the same part (None unless the strategy is hybrid)."""
    if device_mesh is not None:
        if process_group is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time")
        if strategy in _HYBRID:
            if device_mesh.ndim != 2:
                raise ValueError(
                    f"Expected device_mesh to have ndim=2 but got {device_mesh.ndim} for a hybrid "
                    "sharding strategy"
                )
            return device_mesh.get_group(1), device_mesh.get_group(0)
        return device_mesh.get_group(0), None
    if strategy not in _HYBRID:
        if isinstance(process_group, tuple):
            process_group = process_group[0]
        return _world._group(process_group), None
    if isinstance(process_group, tuple):
        return process_group
    if process_group is not None:
        raise ValueError(
            "Manual wrapping with HYBRID_SHARD requires explicit specification of process group or "
            "device_mesh: a tuple of two groups"
        )
    return _by_machine()


def _by_machine():
    """The processes of a machine share the parts; those of one number have the same."""
    default = _world._get_default_group()
    if default not in _machines:
        size = default.size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", str(size)))
        if local <= 0 or size % local:
            local = size
        lines = [list(range(i, i + local)) for i in range(0, size, local)]
        columns = [list(range(i, size, local)) for i in range(local)]
        rank, mine = default.rank(), []
        for parts in (lines, columns):
            made = [(_making.new_group(ranks), ranks) for ranks in parts]
            mine.append(next(group for group, ranks in made if rank in ranks))
        _machines.clear()
        _machines[default] = (mine[0], mine[1])
    return _machines[default]


def find_ignored(module, modules, states):
    """The modules and the parameters that are left out."""
    chosen, params = set(), set()
    for item in [*(modules or ()), *(states or ())]:
        if isinstance(item, nn.Module):
            chosen.update(item.modules())
        elif isinstance(item, rushlight.Tensor):
            params.add(item)
        else:
            raise TypeError(f"ignored_states should be parameters or modules, but got {type(item)}")
    if module in chosen:
        raise ValueError("The module that is wrapped is one of those to ignore")
    params.update(p for m in chosen for p in m._parameters.values() if p is not None)
    return chosen, params


def _is_unit(module):
    return "_handle" in module.__dict__


def own_modules(module, left_out=()):
    """A module and those within it that belong to no unit of their own."""
    return list(_modules_by_path(module, left_out).values())


def _modules_by_path(module, left_out):
    return modules_of({"": module}, lambda m: m in left_out or _is_unit(m))


def own_parameters(module, params_left_out, modules_left_out):
    """The parameters of a unit."""
    places = places_of(_modules_by_path(module, modules_left_out), params_left_out)
    return list({id(place.parameter): place.parameter for place in places}.values())


def check_not_wrapped(module, kind):
    """ValueError if a part of the module is wrapped already."""
    for name, m in module.named_modules():
        if isinstance(m, kind):
            raise ValueError(
                f"Expected {name} to NOT be FullyShardedDataParallel if using an `auto_wrap_policy`"
            )


def auto_wrap(module, policy, kind, modules_left_out, params_left_out, settings):
    """Wrap the parts of a module that a policy names."""
    mixed = settings["mixed_precision"]
    rows = dict(settings, ignored_states=list(params_left_out) or None)
    exact = []
    if mixed is not None and mixed._module_classes_to_ignore:
        exact = [
            m
            for m in module.modules()
            if isinstance(m, tuple(mixed._module_classes_to_ignore))
            and m not in modules_left_out
            and m is not module
        ]
        plain = dict(rows, mixed_precision=MixedPrecision(cast_forward_inputs=True))
        _wrap._replace(module, {id(m): plain for m in exact}, kind)
        for m in exact:
            _in_full_precision(m)
    _wrap._auto_wrap(module, policy, kind, modules_left_out, params_left_out, rows)


def _in_full_precision(module):
    """The module computes in float32 and returns the dtype that it was given."""

    def before(m, args):
        seen = [t.dtype for t in args if isinstance(t, rushlight.Tensor)]
        m.__dict__["_given_dtype"] = seen[0] if seen else None
        return tuple(
            t.float() if isinstance(t, rushlight.Tensor) and t.is_floating_point() else t
            for t in args
        )

    def after(m, _args, output):
        given = m.__dict__.pop("_given_dtype", None)
        if given is not None and isinstance(output, rushlight.Tensor):
            return output.to(given)
        return output

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)


def materialize(module, params, param_init_fn, device_id, left_out, default):
    """Give tensors without memory theirs, at `device_id` or else at `default`, and bring all to
    the former."""
    device = None
    if device_id is not None:
        device = rushlight.device(device_id)
        if isinstance(device_id, int):
            device = rushlight.device("cuda", device_id)
    if any(p.is_meta for p in params):
        for m in own_modules(module, left_out):
            tensors = [*m.parameters(recurse=False), *m.buffers(recurse=False)]
            if not any(t.is_meta for t in tensors):
                continue
            if param_init_fn is not None:
                param_init_fn(m)
                continue
            m.to_empty(device=device or default, recurse=False)
            if not hasattr(m, "reset_parameters"):
                raise RuntimeError(
                    f"{type(m).__name__} has tensors without memory and no reset_parameters: give "
                    "param_init_fn"
                )
            with rushlight.no_grad():
                m.reset_parameters()
    elif param_init_fn is not None and not callable(param_init_fn):
        raise ValueError(f"Expected {param_init_fn} to be callable")
    if device is not None:
        for m in own_modules(module, left_out):
            for p in m._parameters.values():
                if p is not None and p.device != device:
                    p.data = p.data.to(device)
            for name, b in m._buffers.items():
                if b is not None:
                    m._buffers[name] = b.to(device)


def sync(module, params, group, replicas):
    """Give every process the first one's parameters and buffers."""
    buffers = [b for m in own_modules(module) for b in m._buffers.values() if b is not None]
    for over in (group, replicas):
        if over is not None:
            _broadcast_coalesced(over, [*params, *buffers])


def handle(unit, module):
    """The parameters of a unit as they are found now; None if it has none."""
    places = places_of(_modules_by_path(module, unit._ignored_modules), unit._ignored_params)
    if not places:
        return None
    strategy = unit.sharding_strategy
    sharded = strategy != ShardingStrategy.NO_SHARD and unit.world_size > 1
    return FlatParamHandle(
        module,
        [place._replace(fqn=clean_tensor_name(place.fqn)) for place in places],
        unit.process_group,
        unit._inter_node_pg,
        sharded,
        strategy in _KEEPING,
        unit._use_orig_params,
        unit.mixed_precision,
        unit.backward_prefetch,
        unit.forward_prefetch,
    )
