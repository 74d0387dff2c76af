"""States of optimisers over parts of parameters: made whole, and cut again."""

from __future__ import annotations

import copy
from typing import Any

import rushlight
from rushlight._warnings import warn
from rushlight.distributed import _objects, _world
from rushlight.distributed.fsdp import _states
from rushlight.distributed.fsdp._common import clean_tensor_name
from rushlight.distributed.fsdp.api import OptimStateKeyType, StateDictType

METHODS = (
    "flatten_sharded_optim_state_dict",
    "full_optim_state_dict",
    "optim_state_dict",
    "optim_state_dict_to_load",
    "rekey_optim_state_dict",
    "scatter_full_optim_state_dict",
    "shard_full_optim_state_dict",
    "sharded_optim_state_dict",
)


class _Owners:
    """For each parameter that an optimiser sees its unit, and the names it stands for."""

    def __init__(self, model):
        self.names: dict[int, list[str]] = {}
        self.units: dict[int, tuple[Any, Any, int | None]] = {}
        self.first: Any = None
        for path, module in model.named_modules():
            handle = module.__dict__.get("_handle")
            if handle is None:
                continue
            self.first = self.first or module
            prefix = clean_tensor_name(path + ".") if path else ""
            names = [prefix + fqn for fqn in handle.fqns]
            for i, leaf in enumerate(handle.leaves):
                index = i if handle.use_orig_params else None
                self.names[id(leaf)] = names if index is None else [names[i]]
                self.units[id(leaf)] = (module, handle, index)
        for name, p in model.named_parameters():
            self.names.setdefault(id(p), [clean_tensor_name(name)])

    def names_of(self, p):
        """The names of a parameter."""
        if id(p) not in self.names:
            raise ValueError("The optimiser has a parameter that the model has not")
        return self.names[id(p)]


def _groups(optim, optim_input, model):
    """Groups of parameters as the optimiser has them."""
    if optim is not None:
        return optim.param_groups
    if optim_input is None:
        return [{"params": list(model.parameters())}]
    given = list(optim_input)
    if given and isinstance(given[0], dict):
        return [dict(group, params=list(group["params"])) for group in given]
    return [{"params": given}]


def _is_part(value):
    return isinstance(value, rushlight.Tensor) and value.dim() > 0


def _gather_state(model, optim, given, sharded, here, to_cpu):
    """The state of all parameters by name."""
    owners = _Owners(model)
    params = [p for group in optim.param_groups for p in group["params"]]
    state_of = _state_by_param(optim, given, params)
    state: dict[str, dict] = {}

    def keep(name, key, value, unit):
        if sharded and unit is not None and _is_part(value):
            value = _states.chunk(unit, value)
        elif isinstance(value, rushlight.Tensor):
            value = value.detach().clone()
        if to_cpu and isinstance(value, rushlight.Tensor):
            value = value.cpu()
        if here or sharded:
            state.setdefault(name, {})[key] = value

    done = set()
    for p in params:
        unit, handle, index = owners.units.get(id(p), (None, None, None))
        own = state_of.get(id(p), {})
        if handle is None:
            for key, value in own.items():
                keep(owners.names_of(p)[0], key, value, None)
            continue
        for key, value in own.items():
            if not _is_part(value):
                for name in owners.names_of(p):
                    keep(name, key, value, unit)
        if id(handle) in done:
            continue
        done.add(id(handle))
        states = [state_of.get(id(leaf), {}) for leaf in handle.leaves]
        keys = dict.fromkeys(k for s in states for k, v in s.items() if _is_part(v))
        for key in keys:
            if index is None:
                part, having = states[0][key], [True] * len(handle.numels)
            else:
                part = handle.join([s.get(key) for s in states])
                having = [key in s for s in states]
            with rushlight.no_grad():
                views = handle.split(handle.gather(part))
            names = [n for leaf in handle.leaves for n in owners.names_of(leaf)]
            for name, view, there in zip(names, views, having, strict=True):
                if there:
                    keep(name, key, view, unit)
    groups = []
    for group in optim.param_groups:
        rest = {k: copy.deepcopy(v) for k, v in group.items() if k != "params"}
        groups.append({**rest, "params": [n for p in group["params"] for n in owners.names_of(p)]})
    return {"state": state, "param_groups": groups} if here or sharded else {}


def _state_by_param(optim, given, params):
    if given is None:
        return {id(p): optim.state.get(p, {}) for p in params}
    return {id(p): given["state"].get(i, {}) for i, p in enumerate(params)}


def _cut(model, optim, optim_input, whole, named=False):
    """Of a whole state what belongs to this process's parts, by numbers of parameters."""
    owners = _Owners(model)
    groups = _groups(optim, optim_input, model)
    params = [p for group in groups for p in group["params"]]
    state: dict[Any, dict] = {}
    keys: dict[str, Any] = {}
    for number, p in enumerate(params):
        names = owners.names_of(p)
        key = names[0] if named else number
        for name in names:
            keys[name] = key
        _unit, handle, index = owners.units.get(id(p), (None, None, None))
        entries = [whole["state"].get(name) for name in names]
        known = [e for e in entries if e is not None]
        if not known:
            continue
        own: dict[str, Any] = {}
        for entry_key in dict.fromkeys(k for e in known for k in e):
            values = [_states.to_full(e[entry_key]) if e is not None else None for e in entries]
            first = next(v for v in values if v is not None)
            if handle is None or not _is_part(first):
                own[entry_key] = copy.deepcopy(first)
                continue
            places = range(len(handle.numels)) if index is None else [index]
            pieces: list[Any] = [
                None if v is None else _piece(handle, i, v)
                for i, v in zip(places, values, strict=True)
            ]
            own[entry_key] = pieces[0].clone() if index is not None else handle.join(pieces)
        state[key] = own
    new_groups = []
    for group in whole["param_groups"]:
        found = dict.fromkeys(keys[name] for name in group["params"] if name in keys)
        new_groups.append({**copy.deepcopy(group), "params": list(found)})
    return {"state": state, "param_groups": new_groups}


def _piece(handle, index, value):
    first, last = handle.spans[index]
    begin = handle.rank * handle.part_size + first - handle.starts[index]
    return value.reshape(-1)[begin : begin + last - first] if last > first else value.new_empty(0)


def _from_first(value, group=None):
    """The first process's object, everywhere."""
    holder = [value]
    _objects.broadcast_object_list(holder, group=group, group_src=0)
    return holder[0]


def full_optim_state_dict(model, optim, optim_input=None, rank0_only=True, group=None):
    """The whole state by names of parameters, on the first process alone if asked for."""
    here = not rank0_only or _world._group(group).rank() == 0
    return _gather_state(model, optim, None, False, here, True)


def sharded_optim_state_dict(model, optim, group=None):
    """The state by names of parameters, as distributed tensors."""
    return _gather_state(model, optim, None, True, True, False)


def optim_state_dict(model, optim, optim_state_dict=None, group=None):
    """The state by names of parameters, as `state_dict_type` says."""
    settings = _setting(model)
    sharded = settings.state_dict_type != StateDictType.FULL_STATE_DICT
    config = settings.optim_state_dict_config
    first_only = getattr(config, "rank0_only", False)
    here = not first_only or _world._group(group).rank() == 0
    return _gather_state(model, optim, optim_state_dict, sharded, here, config.offload_to_cpu)


def _setting(model):
    return _states.get_type([m for m in model.modules() if "_handle" in m.__dict__])


def optim_state_dict_to_load(
    model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
):
    """A state by names, cut so that this process's optimiser can load it."""
    config = _setting(model).optim_state_dict_config
    if getattr(config, "rank0_only", False):
        optim_state_dict = _from_first(optim_state_dict, group)
    result = _cut(model, optim, None, optim_state_dict, is_named_optimizer)
    if load_directly:
        optim.load_state_dict(result)
    return result


def shard_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None):
    """A whole state, cut so that this process's optimiser can load it."""
    return _cut(model, optim, optim_input, full_optim_state_dict)


def scatter_full_optim_state_dict(
    full_optim_state_dict, model, optim_input=None, optim=None, group=None
):
    """The first process's whole state, cut so that each process's optimiser can load it."""
    return _cut(model, optim, optim_input, _from_first(full_optim_state_dict, group))


def flatten_sharded_optim_state_dict(sharded_optim_state_dict, model, optim):
    """A state of distributed tensors, cut so that this process's optimiser can load it."""
    return _cut(model, optim, None, sharded_optim_state_dict)


def rekey_optim_state_dict(
    optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None
):
    """A whole state by numbers of parameters instead of names, or the other way round."""
    groups = _groups(optim, optim_input, model)
    names = {id(p): clean_tensor_name(name) for name, p in model.named_parameters()}
    order = [names[id(p)] for group in groups for p in group["params"]]
    if optim_state_key_type == OptimStateKeyType.PARAM_NAME:
        table: dict[Any, Any] = dict(enumerate(order))
    elif optim_state_key_type == OptimStateKeyType.PARAM_ID:
        table = {name: i for i, name in enumerate(order)}
    else:
        raise ValueError(f"Unknown kind of keys: {optim_state_key_type}")
    lost = [key for key in optim_state_dict["state"] if key not in table]
    if lost:
        warn(f"The model has no parameters {lost}")
    return {
        "state": {
            table[key]: value for key, value in optim_state_dict["state"].items() if key in table
        },
        "param_groups": [
            {**group, "params": sorted((table[k] for k in group["params"]), key=_order(order))}
            for group in optim_state_dict["param_groups"]
        ],
    }


def _order(names) -> Any:
    place = {name: i for i, name in enumerate(names)}
    return lambda key: place.get(key, key)
