"""`fully_shard`: the parameters of a module spread over processes, each one a distributed tensor.

`_param_unit.py` has the parameters of one call, `_unit.py` how they come and go.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from rushlight import cuda, nn
from rushlight.autograd import Variable
from rushlight.distributed import _making, _world
from rushlight.distributed._contract import _State, contract
from rushlight.distributed._traffic import Traffic
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.fsdp._common import cast_floats, modules_of, places_of, tensors_of
from rushlight.distributed.fsdp._param_unit import ParamUnit, Settings, cut
from rushlight.distributed.fsdp._unit import outermost_forward
from rushlight.distributed.tensor import Shard

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, of gradients as they are added up, and of outputs.

    Args:
        param_dtype: the dtype in which parameters are gathered and computed with; None: their own.
        reduce_dtype: the dtype in which gradients are added up; None: `param_dtype`.
        output_dtype: the dtype of floating-point results; None: as they come.
        cast_forward_inputs: whether floating-point inputs get `param_dtype`.

    Example:
        >>> torch.distributed.fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16).param_dtype
        torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclasses.dataclass
class OffloadPolicy:
    """Parameters stay on their device.

    Example:
        >>> torch.distributed.fsdp.OffloadPolicy()
        OffloadPolicy()
    """


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the CPU's memory.

    Args:
        pin_memory: whether their memory is page-locked.

    Example:
        >>> torch.distributed.fsdp.CPUOffloadPolicy(pin_memory=False)
        CPUOffloadPolicy(pin_memory=False)
    """

    pin_memory: bool = True


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` gives.

    Args:
        units: what is gathered.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> net = torch.distributed.fsdp.fully_shard(torch.nn.Linear(2, 1))
        >>> net.unshard(async_op=True).wait()
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(self, units: Any = ()) -> None:
        self._units = units

    def wait(self) -> None:
        """The module has its parameters when this returns."""
        units, self._units = self._units, ()
        for unit in units:
            unit.show_whole()


_running = threading.local()


def _stack() -> list[_FSDPState]:
    """The forwards that are under way in this thread, the outermost first."""
    if not hasattr(_running, "stack"):
        _running.stack = []
    return _running.stack


def _in_backward() -> bool:
    try:
        Variable._execution_engine.queue_callback(lambda: None)
    except RuntimeError:
        return False
    return True


class _FSDPState(_State):
    """What `fully_shard` keeps of the modules of one call."""

    def __init__(self):
        self.modules: list[nn.Module] = []
        self.units: list[ParamUnit] = []
        self.settings: Any = None
        self.reshards: bool | None = None
        self.yet_to_run: set[int] = set()
        self.forward: Any = None  # the one under way, where this is outermost
        self.traffic = Traffic()  # of the units below, where this is outermost

    def begin_anew(self):
        """As if no forward had run yet; what an earlier one, or a failed backward, left goes."""
        for state in _states_below(self.modules):
            state._end(True, (), None)
            for unit in state.units:
                unit.held = unit.waiting = None
                unit.forget()
        self.traffic.begin()

    def before(self, args, kwargs):
        """Before the forward of one of the modules."""
        if not self.yet_to_run:
            self._begin()
        policy = self.settings.policy
        if policy.cast_forward_inputs and policy.param_dtype is not None:
            return cast_floats((args, kwargs), policy.param_dtype)
        return args, kwargs

    def _begin(self):
        self.yet_to_run = {id(m) for m in self.modules}
        stack = _stack()
        outermost = not stack
        stack.append(self)
        if outermost and not _in_backward():
            below = [unit for state in _states_below(self.modules) for unit in state.units]
            self.forward = outermost_forward(self.traffic, below)
            self.forward.__enter__()
        for unit in self.units:
            unit.keep = outermost if self.reshards is None else not self.reshards
            unit.forward_begins()

    def after(self, module, args, kwargs, output):
        """After the forward of one of the modules; it may have failed."""
        failed = output is None and sys.exc_info()[0] is not None
        self.yet_to_run.discard(id(module))
        if failed or not self.yet_to_run:
            self._end(failed, (args, kwargs), output)
        dtype = self.settings.policy.output_dtype
        return output if dtype is None else cast_floats(output, dtype)

    def _end(self, failed, inputs, output):
        self.yet_to_run = set()
        stack = _stack()
        if self in stack:
            del stack[stack.index(self) :]
        if self.forward is not None:
            self.forward.__exit__(None, None, None)
            self.forward = None
        wanting = [] if failed else [t for t in tensors_of(output) if t.requires_grad]
        for unit in self.units:
            unit.forward_ends(wanting, list(tensors_of(inputs)))

    def reshard(self):
        """Let the modules show their parts."""
        for unit in self.units:
            unit.use_parts()
            unit.release()


def _states_below(modules: Iterable[nn.Module]) -> list[_FSDPState]:
    found = (fully_shard.state(module) for top in modules for module in top.modules())
    return list(dict.fromkeys(state for state in found if state is not None))


class FSDPModule:
    """What a module can do after `fully_shard`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> net = torch.distributed.fsdp.fully_shard(torch.nn.Linear(2, 1))
        >>> isinstance(net, torch.distributed.fsdp.FSDPModule)
        True
        >>> torch.distributed.destroy_process_group()
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of the class that was spread: parts of containers are made so."""
        plain = cls.__mro__[1]
        made = plain.__new__(plain, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> _FSDPState:
        state = fully_shard.state(self)
        if state is None:
            raise AssertionError(f"No FSDP state found on {self}")
        return state

    def _states(self, recurse: bool = True) -> list[_FSDPState]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return [fully_shard.state(m) for m in modules if isinstance(m, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Let this module, not those within it that are spread themselves, have its parameters.

        Args:
            async_op: gives a handle to wait for, while which the parameters travel; this module's
                forward waits for them, too.
        """
        units = self._get_fsdp_state().units
        if async_op:
            for unit in units:
                unit.prefetch()
            return UnshardHandle(units)
        UnshardHandle(units).wait()
        return None

    def reshard(self) -> None:
        """Let this module's whole parameters go."""
        self._get_fsdp_state().reshard()

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward reduces gradients, or keeps whole ones in this process."""
        for state in self._states(recurse):
            state.settings.syncs = requires_gradient_sync
            state.settings.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward adds up over replicas, or keeps what shards have added up."""
        for state in self._states(recurse):
            state.settings.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether the whole goes after forward and is gathered again for backward."""
        _check_reshard(reshard_after_forward, None)
        for state in self._states(recurse):
            state.reshards = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether the whole goes after backward."""
        for state in self._states(recurse):
            state.settings.keeps_after_backward = not reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """May be said; every backward ends with all gradients there."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether backward gathers this module's parameters before anything asks for them."""
        self._get_fsdp_state().settings.gathers_for_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather these while this module's forward computes, not the one that came next before."""
        self._get_fsdp_state().settings.forward_next = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather these while this module's backward computes, not the one that comes next."""
        self._get_fsdp_state().settings.backward_next = _states_of(modules)

    def set_separate_reduce_scatter_group(
        self, enable: bool = True, *, recurse: bool = True
    ) -> None:
        """Whether gradients have process groups of their own, beside those of parameters.

        All processes that share parameters call it.
        """
        made: dict[tuple[int, ...], Any] = {}
        for state in self._states(recurse):
            ranks = tuple(_world.get_process_group_ranks(state.settings.group))
            if enable and ranks not in made:
                made[ranks] = _making.new_group(list(ranks), use_local_synchronization=True)
            state.settings.reduce_group = made[ranks] if enable else None

    def set_reduce_scatter_max_input_buffers(
        self, max_input_buffers: int, *, recurse: bool = True
    ) -> None:
        """How many units' whole gradients may be on their way at a time."""
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(
                f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}"
            )
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for state in self._states(recurse):
            state.settings.reductions_at_once = max_input_buffers

    def reset_iter_state(self) -> None:
        """Make the outermost module ready for a forward after one, or a backward, that failed.

        Gradients that were on their way, or waited to be reduced, are lost.
        """
        state = self._get_fsdp_state()
        if any(unit.traffic not in (None, state.traffic) for unit in state.units):
            raise RuntimeError("reset_iter_state() must be called on the root FSDP module")
        state.begin_anew()

    def set_post_optim_event(self, event: Any) -> None:
        """May be said; parameters are gathered after all that was computed before."""

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """May be said; process groups allocate no memory of their own."""
        if self._get_fsdp_state().settings.all_gather is not None:
            raise AssertionError(
                "cannot call set_allocate_memory_from_process_group_for_comm() when a custom "
                "all-gather is set: it allocates its memory itself"
            )

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """There is no symmetric memory."""
        raise NotImplementedError(f"set_symm_mem_for_comm: no symmetric memory of {backend}")

    def set_all_reduce_hook(self, hook: Callable[[Any], None], *, stream: Any = None) -> None:
        """Let `hook(gradients)` change what is reduced, flat, in place.

        Args:
            hook: the function.
            stream: must be None, because there are no streams on the CPU.
        """
        if stream is not None:
            raise NotImplementedError("set_all_reduce_hook: there are no streams on the CPU")
        self._get_fsdp_state().settings.all_reduce_hook = hook

    def set_custom_all_gather(self, comm: Any) -> None:
        """Let `comm` gather parts: an object with `allocate` and a call."""
        self._get_fsdp_state().settings.all_gather = comm

    def set_custom_reduce_scatter(self, comm: Any) -> None:
        """Let `comm` reduce and scatter gradients: an object with `allocate` and a call."""
        self._get_fsdp_state().settings.reduce_scatter = comm

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by `factor`, instead of averaging."""
        self._get_fsdp_state().settings.divisor = float(factor)

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """Deprecated name of `set_gradient_divide_factor`."""
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Whether processes add up and divide afterwards."""
        for state in self._states():
            state.settings.sums = enable

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:
        """Whether parameters that no process used have gradients of zeros."""
        for state in self._states(recurse):
            state.settings.all_grads = reduce_scatter_unused_params


def _states_of(modules) -> list[_FSDPState]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"FSDPModule expected but got {type(module)}:\n{module}")
    return [module._get_fsdp_state() for module in modules]


def _check_reshard(value, size):
    if value is None or isinstance(value, bool):
        return
    if not isinstance(value, int) or size is None:
        raise ValueError(
            f"reshard_after_forward should be a bool or an int, the size of a group, not {value}"
        )
    if value < 1 or value > size or size % value != 0:
        raise ValueError(
            f"reshard_after_forward={value} should be a factor of the number of shards, {size}"
        )


def _no_copies(self, memo):
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


@functools.cache
def _class_of(kind: type) -> type:
    """The class of a module after `fully_shard`."""

    def apply(self, *args, **kwargs):
        fully_shard.state(self).reshard()
        return kind._apply(self, *args, **kwargs)

    own = {"__deepcopy__": _no_copies, "_apply": apply, "__new__": FSDPModule.__new__}
    # Behind the module's class: before it, the layout of objects would be another.
    return type(f"FSDP{kind.__name__}", (kind, FSDPModule), own)


def _mesh_for(mesh) -> DeviceMesh:
    if mesh is None:
        if not _world.is_initialized():
            _making.init_process_group()
        kind = "cuda" if cuda.is_available() else "cpu"
        return init_device_mesh(kind, (_world.get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return mesh


@contract(state_cls=_FSDPState)
def fully_shard(
    module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[nn.Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[nn.Parameter] | None = None,
) -> Any:
    """Shard a module's parameters, gradients and optimiser states over processes.

    Parameters become distributed tensors in place. In forward and backward the module has them
    whole; gradients are the mean over processes, of which each keeps its part. Call it first with
    the modules within that are to be gathered on their own, then with the module; make the
    optimiser afterwards. The class of the module becomes one that is an `FSDPModule`, too.

    Args:
        module: a module, or several whose parameters are gathered together.
        mesh: the processes that share the parameters; of two dimensions: replicas, and the
            processes that share.
        reshard_after_forward: whether the whole goes after forward and is gathered again for
            backward; by default it does but for the outermost module. A number stands for True.
        shard_placement_fn: gives the `Shard` of a parameter, or None for its first dimension.
        mp_policy: dtypes.
        offload_policy: where parameters wait: on the CPU, where they are.
        ignored_params: parameters that are left as they are.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> net = torch.distributed.fsdp.fully_shard(torch.nn.Linear(2, 1))
        >>> net(torch.ones(3, 2)).sum().backward()
        >>> net.weight.placements
        (Shard(dim=0),)
        >>> torch.distributed.destroy_process_group()
    """
    tops = [module] if isinstance(module, nn.Module) else list(module)
    for top in tops:
        if type(top).forward is nn.Module.forward:
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {top}"
            )
    state = fully_shard.state(tops[0])
    mesh = _mesh_for(mesh)
    settings = state.settings = Settings(mesh, mp_policy or MixedPrecisionPolicy())
    _check_reshard(reshard_after_forward, settings.group.size())
    state.reshards = None if reshard_after_forward is None else bool(reshard_after_forward)
    state.modules = tops
    own = modules_of(
        {"" if len(tops) == 1 else str(i): top for i, top in enumerate(tops)},
        lambda part: part not in tops and fully_shard.state(part) is not None,
    )
    _move(own.values(), mesh.device_type, ignored_params)
    state.units = _make_units(own, settings, shard_placement_fn, ignored_params)
    for top in tops:
        top.register_forward_pre_hook(
            lambda _module, args, kwargs: state.before(args, kwargs), prepend=True, with_kwargs=True
        )
        top.register_forward_hook(state.after, with_kwargs=True, always_call=True)
        top.register_state_dict_pre_hook(lambda *_: state.reshard())
        top.register_load_state_dict_pre_hook(lambda *_: state.reshard())
        top.__class__ = _class_of(type(top))
    return module


def _move(modules, device_type: str, ignored) -> None:
    """Take parameters and buffers to where those of the mesh lie; meta ones stay."""
    left_out = {id(p) for p in ignored or ()}
    for module in modules:
        for t in (*module._parameters.values(), *module._buffers.values()):
            if t is None or id(t) in left_out or t.device.type in ("meta", device_type):
                continue
            t.data = t.data.to(device_type)


def _make_units(modules, settings, place, ignored) -> list[ParamUnit]:
    """A unit for the parameters of each dtype."""
    params: dict[int, Any] = {}
    for module, name, fqn, p in places_of(modules, ignored or ()):
        params.setdefault(id(p), (p, fqn, []))[2].append((module, name))
    kinds: dict[Any, tuple[list, list]] = {}
    for p, fqn, places in params.values():
        if p.ndim == 0:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters: make {fqn} a tensor of one "
                "dimension"
            )
        part, leaf = cut(p, fqn, settings, _shard_dim(p, fqn, place), places)
        parts, leaves = kinds.setdefault(p.dtype, ([], []))
        parts.append(part)
        leaves.append(leaf)
    return [ParamUnit(settings, parts, leaves) for parts, leaves in kinds.values()]


def _shard_dim(param, fqn, place) -> int:
    placement = None if place is None else place(param)
    if placement is None:
        return 0
    if not isinstance(placement, Shard):
        raise AssertionError(f"Expected Shard, got {type(placement)}: {placement}")
    if not -param.ndim <= placement.dim < param.ndim:
        raise AssertionError(
            f"Shard dim {placement.dim} is invalid for {param.ndim}D tensor: {fqn}"
        )
    return placement.dim % param.ndim


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Let another method of a sharded module get full parameters, as `forward` does.

    Of a module that is not spread nothing changes.

    Args:
        module: the module.
        method_name: the method.

    Example:
        >>> torch.distributed.fsdp.register_fsdp_forward_method(torch.nn.Linear(2, 1), "forward")
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)
    state = fully_shard.state(module)

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        args, kwargs = state.before(args, kwargs)
        output = None
        try:
            output = method(*args, **kwargs)
        except BaseException:
            state.after(module, args, kwargs, None)
            raise
        return state.after(module, args, kwargs, output)

    setattr(module, method_name, wrapper)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """A no-op: modules share no streams.

    Args:
        modules: the modules.

    Example:
        >>> torch.distributed.fsdp.share_comm_ctx([])
    """
    _states_of(modules)
