"""`DistributedDataParallel`: the same module in every process, each on its share of the samples."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import distributed as dist
from rushlight.distributed import _world
from rushlight.distributed._reducer import (
    FIRST_BUCKET_BYTES,
    DelayedReducer,
    GradBucket,
    Reducer,
)
from rushlight.distributed.algorithms import Join, Joinable, JoinHook
from rushlight.distributed.utils import (
    _sync_module_states,
    _sync_params_and_buffers,
    _verify_param_shape_across_processes,
)
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.scatter_gather import _device
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.distributed import ProcessGroup
    from rushlight.distributed.device_mesh import DeviceMesh

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1024 * 1024


@dataclasses.dataclass
class _MixedPrecision:
    """The dtypes that parameters and inputs have in forward, that gradients travel in, and of
    buffers; parameters and gradients themselves stay as they are."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


def _is_float(t):
    return isinstance(t, rushlight.Tensor) and t.is_floating_point()


class _DDPJoinHook(JoinHook):
    """What a process does that has no more inputs, while others have."""

    def __init__(self, ddp, divide_by_initial_world_size):
        super().__init__()
        self.ddp = ddp
        ddp.reducer.divide_by_initial = divide_by_initial_world_size

    def main_hook(self):
        self.ddp._shadow()

    def post_hook(self, is_last_joiner):
        ddp = self.ddp
        common = ddp._common_rank(is_last_joiner)
        _sync_module_states(
            ddp.module,
            ddp.process_group,
            ddp.broadcast_bucket_size,
            common,
            ddp.parameters_to_ignore,
            ddp.forward_sync_buffers,
        )


def _group_of_mesh(process_group, device_mesh):
    """The group that a program means, by one of both."""
    if device_mesh is None:
        return process_group
    if process_group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
    return device_mesh.get_group(mesh_dim=0)


def _check_device_ids(device_ids, device):
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    if device_ids and device.type == "cpu":
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device GPU modules, but the parameters are on the CPU."
        )


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are averaged over all processes.

    Gradients are reduced in buckets while backward goes on. Inputs are moved to the one device of
    `device_ids`, where it is given.

    Args:
        module: the module.
        dim: kept, without effect: nothing is split over devices.
        device_ids: a list of the one GPU that the module is on; None on the CPU.
        output_device: kept, without effect.
        broadcast_buffers: whether buffers are those of the first process before each forward
            pass.
        init_sync: whether parameters and buffers begin as those of the first process.
        process_group: the processes; all of them if None.
        bucket_cap_mb: the size of a bucket in MB.
        find_unused_parameters: whether some parameters may get no gradient in a step.
        check_reduction: deprecated, without effect.
        gradient_as_bucket_view: whether gradients are views of the buckets.
        static_graph: whether every step uses the same parameters.
        delay_all_reduce_named_params: pairs of names and parameters that are reduced together
            at the end.
        param_to_hook_all_reduce: the parameter whose gradient sets that off.
        mixed_precision: the dtypes of parameters, gradients and buffers while computing.
        device_mesh: a mesh of one dimension, instead of `process_group`.
        skip_all_reduce_unused_params: whether parameters that no process used are left out.
        bucket_cap_mb_list: the sizes of the buckets one by one.
        batched_grad_copy: whether gradients are copied into buckets together.
        forward_sync_buffers: the newer name of `broadcast_buffers`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> net(torch.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> torch.distributed.destroy_process_group()
    """

    _active_ddp_module = None

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | str | Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: Any = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: DeviceMesh | None = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Any = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be given "
                "together"
            )
        self.process_group = _world._group(_group_of_mesh(process_group, device_mesh))
        self.device_mesh = device_mesh
        self.module = module
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        delayed: list[Any] = list(delay_all_reduce_named_params or ())
        self.parameters_to_ignore.update(name for name, _ in delayed)
        named = self._reduced_parameters()
        if not named and not delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self.dim = dim
        self.device = (named or delayed)[0][1].device
        _check_device_ids(device_ids, self.device)
        self.device_type = self.device.type
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device
        broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.forward_sync_buffers = broadcast_buffers
        if forward_sync_buffers is not None:
            self.forward_sync_buffers, broadcast_buffers = forward_sync_buffers, True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.broadcast_bucket_size = 250 * _MEGABYTE
        sizes = bucket_cap_mb_list or [25 if bucket_cap_mb is None else bucket_cap_mb]
        self._bucket_limits = [int(size * _MEGABYTE) for size in sizes]
        self.bucket_bytes_cap = max(self._bucket_limits)
        if bucket_cap_mb is None and not bucket_cap_mb_list:
            self._bucket_limits.insert(0, FIRST_BUCKET_BYTES)
        if delayed:
            self._delay([p for _, p in delayed], param_to_hook_all_reduce)
        if init_sync:
            _verify_param_shape_across_processes(self.process_group, [p for _, p in named])
            _sync_module_states(
                module,
                self.process_group,
                self.broadcast_bucket_size,
                0,
                self.parameters_to_ignore,
                broadcast_buffers,
            )
        if mixed_precision is not None and mixed_precision.buffer_dtype is not None:
            for part in module.modules():
                for name, b in part._buffers.items():
                    if b is not None and b.is_floating_point():
                        part._buffers[name] = b.to(mixed_precision.buffer_dtype)
        self._comm_hooks: list[Any] = []
        self._make_reducer()

    def _reduced_parameters(self):
        """The parameters whose gradients are reduced, with their names."""
        return [
            (name, p)
            for name, p in self.module.named_parameters()
            if p.requires_grad and name not in self.parameters_to_ignore
        ]

    def _delay(self, parameters, of):
        """Reduces gradients of these parameters all at once, when that of `of` is there."""
        _sync_params_and_buffers(self.process_group, parameters, self.broadcast_bucket_size, 0)
        self._delayed = DelayedReducer(
            parameters, of, self.process_group, lambda: self.require_backward_grad_sync
        )

    def _make_reducer(self):
        named = self._reduced_parameters()
        self._module_parameters = [p for _, p in named]
        self.reducer = Reducer(
            self._module_parameters,
            [name for name, _ in named],
            self.process_group,
            self._bucket_limits,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
        )
        for p in self._module_parameters:  # their optimisers step once gradients are reduced
            for handle in getattr(p, "_in_backward_handles", ()):
                handle.remove()
        mixed = self.mixed_precision
        if mixed is not None:
            self.reducer.reduce_dtype = mixed.reduce_dtype or mixed.param_dtype
        self._buffers_to_share = [
            b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]

    @property
    def broadcast_buffers(self) -> bool:
        """Whether forward begins with a broadcast of rank 0's buffers."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value):
        self.forward_sync_buffers = value

    def __getstate__(self):
        default = _world._get_default_group()
        if self.process_group is not default:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported with the default process group: make "
                "this module without process_group= before it is pickled"
            )
        state = self.__dict__.copy()
        for name in ("process_group", "reducer", "_module_parameters", "_buffers_to_share"):
            state.pop(name, None)
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.process_group = _world._get_default_group()
        self.require_forward_param_sync = True
        self.require_backward_grad_sync = True
        self._make_reducer()

    @contextlib.contextmanager
    def no_sync(self):
        """A context manager in which gradients are not reduced; the next backward outside reduces
        them.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _syncs(self) -> bool:
        return rushlight.is_grad_enabled() and self.require_backward_grad_sync

    def forward(self, *inputs, **kwargs):
        """Run the module, with the buffers of rank 0."""
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        try:
            output = self.module(*inputs, **kwargs)
        finally:
            self._show_parameters()
        return self._post_forward(output)

    def _pre_forward(self, *inputs, **kwargs):
        """What is done before the module computes; the inputs as it gets them."""
        syncs = self._syncs()
        if syncs:
            work = Join.notify_join_context(self)
            if work is not None:
                self.reducer.divisor = None
                if not getattr(self.reducer, "divide_by_initial", True):
                    self.reducer.divisor = work.active
            self.reducer.rebuild()
        elif rushlight.is_grad_enabled():
            self.reducer.check_finished()
        if self._join_config.enable:
            self._say_whether_backward_syncs(syncs)
        if self._shares_buffers():
            self._sync_buffers()
        if self.device_ids:
            device = _device(self.device_ids[0])
            inputs, kwargs = _pytree.tree_map_only(
                rushlight.Tensor, lambda t: t.to(device), (inputs, kwargs)
            )
        dtype = None if self.mixed_precision is None else self.mixed_precision.param_dtype
        if dtype is None:
            return inputs, kwargs
        self._show_cast_parameters(dtype)
        return _pytree.tree_map(
            lambda t: t.to(dtype) if _is_float(t) and t.dtype != dtype else t, (inputs, kwargs)
        )

    def _post_forward(self, output):
        """What is done after the module has computed; its output."""
        if not self._syncs():
            self.require_forward_param_sync = False
            return output
        self.require_forward_param_sync = True
        found = ()
        if self.find_unused_parameters:
            leaves = _pytree.tree_leaves(output)
            found = [t for t in leaves if isinstance(t, rushlight.Tensor)]
        self.reducer.prepare(found)
        return output

    def _show_cast_parameters(self, dtype):
        """Let the modules compute with their parameters in another dtype, recorded."""
        cast: dict[int, Any] = {}
        for path, part in self.module.named_modules():
            for name, p in part._parameters.items():
                known = f"{path}.{name}" if path else name
                if not _is_float(p) or known in self.parameters_to_ignore:
                    continue
                if id(p) not in cast:
                    cast[id(p)] = p.to(dtype)
                part.__dict__[name] = cast[id(p)]

    def _show_parameters(self):
        if self.mixed_precision is not None:
            for part in self.module.modules():
                for name in part._parameters:
                    part.__dict__.pop(name, None)

    def _shares_buffers(self) -> bool:
        return (
            self.require_forward_param_sync and self.forward_sync_buffers and self._buffers_to_share
        ) != []

    def _sync_buffers(self):
        if not (self.require_forward_param_sync and self.forward_sync_buffers):
            return
        self._buffers_to_share = [
            b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]
        if not self._buffers_to_share:
            return
        source = 0
        if self._join_config.enable:
            source = self._common_rank(True)
        with rushlight.no_grad():
            _sync_params_and_buffers(
                self.process_group, self._buffers_to_share, self.broadcast_bucket_size, source
            )

    # ---- uneven inputs ----

    def join(
        self,
        divide_by_initial_world_size=True,
        enable=True,
        throw_on_early_termination=False,
    ):
        """A context manager in which processes may have different numbers of inputs."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs):
        """The hook that replaces this process once it has no more inputs."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self):
        """The device of the module."""
        return self.device

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group

    def _note(self, number):
        device = self.process_group._note_device
        return rushlight.tensor([number], dtype=rushlight.int32, device=device)

    def _say_whether_backward_syncs(self, syncs):
        said = self._note(1 if syncs else 0)
        self.process_group.allreduce([said]).wait()
        return int(said) != 0

    def _common_rank(self, candidate):
        """The highest rank that says it is one."""
        number = self.process_group.rank() if candidate else -1
        best = self._note(number)
        self.process_group.allreduce([best], op=dist.ReduceOp.MAX).wait()
        if int(best) == -1:
            raise ValueError(
                "Expected rank_cond to be true for at least one process, but all processes of the "
                "group said that their inputs are at an end"
            )
        return int(best)

    def _shadow(self):
        """Take part in an iteration of the others with zeros."""
        self.reducer.rebuild_as_shadow()
        syncs = self._say_whether_backward_syncs(False)
        if self.forward_sync_buffers and self._buffers_to_share and self.require_forward_param_sync:
            source = self._common_rank(False)
            _sync_params_and_buffers(
                self.process_group, self._buffers_to_share, self.broadcast_bucket_size, source
            )
        self.require_forward_param_sync = syncs
        if syncs:
            self.reducer.shadow()

    # ---- communication hooks ----

    def register_comm_hook(self, state, hook):
        """Let `hook(state, bucket)` reduce buckets; it returns a future of the reduced tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        annotations = getattr(hook, "__annotations__", {})
        bucket = annotations.get("bucket")
        if bucket is not None and bucket not in (GradBucket, "GradBucket", "dist.GradBucket"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        returned = annotations.get("return")
        if returned is not None and "Future" not in str(returned):
            raise ValueError(
                "Communication hook: return annotation should be "
                "torch.futures.Future[torch.Tensor]."
            )
        self._comm_hooks.append((hook, state))
        self.reducer.hook = hook
        self.reducer.hook_state = state

    def _register_builtin_comm_hook(self, comm_hook_type):
        from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            "ALLREDUCE": default_hooks.allreduce_hook,
            "FP16_COMPRESS": default_hooks.fp16_compress_hook,
        }
        self.register_comm_hook(None, hooks[comm_hook_type.name])

    def _set_static_graph(self):
        """Say that every iteration records the same."""
        self.static_graph = self.reducer.static = True

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward broadcasts rank 0's buffers."""
        return bool(self._shares_buffers())

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        """Leave names of parameters and buffers out."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self):
        buckets = self.reducer.buckets
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "broadcast_buffers": int(self.forward_sync_buffers),
            "num_parameter_tensors": len(self._module_parameters),
            "num_buckets": len(buckets),
            "iteration": self.reducer.iterations,
            "has_rebuilt_buckets": int(self.reducer.rebuilt),
        }
