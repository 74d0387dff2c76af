"""`state_dict` and `load_state_dict` of a module, and the messages where two states differ."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from itertools import chain
from typing import Any

import rushlight
from rushlight import Tensor, __future__
from rushlight._warnings import warn
from rushlight.utils import swap_tensors

from ..parameter import Parameter, is_lazy
from ._tree import ModuleTree

EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: the keys that only one side had."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def state_dict(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Fill `destination` (a new OrderedDict if None) with the state of a module and its children.

    A child goes through its own `state_dict` method, which a class may override.
    """
    if destination is None:
        destination = OrderedDict()
        vars(destination)["_metadata"] = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in module._state_dict_hooks.values():
        result = hook(module, destination, prefix, metadata)
        if result is None:
            continue
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("state_dict post-hook must return None")
        destination = result
    return destination


def _has_extra_state(module):
    return type(module).get_extra_state is not ModuleTree.get_extra_state


def save_own(self, destination, prefix: str, keep_vars):
    """Store a module's own parameters, persistent buffers and extra state."""
    for name, parameter in self._parameters.items():
        if parameter is not None:
            destination[prefix + name] = parameter if keep_vars else parameter.detach()
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if _has_extra_state(self):
        destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()


def load_own(
    self,
    state_dict,
    prefix: str,
    local_metadata,
    strict,
    missing_keys,
    unexpected_keys,
    error_msgs,
):
    """Copy the entries of `state_dict` under `prefix` into a module's own tensors.

    Nothing is raised: differences are appended to the last three.
    """
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    persistent = (
        (name, buffer)
        for name, buffer in self._buffers.items()
        if name not in self._non_persistent_buffers_set
    )
    own = {k: v for k, v in chain(self._parameters.items(), persistent) if v is not None}
    assign = None
    if local_metadata.get("assign_to_params_buffers", False):
        assign = local_metadata.get("assigned", {})
    for name, target in own.items():
        key = prefix + name
        if key in state_dict:
            _load_one(self, name, target, key, state_dict[key], assign, error_msgs)
        elif strict:
            missing_keys.append(key)
    _load_extra(self, state_dict, prefix, strict, missing_keys, unexpected_keys)
    if strict:
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + EXTRA_STATE_KEY:
                continue
            head, dot, _ = key[len(prefix) :].partition(".")
            known = head in self._modules if dot else head in own
            if not known:
                unexpected_keys.append(key)


def _load_one(module, name, target, key, value, assign, errors):
    """Copy one entry, or, where `assign` is not None, make it the module's own.

    `assign` holds, by the ids of tensors and of those that they have become, where they belong.
    """
    if not isinstance(value, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected a tensor in the state, not '
            f"{type(value)}"
        )
        return
    if is_lazy(target) and is_lazy(value):
        return
    if target.dim() == 0 and tuple(value.shape) == (1,):
        value = value[0]  # scalars were saved as vectors of one element once
    if value.shape != target.shape:
        errors.append(
            f"size mismatch for {key}: the checkpoint has the shape {value.shape}, the module "
            f"{target.shape}: make the module with the checkpoint's sizes."
        )
        return
    if target.is_meta and not value.is_meta and assign is None:
        warn(
            f"for {key}: copying from a non-meta parameter to one on meta changes nothing; with "
            "`assign=True` the module takes the loaded one itself",
        )
    try:
        with rushlight.no_grad():
            if isinstance(target, Parameter) and __future__.get_swap_module_params_on_conversion():
                changed = target.module_load(value, assign=assign is not None)
                if changed is target or changed is value:
                    raise RuntimeError("module_load() must return a new tensor")
                if not isinstance(changed, Parameter):
                    changed = Parameter(changed, requires_grad=target.requires_grad)
                swap_tensors(target, changed.requires_grad_(target.requires_grad))
                return
            if assign is None:
                target.copy_(value)
                return
            if isinstance(target, Parameter):
                if isinstance(value, Parameter):
                    value.requires_grad_(target.requires_grad)
                else:
                    value = Parameter(value, requires_grad=target.requires_grad)
            # Names of one tensor get one: as with copies, the last that was loaded.
            places = assign[id(value)] = assign.setdefault(id(target), [])
            places.append((module, name, target))
            for owner, attribute, _ in places:
                setattr(owner, attribute, value)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}" of shape {target.shape}, an exception '
            f"occurred: {error.args}."
        )


def _load_extra(module, states, prefix, strict, missing, unexpected):
    key = prefix + EXTRA_STATE_KEY
    if type(module).set_extra_state is not ModuleTree.set_extra_state:
        if key in states:
            module.set_extra_state(states[key])
        elif strict:
            missing.append(key)
    elif strict and key in states:
        unexpected.append(key)


def load_state_dict(module, states, strict, assign):
    """Load a whole module; see `Module.load_state_dict`."""
    if not isinstance(states, Mapping):
        raise TypeError(
            f"Expected state_dict to be dict-like, got {type(states)}. {type(module).__name__} "
            "takes what its state_dict() gave, and torch.load() reads it from a file."
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    all_metadata = getattr(states, "_metadata", None)
    states = OrderedDict(states)
    if all_metadata is not None:
        vars(states)["_metadata"] = all_metadata

    assigned: dict[int, list[Any]] = {}

    def load(part, own, prefix):
        metadata = {} if all_metadata is None else dict(all_metadata.get(prefix[:-1], {}))
        if assign:
            metadata.update(assign_to_params_buffers=assign, assigned=assigned)
        part._load_from_state_dict(own, prefix, metadata, True, missing, unexpected, errors)
        for name, child in part._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                load(child, {k: v for k, v in own.items() if k.startswith(below)}, below)
        for hook in part._load_state_dict_post_hooks.values():
            if hook(part, _IncompatibleKeys(missing, unexpected)) is not None:
                raise AssertionError(
                    "a hook of register_load_state_dict_post_hook must return None: it changes the "
                    "lists of keys in place"
                )

    load(module, states, "")
    if strict:
        if unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_quote(unexpected)}. ")
        if missing:
            errors.insert(0, f"Missing key(s) in state_dict: {_quote(missing)}. ")
    if errors:
        lines = "\n\t".join(errors)
        failure = RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}"
        )
        vars(failure)["__notes__"] = list(_hints(missing, unexpected, states))
        raise failure
    return _IncompatibleKeys(missing, unexpected)


def _quote(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _hints(missing, unexpected, states):
    """Plain words on why keys differ, where it can be told."""
    if not missing or not unexpected:
        return
    wanted, given = set(missing), set(unexpected)
    for key, value in states.items():
        if isinstance(value, Mapping) and wanted <= value.keys():
            yield f"Hint: the state lies within a checkpoint: load_state_dict(checkpoint[{key!r}])"
            return
    for prefix in ("module.", "model.", "_orig_mod."):
        stripped = {key.removeprefix(prefix) for key in given}
        if all(key.startswith(prefix) for key in given) and stripped & wanted:
            yield (
                f"Hint: the keys of the state start with {prefix!r}, those of the model do "
                f"not. Remove it: {{k.removeprefix({prefix!r}): v for k, v in state.items()}}"
            )
            return
        if all(key.startswith(prefix) and key[len(prefix) :] in given for key in wanted):
            yield f"Hint: the keys of the model start with {prefix!r}, those of the state do not."
            return
    if len(wanted) <= 200 and len(given) <= 200:
        from difflib import get_close_matches

        pairs = [(key, get_close_matches(key, given, n=1, cutoff=0.8)) for key in missing]
        for key, match in [(key, match) for key, match in pairs if match][:5]:
            yield f'Hint: "{key}" is missing; the state has "{match[0]}".'
