"""`FullyShardedDataParallel`: each process keeps a shard of every wrapped module's parameters.

`_flat_param.py` has the parameters of one unit, `_unit.py` how they come and go, `_states.py`
states of modules, `_optim_states.py` those of optimisers, `wrap.py` what is wrapped.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import nn
from rushlight._warnings import warn
from rushlight.distributed import _world
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._traffic import Traffic
from rushlight.distributed.fsdp import _init, _optim_states, _states, api
from rushlight.distributed.fsdp._common import (
    FSDP_WRAPPED_MODULE,
    cast_floats,
    clean_tensor_name,
    tensors_of,
)
from rushlight.distributed.fsdp._flat_param import FlatParameter
from rushlight.distributed.fsdp._unit import outermost_forward
from rushlight.distributed.fsdp.api import *  # noqa: F403
from rushlight.distributed.fsdp.api import (
    BackwardPrefetch,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.distributed import ProcessGroup
    from rushlight.distributed.device_mesh import DeviceMesh
    from rushlight.types import Device

__all__ = ["FlatParameter", "FullyShardedDataParallel"]
__all__ += api.__all__


class FullyShardedDataParallel(nn.Module):
    """A module whose parameters, gradients and optimiser states are sharded over processes.

    The parameters are gathered for forward and backward of each wrapped unit; gradients are the
    mean over processes, of which each keeps its part. Give the optimiser this module's parameters.

    Args:
        module: the module.
        process_group: the processes, or a pair of groups for hybrid strategies; all of them
            if None.
        sharding_strategy: what is sharded; `FULL_SHARD` if None.
        cpu_offload: whether parameters are kept in the memory of the CPU.
        auto_wrap_policy: which submodules are units of their own.
        backward_prefetch: when the next unit is gathered in backward.
        mixed_precision: the dtypes of parameters, gradients and buffers while computing.
        ignored_modules: modules whose parameters stay whole.
        param_init_fn: fills modules that are on the meta device.
        device_id: the device to move to.
        sync_module_states: whether parameters begin as those of the first process.
        forward_prefetch: whether the next unit is gathered in forward.
        limit_all_gathers: whether few units are whole at the same time.
        use_orig_params: whether `parameters()` are those of the module, or one flat one for
            each unit.
        ignored_states: parameters or modules that stay whole.
        device_mesh: a mesh, instead of `process_group`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> net = torch.distributed.fsdp.FullyShardedDataParallel(torch.nn.Linear(2, 1))
        >>> net(torch.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: nn.Module,
        process_group: ProcessGroup | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Any = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: Any = None,
        ignored_modules: Any = None,
        param_init_fn: Callable[..., Any] | None = None,
        device_id: Device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        self._check(module, ignored_modules, ignored_states, mixed_precision)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.sharding_strategy = strategy
        self._device_mesh = device_mesh
        self.process_group, self._inter_node_pg = _init.groups(process_group, device_mesh, strategy)
        self.rank = self.process_group.rank()
        self.world_size = self.process_group.size()
        self.mixed_precision = mixed_precision or api.MixedPrecision()
        self.cpu_offload = cpu_offload or api.CPUOffload()
        self.backward_prefetch = backward_prefetch
        self.forward_prefetch = forward_prefetch
        self.limit_all_gathers = limit_all_gathers
        self._use_orig_params = use_orig_params
        self._state_dict_type = StateDictType.FULL_STATE_DICT
        self._state_dict_config: Any = api.FullStateDictConfig()
        self._optim_state_dict_config: Any = api.FullOptimStateDictConfig()
        self._is_root: bool | None = None
        self._traffic = Traffic()
        self._ignored_modules, self._ignored_params = _init.find_ignored(
            module, ignored_modules, ignored_states
        )
        settings = {
            "process_group": self._group_setting(process_group),
            "sharding_strategy": sharding_strategy,
            "cpu_offload": cpu_offload,
            "backward_prefetch": backward_prefetch,
            "mixed_precision": mixed_precision,
            "param_init_fn": param_init_fn,
            "device_id": device_id,
            "sync_module_states": sync_module_states,
            "forward_prefetch": forward_prefetch,
            "limit_all_gathers": limit_all_gathers,
            "use_orig_params": use_orig_params,
            "device_mesh": device_mesh,
        }
        if auto_wrap_policy is not None:
            _init.check_not_wrapped(module, FullyShardedDataParallel)
            _init.auto_wrap(
                module,
                auto_wrap_policy,
                FullyShardedDataParallel,
                self._ignored_modules,
                self._ignored_params,
                settings,
            )
        left_out = self._ignored_params, self._ignored_modules
        params = _init.own_parameters(module, *left_out)
        default = self.process_group._note_device
        _init.materialize(module, params, param_init_fn, device_id, self._ignored_modules, default)
        if sync_module_states:
            params = _init.own_parameters(module, *left_out)
            _init.sync(module, params, self.process_group, self._inter_node_pg)
        setattr(self, FSDP_WRAPPED_MODULE, module)
        self.__dict__["_handle"] = _init.handle(self, module)
        self._buffers_cast = False
        self.register_load_state_dict_post_hook(_states.after_load)

    def _group_setting(self, process_group):
        """What units within this one are given as their group."""
        if process_group is not None or self._device_mesh is not None:
            return process_group
        if self._inter_node_pg is None:
            return self.process_group
        return self.process_group, self._inter_node_pg

    @staticmethod
    def _check(module, ignored_modules, ignored_states, mixed_precision):
        if isinstance(module, FullyShardedDataParallel):
            raise ValueError("The module is wrapped by FullyShardedDataParallel already")
        if ignored_modules is not None and ignored_states is not None:
            raise ValueError(
                "Cannot pass both ignored_modules and ignored_states: the latter can name all"
            )
        if mixed_precision is not None and mixed_precision.keep_low_precision_grads:
            raise NotImplementedError(
                "rushlight has no keep_low_precision_grads: a gradient has its parameter's dtype"
            )

    # ---- the module within ----

    @property
    def module(self):
        """The wrapped module."""
        return getattr(self, FSDP_WRAPPED_MODULE)

    @property
    def _flat_param(self):
        return None if self._handle is None else self._handle.flat_param

    @property
    def _has_params(self) -> bool:
        return self._handle is not None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self.module.__getitem__(key)

    @staticmethod
    def fsdp_modules(module: nn.Module, root_only: bool = False) -> list:
        """The wrapped units of a module, with itself first if it is one."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        within = {
            id(inner) for m in found for inner in m.module.modules() if isinstance(inner, type(m))
        }
        return [m for m in found if id(m) not in within]

    def check_is_root(self) -> bool:
        """Whether this is the outermost unit."""
        self._find_root()
        return bool(self._is_root)

    def _find_root(self):
        if self._is_root is None:
            for m in FullyShardedDataParallel.fsdp_modules(self):
                m._is_root = m is self
        if self.mixed_precision.buffer_dtype is not None and not self._buffers_cast:
            self._buffers_cast = True
            own = _init.own_modules(self.module, self._ignored_modules)
            for module in own:
                for name, buffer in module._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        module._buffers[name] = buffer.to(self.mixed_precision.buffer_dtype)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module with its parameters gathered."""
        self._find_root()
        args, kwargs = self._cast_inputs(args, kwargs)
        if not self._is_root:
            return self._run(args, kwargs)
        handles = [h for h in self._handles() if h.summoned is None]
        with outermost_forward(self._traffic, handles):
            return self._run(args, kwargs)

    def _run(self, args, kwargs):
        handle = self._handle
        if handle is None or handle.summoned is not None:
            return self.module(*args, **kwargs)
        try:
            handle.forward_begins()
            output = self.module(*args, **kwargs)
        except BaseException:
            handle.use_parts()
            handle.release()
            raise
        wanting = [t for t in tensors_of(output) if t.requires_grad]
        handle.forward_ends(wanting, list(tensors_of((args, kwargs))))
        return output

    def _cast_inputs(self, args, kwargs) -> tuple[Any, Any]:
        mixed = self.mixed_precision
        dtype = mixed.param_dtype
        asked = mixed.cast_root_forward_inputs if self._is_root else mixed.cast_forward_inputs
        if not asked or dtype is None:
            return args, kwargs
        return cast_floats((args, kwargs), dtype)

    def _apply(self, fn, recurse=True):
        for m in FullyShardedDataParallel.fsdp_modules(self):
            if m._handle is not None:
                m._handle.forget()
        super()._apply(fn, recurse)
        if self._handle is not None:
            self._handle.adopt_leaves()
        return self

    def apply(self, fn):
        """Call `fn(module)` for all submodules, with full parameters."""
        with FullyShardedDataParallel.summon_full_params(self, recurse=False):
            return super().apply(fn)

    # ---- names ----

    def _in_full(self) -> bool:
        return self._handle is not None and self._handle.summoned is not None

    def named_parameters(self, *args, **kwargs):
        """Parameters by name; within `summon_full_params` as the module alone has them."""
        clean = any(m._in_full() for m in FullyShardedDataParallel.fsdp_modules(self))
        for name, p in super().named_parameters(*args, **kwargs):
            yield (clean_tensor_name(name) if clean else name), p

    def named_buffers(self, *args, **kwargs):
        """Buffers by name; within `summon_full_params` as the module alone has them."""
        clean = any(m._in_full() for m in FullyShardedDataParallel.fsdp_modules(self))
        for name, b in super().named_buffers(*args, **kwargs):
            yield (clean_tensor_name(name) if clean else name), b

    # ---- gradients ----

    @contextlib.contextmanager
    def no_sync(self):
        """A context manager in which gradients are not reduced; the next backward outside reduces
        them.
        """
        self._find_root()
        if not self._is_root:
            raise RuntimeError(
                "`no_sync()` on inner FSDP instances is not supported: the outermost has it for all"
            )
        handles = self._handles()
        before = [h.syncs for h in handles]
        for h in handles:
            h.syncs = False
        try:
            yield
        finally:
            for h, syncs in zip(handles, before, strict=True):
                h.syncs = syncs

    def _handles(self):
        found = FullyShardedDataParallel.fsdp_modules(self)
        return [m._handle for m in found if m._handle is not None]

    @rushlight.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0):
        """Scale the gradients so that their norm over all processes is at most `max_norm`."""
        self._find_root()
        if not self._is_root:
            raise RuntimeError(
                "`clip_grad_norm_()` should only be called on the root FSDP instance"
            )
        max_norm, norm_type = float(max_norm), float(norm_type)
        handles = self._handles()
        split = [(h, p) for h in handles if h.sharded for p in h.leaves]
        known = {id(p) for _, p in split}
        whole = [p for p in self.parameters() if id(p) not in known and p.grad is not None]
        grads = [p.grad for _, p in split if p.grad is not None]
        everything = grads + [p.grad for p in whole]
        total = _norm(grads, norm_type, self.part_device())
        if any(h.sharded for h in handles):
            if norm_type == float("inf"):
                self.process_group.allreduce([total], op=ReduceOp.MAX).wait()
            else:
                total = total**norm_type
                self.process_group.allreduce([total]).wait()
        elif norm_type != float("inf"):
            total = total**norm_type
        rest = _norm([p.grad for p in whole], norm_type, total.device)
        if norm_type == float("inf"):
            total = rushlight.maximum(total, rest)
        else:
            total = (total + rest**norm_type) ** (1.0 / norm_type)
        scale = rushlight.clamp(max_norm / (total + 1e-6), max=1.0)
        for grad in everything:
            grad.mul_(scale.to(grad.dtype))
        if not everything:
            warn(
                f"clip_grad_norm_() on rank {self.rank} with no gradients: the norm of nothing is "
                f"returned in the default dtype {total.dtype}",
            )
            return total
        return total.to(max((g.dtype for g in everything), key=lambda d: rushlight.finfo(d).bits))

    def part_device(self):
        """Where this process's parts are."""
        first = next(self.parameters(), None)
        return rushlight.device("cpu") if first is None else first.device

    def register_comm_hook(self, state: object, hook) -> None:
        """Let `hook(state, gradient, part)` reduce the gradients of all units.

        `gradient` is flat and whole, `part` is filled; without parts: `hook(state, gradient)`.
        """
        self._find_root()
        if not self._is_root:
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        for handle in self._handles():
            if handle.hook is not None:
                raise AssertionError("A communication hook is already registered")
            if handle.replicas is not None:
                raise AssertionError("Communication hook is not supported for hybrid strategies")
            handle.hook, handle.hook_state = hook, state

    # ---- whole parameters and states ----

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: nn.Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):
        """Within it, the modules have their whole parameters; `writeback`: keep what is written."""
        if writeback and rank0_only:
            raise NotImplementedError(
                "writeback=True and rank0_only=True is not supported: other ranks would not have "
                "what is written"
            )
        if offload_to_cpu and not rank0_only:
            warn(
                "offload_to_cpu=True and rank0_only=False may result in the unsharded parameters "
                "being redundantly copied to CPU memory",
            )
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            found = [m for m in found if m is module]
        with contextlib.ExitStack() as stack:
            for m in found:
                handle = m._handle
                if handle is None:
                    continue
                if with_grads and not handle.use_orig_params:
                    raise NotImplementedError(
                        "with_grads=True is supported only if use_orig_params=True"
                    )
                here = not rank0_only or _world.get_rank() == 0
                stack.enter_context(handle.summon(writeback, here, offload_to_cpu, with_grads))
            yield

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """The module's state; `state_dict_type` says how much of it each process has."""
        if args:
            destination, prefix, keep_vars = (*args, prefix, keep_vars)[:3]
        return _states.state_dict(self, super().state_dict, destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        _states.loading(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @staticmethod
    def set_state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config=None,
        optim_state_dict_config=None,
    ) -> StateDictSettings:
        """Set the type of the units' state dicts; returns the previous settings."""
        return _states.set_type(
            FullyShardedDataParallel.fsdp_modules(module),
            state_dict_type,
            state_dict_config,
            optim_state_dict_config,
        )

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """The type and settings of the units' state dicts."""
        return _states.get_type(FullyShardedDataParallel.fsdp_modules(module))

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config=None,
        optim_state_dict_config=None,
    ):
        """A context manager that sets the type of state dicts."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module,
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )


def _norm(grads, norm_type, device):
    """The norm of several gradients, in float32 at least."""
    norms = [
        rushlight.linalg.vector_norm(g.float() if g.element_size() < 4 else g, norm_type)
        for g in grads
        if g.numel() > 0
    ]
    if not norms:
        return rushlight.zeros((), device=device)
    return rushlight.linalg.vector_norm(rushlight.stack(norms), norm_type)


for _name in _optim_states.METHODS:
    setattr(FullyShardedDataParallel, _name, staticmethod(getattr(_optim_states, _name)))
