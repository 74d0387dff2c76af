"""`ZeroRedundancyOptimizer`: each process keeps the state of its part of the parameters alone."""

from __future__ import annotations

import copy
import io
from typing import Any

import rushlight
from rushlight.distributed import _objects, _world
from rushlight.distributed.algorithms import Join, Joinable, JoinHook
from rushlight.distributed.utils import _broadcast_coalesced
from rushlight.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class _JoinHook(JoinHook):
    def __init__(self, zero):
        super().__init__()
        self.zero = zero

    def main_hook(self):
        """Step with the gradients there are: all processes exchange their parameters."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser whose state is spread over processes.

    Each process steps on its part of the parameters and gives the others the results.
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ):
        params = list(params)
        if not params:
            raise ValueError(
                "params argument given to the optimizer should be an iterable of "
                "Tensors, not an empty one"
            )
        first = params[0]["params"] if isinstance(params[0], dict) else params
        for p in list(first) if not isinstance(first, rushlight.Tensor) else [first]:
            if not isinstance(p, rushlight.Tensor):
                raise TypeError(f"params argument should be an iterable of Tensors, not {type(p)}")
        if overlap_with_ddp:
            raise NotImplementedError(
                "rushlight has no overlap_with_ddp of ZeroRedundancyOptimizer yet"
            )
        self.initialized = False
        Joinable.__init__(self)
        self.process_group = _world._group(process_group)
        self.world_size = self.process_group.size()
        self.rank = self.process_group.rank()
        self.global_rank = _world.get_rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._optim_constructor = optimizer_class
        self._optim_defaults = defaults
        self._all_state_dicts: list[dict] = []
        Optimizer.__init__(self, params, dict(defaults))
        self._build()
        self.initialized = True

    def _build(self):
        self._partition_parameters_cache = self._partition_parameters()
        mine = self._partition_parameters_cache[self.rank]
        self.optim = self._optim_constructor(mine, **self._optim_defaults)
        # What the optimiser adds to its groups (its defaults) shows in these, too.
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            for key, value in inner.items():
                if key != "params":
                    group.setdefault(key, value)

    @property
    def join_device(self):
        """Where it computes."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """Its group."""
        return self.process_group

    def join_hook(self, **kwargs):
        """What stands in for this process once it has no more inputs."""
        return _JoinHook(self)

    def _partition_parameters(self, params_per_rank=None):
        """For each rank its groups: the largest parameters first, to whoever has least."""
        parts: list[list[dict]] = [[] for _ in range(self.world_size)]
        sizes = [0] * self.world_size
        self._owners: dict[int, int] = {}
        for group in self.param_groups:
            mine: list[list] = [[] for _ in range(self.world_size)]
            for p in sorted(group["params"], key=lambda t: t.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                mine[rank].append(p)
                sizes[rank] += p.numel()
                self._owners[id(p)] = rank
            for rank, params in enumerate(mine):
                part = {key: value for key, value in group.items() if key != "params"}
                parts[rank].append({"params": params, **part})
        return parts

    @staticmethod
    def _sync_param_groups(source, to):
        for one, other in zip(source, to, strict=True):
            for key, value in one.items():
                if key != "params":
                    other[key] = value

    def add_param_group(self, param_group):
        """Add a group of parameters."""
        super().add_param_group(param_group)
        if self.initialized:
            states = self.optim.state
            self._build()
            own = {id(p) for group in self.optim.param_groups for p in group["params"]}
            for p, state in states.items():
                if id(p) in own:
                    self.optim.state[p] = state

    def step(self, closure=None, **kwargs):
        """A step of this process's part, and everybody's results."""
        Join.notify_join_context(self)
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self):
        for rank, groups in enumerate(self._partition_parameters_cache):
            params = [p for group in groups for p in group["params"]]
            if params:
                _broadcast_coalesced(self.process_group, params, src=rank)

    # ---- states ----

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather all processes' states in one, for its `state_dict`."""
        stream = io.BytesIO()
        rushlight.save(self.optim.state_dict(), stream)
        here = self.rank == to
        parts = [None] * self.world_size if here else None
        _objects.gather_object(stream.getvalue(), parts, group=self.process_group, group_dst=to)
        self._all_state_dicts = []
        for part in parts or ():
            self._all_state_dicts.append(rushlight.load(io.BytesIO(part)))

    def _indices(self):
        order = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(order)}

    def state_dict(self):
        """The state of all parameters, as one process's optimiser has it."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant "
                "to save the global state."
            )
        whole = super().state_dict()
        indices = self._indices()
        whole["state"] = {}
        for rank, part in enumerate(self._all_state_dicts):
            groups = self._partition_parameters_cache[rank]
            params = [p for group in groups for p in group["params"]]
            for local, state in part["state"].items():
                whole["state"][indices[id(params[local])]] = state
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict):
        """Take this process's part of a state of all parameters."""
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
