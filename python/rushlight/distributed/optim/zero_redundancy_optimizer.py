"""`ZeroRedundancyOptimizer`: each process keeps the state of only its share of the parameters."""

from __future__ import annotations

import copy
import io
import logging
from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from rushlight.distributed import _objects, _world
from rushlight.distributed.algorithms import Join, Joinable, JoinHook
from rushlight.distributed.optim.utils import _Functional, functional_optim_map, step_with
from rushlight.distributed.utils import _broadcast_coalesced
from rushlight.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

_logger = logging.getLogger(__name__)
_ONE_GROUP = (
    "ZeroRedundancyOptimizer with `overlap_with_ddp=True` only supports a single parameter group"
)


class _JoinHook(JoinHook):
    def __init__(self, zero):
        super().__init__()
        self.zero = zero

    def main_hook(self):
        """Step with the gradients there are: all processes exchange their parameters."""
        self.zero.step()


@dataclass
class _Piece:
    """Parameters of a bucket of DDP's that one rank steps, and the flat tensor that they are."""

    rank: int
    begin: int  # the place of the first in its bucket
    parameters: list[Any]
    flat: Any


def _flatten(parameters):
    """One tensor of which the parameters are views from now on."""
    flat = _flatten_dense_tensors([p.data for p in parameters])
    for p, piece in zip(parameters, _unflatten_dense_tensors(flat, parameters), strict=True):
        p.data = piece
    return flat


def _check_parameters(params):
    """The parameters or groups as a list, and all parameters."""
    if isinstance(params, rushlight.Tensor):
        raise TypeError("params argument should be an iterable of Tensors, not one Tensor")
    params = list(params)
    if not params:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    every: list[Any] = params
    if all(isinstance(group, dict) for group in params):
        for group in params:
            if "params" not in group:
                raise ValueError("Each parameter group must have a 'params' key")
            one = isinstance(group["params"], rushlight.Tensor)
            group["params"] = [group["params"]] if one else list(group["params"])
        every = [p for group in params for p in group["params"]]
    if not all(isinstance(p, rushlight.Tensor) for p in every):
        raise TypeError("params argument should be an iterable of Tensors or dicts")
    kind = every[0].type() if every else None
    for p in every:
        if p.is_sparse or p.type() != kind:
            raise ValueError(
                "ZeroRedundancyOptimizer only supports dense parameters, with the same dense type "
                f"for all, but got {kind} and {p.type()}"
            )
    return params


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser whose state is sharded over processes.

    Each process steps on its part of the parameters and gives the others the results.

    Args:
        params: see `Optimizer`; all of one dtype.
        optimizer_class: the optimiser of a process's part.
        process_group: the processes; all by default.
        parameters_as_bucket_view: whether the parameters of a process become views of one tensor,
            which is sent without a copy.
        overlap_with_ddp: whether a hook of `ddp_zero_hook` steps in backward, in place of `step`.
            What a process steps are buckets of DDP then, in one group of parameters.
        defaults: the optimiser's settings.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(
        ...     [w], torch.optim.SGD, lr=0.5
        ... )
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.5000])
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ):
        params = _check_parameters(params)
        if not overlap_with_ddp and optimizer_class in functional_optim_map.values():
            raise ValueError(
                f"Passing in a functional optimizer {optimizer_class} when `overlap_with_ddp=False`"
            )
        self.initialized = False
        Joinable.__init__(self)
        self.process_group = _world._group(process_group)
        self.world_size = self.process_group.size()
        self.rank = self.process_group.rank()
        self.global_rank = _world.get_rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._overlap_with_ddp = overlap_with_ddp
        self._optim_constructor = optimizer_class
        if isinstance(optimizer_class, type) and issubclass(optimizer_class, _Functional):
            self._optim_constructor = optimizer_class.kind
        self._optim_defaults = defaults
        self._all_state_dicts: list[dict] = []
        self._pieces: list[list[_Piece]] = []  # of each bucket of DDP's
        self._flats: list[list[Any]] = []  # of each rank, with parameters_as_bucket_view
        Optimizer.__init__(self, params, dict(defaults))
        if not overlap_with_ddp:
            self._build(self._partition_parameters())
        elif len(self.param_groups) != 1:
            raise RuntimeError(_ONE_GROUP)
        self.initialized = True

    def _build(self, parts):
        """Make the optimiser of this process's part; `parts`: for each rank its groups."""
        self._parts = parts
        self._owners = {
            id(p): rank
            for rank, groups in enumerate(parts)
            for group in groups
            for p in group["params"]
        }
        self.optim = self._optim_constructor(parts[self.rank], **self._optim_defaults)
        # What the optimiser adds to its groups (its defaults) shows in these, too.
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            for key, value in inner.items():
                if key != "params":
                    group.setdefault(key, value)
        if self.parameters_as_bucket_view and not self._overlap_with_ddp:
            self._flats = []
            for rank in range(self.world_size):
                by_device: dict[Any, list] = {}
                for p in self._parameters_of(rank):
                    by_device.setdefault(p.device, []).append(p)
                self._flats.append([_flatten(each) for each in by_device.values()])

    def _parameters_of(self, rank):
        return [p for group in self._parts[rank] for p in group["params"]]

    @property
    def join_device(self):
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group

    def join_hook(self, **kwargs):
        """The hook that replaces this process once it has no more inputs."""
        return _JoinHook(self)

    def _partition_parameters(self):
        """For each rank its groups: the largest parameters first, to whoever has least."""
        parts: list[list[dict]] = [[] for _ in range(self.world_size)]
        sizes = [0] * self.world_size
        for group in self.param_groups:
            mine: list[list] = [[] for _ in range(self.world_size)]
            for p in sorted(group["params"], key=lambda t: t.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                mine[rank].append(p)
                sizes[rank] += p.numel()
            for rank, params in enumerate(mine):
                parts[rank].append(group | {"params": params})
        return parts

    # ---- steps in DDP's backward ----

    @property
    def _owns_buckets(self):
        return bool(self._pieces)

    def _take_buckets(self, buckets, shard):
        """Spread the parameters of DDP's buckets over the ranks: whole buckets, or pieces."""
        most = sum(p.numel() for bucket in buckets for p in bucket) / self.world_size
        sizes = [0] * self.world_size
        for index, bucket in enumerate(buckets):
            cuts = [0]
            size = 0
            for i, p in enumerate(bucket):
                if shard and i > cuts[-1] and size + p.numel() >= most:
                    cuts.append(i)
                    size = 0
                size += p.numel()
            pieces = []
            for begin, end in zip(cuts, [*cuts[1:], len(bucket)], strict=True):
                rank = sizes.index(min(sizes)) if shard else index % self.world_size
                part = bucket[begin:end]
                sizes[rank] += sum(p.numel() for p in part)
                pieces.append(_Piece(rank, begin, part, _flatten(part)))
            self._pieces.append(pieces)
        parts: list[list[Any]] = [[] for _ in range(self.world_size)]
        for piece in (piece for pieces in self._pieces for piece in pieces):
            parts[piece.rank].extend(piece.parameters)
        self._build([[self.param_groups[0] | {"params": params}] for params in parts])

    def _step_bucket(self, bucket):
        """Step on this rank's pieces of a bucket; what sends the results of all of its pieces."""
        Join.notify_join_context(self)
        gradients = bucket.gradients()
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        sent = []
        for piece in self._pieces[bucket.index()]:
            if not all(p.requires_grad for p in piece.parameters):
                raise RuntimeError(
                    "with `overlap_with_ddp=True` parameters are shared out once: requires_grad of "
                    "none may change at run time"
                )
            if piece.rank == self.rank:
                end = piece.begin + len(piece.parameters)
                step_with(self.optim, piece.parameters, gradients[piece.begin : end])
            sent.append(self.process_group.broadcast([piece.flat], root=piece.rank))
        return sent

    def _check_built(self):
        if self._overlap_with_ddp and not self._owns_buckets:
            raise RuntimeError(
                "this ZeroRedundancyOptimizer is not fully initialized yet: it takes its "
                "parameters from the buckets of DDP, which the first iterations arrange"
            )

    @staticmethod
    def _sync_param_groups(source, to):
        for one, other in zip(source, to, strict=True):
            for key, value in one.items():
                if key != "params":
                    other[key] = value

    def add_param_group(self, param_group):
        """Add a group of parameters."""
        if self.initialized and self._overlap_with_ddp:
            raise RuntimeError(_ONE_GROUP)
        super().add_param_group(param_group)
        if self.initialized:
            states = self.optim.state
            self._build(self._partition_parameters())
            own = {id(p) for group in self.optim.param_groups for p in group["params"]}
            for p, state in states.items():
                if id(p) in own:
                    self.optim.state[p] = state

    def step(self, closure=None, **kwargs):
        """Step this process's parameters, and send the results to all processes."""
        if self._overlap_with_ddp:
            _logger.warning(
                "ZeroRedundancyOptimizer with `overlap_with_ddp=True` steps during backward: a "
                "call of `step()` does nothing"
            )
            return None
        Join.notify_join_context(self)
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self):
        for rank in range(self.world_size):
            params = self._parameters_of(rank)
            if self.parameters_as_bucket_view:
                params = self._flats[rank]
            if params:
                _broadcast_coalesced(self.process_group, params, src=rank)

    # ---- states ----

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather all processes' states in one process, for its `state_dict`."""
        self._check_built()
        stream = io.BytesIO()
        rushlight.save(self.optim.state_dict(), stream)
        here = self.rank == to
        parts: Any = [None] * self.world_size if here else None
        _objects.gather_object(stream.getvalue(), parts, group=self.process_group, group_dst=to)
        self._all_state_dicts = []
        for part in parts or ():
            self._all_state_dicts.append(rushlight.load(io.BytesIO(part)))

    def _indices(self):
        order = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(order)}

    def state_dict(self):
        """The state of all parameters, in the form of an unsharded optimiser."""
        self._check_built()
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank: all ranks have to call "
                f"`consolidate_state_dict(to={self.rank})` before"
            )
        whole = super().state_dict()
        indices = self._indices()
        whole["state"] = {}
        for rank, part in enumerate(self._all_state_dicts):
            params = self._parameters_of(rank)
            for local, state in part["state"].items():
                whole["state"][indices[id(params[local])]] = state
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict):
        """Load this process's share of a state of all parameters."""
        self._check_built()
        order = [p for group in self.param_groups for p in group["params"]]
        mine = [p for group in self.optim.param_groups for p in group["params"]]
        place = {id(p): i for i, p in enumerate(mine)}
        part = self.optim.state_dict()
        part["state"] = {
            place[id(p)]: copy.deepcopy(state_dict["state"][i])
            for i, p in enumerate(order)
            if id(p) in place and i in state_dict["state"]
        }
        self._sync_param_groups(state_dict["param_groups"], part["param_groups"])
        self.optim.load_state_dict(part)
        self._sync_param_groups(state_dict["param_groups"], self.param_groups)
