"""States of models and optimisers under the names of the plain model, however it is wrapped.

However a model is wrapped (DDP, FSDP, checkpointing of activations), its state and its optimisers'
have the same names, so that a checkpoint can be loaded into a model that is wrapped otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.distributed import _objects, _world
from rushlight.distributed.checkpoint.planner_helpers import is_dtensor
from rushlight.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictType,
    _optim_states,
)
from rushlight.nn.modules._state import _IncompatibleKeys
from rushlight.optim import Optimizer

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")


@dataclasses.dataclass
class StateDictOptions:
    """How states are gathered and distributed.

    Args:
        full_state_dict: whole tensors instead of distributed ones.
        cpu_offload: on the CPU; whole ones on rank 0 alone.
        ignore_frozen_params: without parameters that want no gradient.
        keep_submodule_prefixes: names begin at the model where submodules are asked for.
        strict: names must be the same.
        broadcast_from_rank0: rank 0's whole state is loaded on all.
        flatten_optimizer_state_dict: an optimiser's state without nesting.

    Example:
        >>> from rushlight.distributed.checkpoint.state_dict import StateDictOptions
        >>> StateDictOptions(full_state_dict=True, cpu_offload=True).strict
        True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _check_options(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _strip_wrappers(model: nn.Module, name: str) -> str:
    """A name of a state without what wrappers have added."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    if isinstance(model, nn.parallel.DistributedDataParallel) and parts[0] == "module":
        parts = parts[1:]
    return ".".join(parts)


def _names(model: nn.Module) -> dict[int, str]:
    """The clean names of parameters."""
    return {id(p): _strip_wrappers(model, name) for name, p in model.named_parameters()}


def _has_units(model: nn.Module) -> bool:
    return any(isinstance(m, FullyShardedDataParallel) for m in model.modules())


def _state_type(model: nn.Module, options: StateDictOptions, first_only: bool):
    """The context in which FSDP's units give and take the states that are asked for."""
    offload = options.cpu_offload
    if options.full_state_dict:
        return FullyShardedDataParallel.state_dict_type(
            model,
            StateDictType.FULL_STATE_DICT,
            FullStateDictConfig(offload_to_cpu=offload, rank0_only=first_only),
            FullOptimStateDictConfig(offload_to_cpu=offload, rank0_only=first_only),
        )
    return FullyShardedDataParallel.state_dict_type(
        model,
        StateDictType.SHARDED_STATE_DICT,
        ShardedStateDictConfig(offload_to_cpu=offload),
        ShardedOptimStateDictConfig(offload_to_cpu=offload),
    )


def _first_only(options: StateDictOptions) -> bool:
    return options.full_state_dict and options.cpu_offload and _world.is_initialized()


def _as_asked(value: Any, options: StateDictOptions) -> Any:
    """A state with whole tensors, or on the CPU."""
    if isinstance(value, dict):
        return {key: _as_asked(part, options) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_as_asked(part, options) for part in value)
    if isinstance(value, rushlight.Tensor):
        if options.full_state_dict and is_dtensor(value):
            value = value.full_tensor()
        return value.cpu() if options.cpu_offload else value
    return value


def _result(state: Any, options: StateDictOptions) -> Any:
    if _first_only(options) and _world.get_rank() != 0:
        return {}
    return state


# ---- models ----


def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of a model, under the names of the plain model.

    Args:
        model: a module, wrapped or not.
        submodules: the parts of it that are asked for; None for all.
        options: see `StateDictOptions`.

    Example:
        >>> from rushlight.distributed.checkpoint.state_dict import get_model_state_dict
        >>> sorted(get_model_state_dict(torch.nn.Linear(2, 1)))
        ['bias', 'weight']
    """
    options = _check_options(options)
    if _has_units(model):
        with _state_type(model, options, _first_only(options)):
            state = model.state_dict()
    else:
        state = model.state_dict()
    state = {_strip_wrappers(model, name): value for name, value in state.items()}
    if options.ignore_frozen_params:
        frozen = {
            _strip_wrappers(model, n) for n, p in model.named_parameters() if not p.requires_grad
        }
        state = {name: value for name, value in state.items() if name not in frozen}
    if submodules:
        state = _of_submodules(model, submodules, state, options)
    return _result(_as_asked(state, options), options)


def _of_submodules(model, submodules, state, options):
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = _strip_wrappers(model, name) + "."
        for key, value in state.items():
            if key.startswith(prefix):
                found[key if options.keep_submodule_prefixes else key[len(prefix) :]] = value
    return found


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load a state under the names of the plain model into a model, however it is wrapped.

    Args:
        model: the network, however it is wrapped.
        model_state_dict: the state.
        options: `StateDictOptions`.

    For an example see `distributed.checkpoint.state_dict.get_state_dict`.
    """
    options = _check_options(options)
    state: dict[str, Any] = dict(model_state_dict)
    if any(isinstance(key, nn.Module) for key in state):
        paths = {id(m): _strip_wrappers(model, name) for name, m in model.named_modules()}
        state = {
            f"{paths[id(module)]}.{name}": value
            for module, part in model_state_dict.items()
            for name, value in part.items()
        }
    if options.broadcast_from_rank0:
        state = _from_first(state)
    elif not state:
        return _IncompatibleKeys([], [])
    targets = {_strip_wrappers(model, name): name for name in _own_names(model)}
    tensors = dict(model.named_parameters(remove_duplicate=False))
    renamed = {}
    for name, value in state.items():
        full = targets.get(name, name)
        renamed[full] = _spread(value, tensors.get(full))
    strict = options.strict
    if options.ignore_frozen_params and strict:
        for name, p in tensors.items():
            if not p.requires_grad:
                renamed.setdefault(name, p.detach())
    if not _has_units(model):
        return model.load_state_dict(renamed, strict=strict)
    with _state_type(model, options, False):
        return model.load_state_dict(
            {_without_units(name): value for name, value in renamed.items()}, strict=strict
        )


def _without_units(name: str) -> str:
    return name.replace("_fsdp_wrapped_module.", "")


def _own_names(model):
    """The names of a model's state, wrappers' included."""
    for path, module in model.named_modules(remove_duplicate=False):
        handle = module.__dict__.get("_handle")
        prefix = path + "." if path else ""
        if handle is not None:
            yield from (f"{prefix}_fsdp_wrapped_module.{n}" for n in _paths(handle))
        for name in (*module._parameters, *module._buffers):
            yield prefix + name


def _paths(handle):
    from rushlight.distributed.fsdp._states import _paths as paths

    return paths(handle)


def _from_first(value: Any) -> Any:
    """Rank 0's state, everywhere."""
    holder = [_as_asked(value, StateDictOptions(full_state_dict=True, cpu_offload=True))]
    _objects.broadcast_object_list(holder, src=0)
    return holder[0]


def _spread(value: Any, like: Any) -> Any:
    """A whole tensor as a distributed one, where the model's is one."""
    if not is_dtensor(like) or not isinstance(value, rushlight.Tensor) or is_dtensor(value):
        return value
    if value.shape != like.shape:
        return value
    from rushlight.distributed.tensor import distribute_tensor

    return distribute_tensor(
        value.to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )


# ---- optimisers ----


def _as_list(optimizers: Any) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _init_optim_state(optim: Optimizer) -> None:
    """Let an optimiser that has not stepped make its states, as they are before a first step."""
    if optim.state:
        return
    params = [p for group in optim.param_groups for p in group["params"] if p.requires_grad]
    grads, rates = [p.grad for p in params], [g["lr"] for g in optim.param_groups]
    for p in params:
        p.grad = rushlight.zeros_like(p)
    for group in optim.param_groups:
        rate = group["lr"]
        group["lr"] = rushlight.zeros_like(rate) if isinstance(rate, rushlight.Tensor) else 0.0
    optim.step(closure=None)
    for group, rate in zip(optim.param_groups, rates, strict=True):
        group["lr"] = rate
    for p, grad in zip(params, grads, strict=True):
        p.grad = grad
    for state in optim.state.values():
        step = state.get("step")
        if isinstance(step, rushlight.Tensor):
            step.zero_()
        elif step is not None:
            state["step"] = 0


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of optimisers, under the names of the plain model's parameters.

    Args:
        model: the module whose parameters they change, wrapped or not.
        optimizers: one optimiser or several.
        submodules: the parts of the model that are asked for; None for all.
        options: see `StateDictOptions`.

    Example:
        >>> from rushlight.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> net = torch.nn.Linear(2, 1)
        >>> found = get_optimizer_state_dict(net, torch.optim.Adam(net.parameters()))
        >>> sorted(found["state"])
        ['bias', 'weight']
    """
    options = _check_options(options)
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for optim in _as_list(optimizers):
        _init_optim_state(optim)
        part = _optim_state(model, optim, options)
        whole["state"].update(part.get("state", {}))
        whole["param_groups"] += part.get("param_groups", [])
    if submodules:
        prefixes = tuple(
            _strip_wrappers(model, n) + "." for n, m in model.named_modules() if m in submodules
        )
        whole["state"] = {k: v for k, v in whole["state"].items() if k.startswith(prefixes)}
        for group in whole["param_groups"]:
            group["params"] = [n for n in group["params"] if n.startswith(prefixes)]
    if options.flatten_optimizer_state_dict:
        whole = _flatten(whole)
    return _result(_as_asked(whole, options), options)


def _optim_state(model, optim, options) -> dict[str, Any]:
    if _has_units(model):
        with _state_type(model, options, _first_only(options)):
            return _optim_states.optim_state_dict(model, optim)
    names = _names(model)
    state, groups = {}, []
    for group in optim.param_groups:
        known = [names[id(p)] for p in group["params"]]
        for name, p in zip(known, group["params"], strict=True):
            if p in optim.state:
                state[name] = dict(optim.state[p])
        groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": known})
    return {"state": state, "param_groups": groups}


def _flatten(whole: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, state in whole["state"].items():
        for key, value in state.items():
            flat[f"state.{name}.{key}"] = value
    for group in whole["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def _unflatten(flat: dict[str, Any], groups) -> dict[str, Any]:
    """The nested form; `groups` are lists of names."""
    state: dict[str, dict] = {}
    settings: dict[str, dict] = {}
    for path, value in flat.items():
        kind, _, rest = path.partition(".")
        name, _, key = rest.rpartition(".")
        (state if kind == "state" else settings).setdefault(name, {})[key] = value
    return {
        "state": state,
        "param_groups": [
            {**settings.get(names[0], {}), "params": names} for names in groups if names
        ],
    }


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load states under the names of the plain model's parameters into optimisers.

    Args:
        model: the network, however it is wrapped.
        optimizers: its optimiser, or several.
        optim_state_dict: the states.
        options: `StateDictOptions`.

    For an example see `distributed.checkpoint.state_dict.get_state_dict`.
    """
    options = _check_options(options)
    if options.broadcast_from_rank0:
        optim_state_dict = _from_first(optim_state_dict)
    for optim in _as_list(optimizers):
        _init_optim_state(optim)
        if not optim_state_dict:
            continue
        own = _own_groups(model, optim)
        whole = optim_state_dict
        if options.flatten_optimizer_state_dict:
            whole = _unflatten(optim_state_dict, own)
        part = _for(optim, own, whole)
        if _has_units(model):
            with _state_type(model, options, False):
                loaded = _optim_states.optim_state_dict_to_load(model, optim, part)
        else:
            loaded = _by_number(optim, own, part)
        optim.load_state_dict(loaded)


def _own_groups(model, optim) -> list[list[str]]:
    """The names of the parameters of each group."""
    if _has_units(model):
        from rushlight.distributed.fsdp._optim_states import _Owners

        owners = _Owners(model)
        return [[n for p in g["params"] for n in owners.names_of(p)] for g in optim.param_groups]
    names = _names(model)
    return [[names[id(p)] for p in group["params"]] for group in optim.param_groups]


def _for(optim, own, whole) -> dict[str, Any]:
    """What of a state an optimiser has parameters for."""
    groups = []
    for names, group in zip(own, optim.param_groups, strict=True):
        saved = [g for g in whole["param_groups"] if set(names) & set(g["params"])]
        settings: dict[str, Any] = saved[0] if saved else group
        rest = {key: value for key, value in settings.items() if key != "params"}
        groups.append({**rest, "params": names})
    known = {name for names in own for name in names}
    return {
        "state": {name: value for name, value in whole["state"].items() if name in known},
        "param_groups": groups,
    }


def _by_number(optim, own, part) -> dict[str, Any]:
    """A state by numbers of parameters, as an optimiser loads it."""
    order = [name for names in own for name in names]
    params = [p for group in optim.param_groups for p in group["params"]]
    state = {
        i: {key: _spread(value, p) for key, value in part["state"][name].items()}
        for i, (name, p) in enumerate(zip(order, params, strict=True))
        if name in part["state"]
    }
    numbers = {name: i for i, name in enumerate(order)}
    groups = [{**g, "params": [numbers[n] for n in g["params"]]} for g in part["param_groups"]]
    return {"state": state, "param_groups": groups}


# ---- both ----


def get_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimisers, under the names of the plain model.

    Args:
        model: the network, however it is wrapped.
        optimizers: its optimiser, or several.
        submodules: only the states of these.
        options: `StateDictOptions`.

    Example:
        >>> from rushlight.distributed.checkpoint import state_dict as states
        >>> net = torch.nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        >>> weights, rest = states.get_state_dict(net, sgd)
        >>> sorted(weights)
        ['bias', 'weight']
        >>> _ = states.set_state_dict(net, sgd, model_state_dict=weights, optim_state_dict=rest)
    """
    optimizers = _as_list(optimizers)
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Load the states of a model and of its optimisers, under the names of the plain model.

    Args:
        model: the network, however it is wrapped.
        optimizers: its optimiser, or several.
        model_state_dict: the first that `get_state_dict` gave.
        optim_state_dict: the second.
        options: `StateDictOptions`.

    For an example see `distributed.checkpoint.state_dict.get_state_dict`.
    """
    optimizers = _as_list(optimizers)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
