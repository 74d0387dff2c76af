"""`Optimizer`: the base class of all optimisers.

It keeps parameter groups (dicts with "params" and settings) and a state for each parameter, saves
and loads both, and runs hooks around `step`. A subclass collects the tensors of a group in `step`
and hands them to one op that updates all of them in a single pass, unrecorded (see `sgd.py`).
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor
from rushlight._parameter import clear_grads
from rushlight._warnings import warn
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype
from rushlight.utils.hooks import RemovableHandle

from ._imported import (  # noqa: F401  # what packages import from here
    Args,
    DeviceDict,
    DeviceDtypeDict,
    Kwargs,
    R,
    StateDict,
    T,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _view_as_real,
)

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]


# What `params` may be, for annotations.
ParamsT = Iterable[Tensor] | Iterable[dict] | Iterable[tuple[str, Tensor]]
_params_t = ParamsT


class _RequiredParameter:
    """The default of a setting that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()


def _add_hook(
    hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimiser.

    Args:
        hook: the function; returns a handle with `remove()`.

    Example:
        >>> handle = torch.optim.optimizer.register_optimizer_step_pre_hook(
        ...     lambda o, args, kwargs: print("step")
        ... )
        >>> torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()
        step
        >>> handle.remove()
    """
    return _add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimiser.

    Args:
        hook: the function; returns a handle with `remove()`.

    Example:
        >>> handle = torch.optim.optimizer.register_optimizer_step_post_hook(
        ...     lambda o, args, kwargs: print("done")
        ... )
        >>> torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()
        done
        >>> handle.remove()
    """
    return _add_hook(_global_post_hooks, hook)


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """For an optimiser's `step`: gradients are recorded only where it says `differentiable`."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with rushlight.set_grad_enabled(bool(args[0].defaults.get("differentiable", False))):
            return func(*args, **kwargs)

    return wrapper


def _get_value(x: Any) -> Any:
    """The number in a tensor of one element, or the number itself."""
    return x.item() if isinstance(x, Tensor) else x


def _add_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """The `step` of a class with the hooks around it, which see the optimiser as first argument."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        if _global_pre_hooks or self._optimizer_step_pre_hooks:
            own = self._optimizer_step_pre_hooks.values()
            for hook in chain(_global_pre_hooks.values(), own):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {result}."
                    )
                args, kwargs = result
        out = step(*args, **kwargs)
        if _global_post_hooks or self._optimizer_step_post_hooks:
            own = self._optimizer_step_post_hooks.values()
            for hook in chain(own, _global_post_hooks.values()):
                hook(self, args, kwargs)
        return out

    wrapper.hooked = True  # type: ignore
    wrapper.__doc__ = step.__doc__ or Optimizer.step.__doc__
    return wrapper


class Optimizer:
    """The base class of optimisers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and settings of that group.
        defaults: settings of the groups that do not give their own.

    Example:
        >>> net = torch.nn.Linear(3, 2)
        >>> groups = [{"params": [net.weight]}, {"params": [net.bias], "lr": 0.01}]
        >>> optimizer = torch.optim.SGD(groups, lr=0.1)
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
    """

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    # Settings that groups in older files lack, with what they were before they existed.
    _later_settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params should be an iterable of Tensors, of names with "
                f"tensors, or of groups, not one {params.type()}: put it into a list"
            )
        if not isinstance(params, Iterable):
            raise TypeError(
                f"{type(params).__name__!r} object is not iterable: {type(self).__name__} takes "
                "parameters, as model.parameters() gives them"
            )
        given = [*params]
        self._make_hooks()
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: defaultdict = defaultdict(dict)
        if not given:
            raise ValueError(
                "optimizer got an empty parameter list: the model has no parameters, or the "
                "iterator `model.parameters()` was used up before, and list() makes it last"
            )
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Put the hooks around the `step` of this optimiser's class."""
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            setattr(cls, "step", _add_hooks(cls.step))  # noqa: B010

    profile_hook_step = staticmethod(_add_hooks)
    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._later_settings.items():
                group.setdefault(name, value)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- hooks ---------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a result replaces both."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; a result replaces it."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; a result replaces the dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The settings and the state: {"state": {index: dict}, "param_groups": [dict]}.

        Parameters are numbered in the order of the groups; the state's tensors are not copied.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[Any, int] = {}
        groups = []
        for group in self.param_groups:
            settings = dict(group)
            own = settings.pop("params")
            settings["params"] = [numbers.setdefault(p, len(numbers)) for p in own]
            groups.append(settings)
        # Keys that are no tensors are kept: programs store what is of no parameter under a name.
        keys = [numbers[key] if isinstance(key, Tensor) else key for key in self.state]
        state = dict(zip(keys, self.state.values(), strict=True))
        made = {"state": state, "param_groups": groups}
        return _run_state_hooks(self, made, self._optimizer_state_dict_post_hooks)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load settings and state from `state_dict`.

        Tensors are copied, in the dtype and on the device of their parameter: steps change nothing
        of what is given.
        """
        state_dict = _run_state_hooks(
            self, state_dict.copy(), self._optimizer_load_state_dict_pre_hooks
        )
        saved = deepcopy(state_dict["param_groups"])
        _check_sizes("loaded state dict", saved, "optimizer", self.param_groups)
        parameters: dict[object, Tensor] = {}
        for own, other in zip(self.param_groups, saved, strict=True):
            parameters.update(zip(other["params"], own["params"], strict=True))
        state: defaultdict = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                state[parameters[key]] = _move_state(parameters[key], value)
            else:
                state[key] = deepcopy(value)
        for own, other in zip(self.param_groups, saved, strict=True):
            other["params"] = own["params"]
            if "param_names" in own and "param_names" not in other:
                other["param_names"] = own["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove all gradients, or fill them with zeros."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; every optimiser defines its own.

        Args:
            closure: computes the loss again, with gradients, and returns it.
        """
        raise NotImplementedError

    def _loss_of(self, closure: Callable[[], Any] | None) -> Any:
        """The closure's result, computed with gradients; None without one."""
        if closure is None:
            return None
        with rushlight.enable_grad():
            return closure()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and any settings that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "add_param_group: params need to be organized in ordered collections, say a list; "
                "a set gives its tensors in another order in every run"
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "add_param_group: all params should be with/without names, but "
                    f"{named.count(False)} of {len(named)} are without"
                )
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, and this parameter is of type "
                    f"{rushlight.typename(p)}"
                )
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    "can't optimize a non-leaf Tensor: one that was computed has its gradient in "
                    "what it was computed from; detach().requires_grad_() makes a leaf of it"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    + name
                )
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warn(
                "add_param_group: got a parameter group with duplicate parameters, which a step "
                "updates more than once; list each of them once",
            )
        names = "param_names" in param_group
        if any(("param_names" in group) != names for group in self.param_groups):
            raise ValueError(
                "add_param_group: all param groups should be with/without names, but this one is "
                f"{'with' if names else 'without'} and others are not"
            )
        taken = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in taken for p in params):
            where = next(i for i, p in enumerate(params) if id(p) in taken)
            raise ValueError(
                "some parameters appear in more than one parameter group: number "
                f"{where} of group {len(self.param_groups)}, of {tuple(params[where].shape)}, is "
                "in one before it"
            )
        self.param_groups.append(param_group)


def _run_state_hooks(
    optimizer: Optimizer, state: dict[str, Any], hooks: OrderedDict[int, Any]
) -> dict[str, Any]:
    """A state after hooks, each of which may give another one."""
    for hook in hooks.values():
        other = hook(optimizer, state)
        state = state if other is None else other
    return state


def _check_sizes(source: str, saved: list[Any], owner: str, groups: list[Any]) -> None:
    """ValueError where saved groups cannot be those of their new owner."""
    if len(saved) != len(groups):
        raise ValueError(
            f"{source} has a different number of parameter groups: {len(saved)}, not {len(groups)}"
        )
    for i, (other, own) in enumerate(zip(saved, groups, strict=True)):
        if len(other["params"]) != len(own["params"]):
            raise ValueError(
                f"{source} contains a parameter group that doesn't match the size of {owner}'s "
                f"group: {len(other['params'])} parameters, not {len(own['params'])}, in group {i}"
            )


def _move_state(parameter: Tensor, value: Any, key: str | None = None) -> Any:
    """A copy of a loaded state, its tensors in the dtype and on the device of their parameter."""
    if isinstance(value, Tensor):
        if key == "step":  # a count, whose own dtype is precise enough
            return value.to("cpu", copy=True)
        if parameter.is_floating_point():
            if key == "mu_product":  # a number, and not one of 16 bits
                dtype = rushlight.promote_types(parameter.dtype, value.dtype)
                return value.to("cpu", dtype, copy=True)
            return value.to(dtype=parameter.dtype, device=parameter.device, copy=True)
        return value.to(device=parameter.device, copy=True)
    if isinstance(value, dict):
        return {k: _move_state(parameter, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_move_state(parameter, v) for v in value)  # type: ignore
    return value
