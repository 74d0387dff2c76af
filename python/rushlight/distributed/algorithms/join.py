"""Uneven inputs: processes without inputs take part in the collectives of the others."""

from __future__ import annotations

import abc
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight._warnings import warn
from rushlight.distributed._kinds import ReduceOp

__all__ = ["Join", "JoinHook", "Joinable"]

_JoinConfig = namedtuple("_JoinConfig", "enable throw_on_early_termination is_first_joinable")


def _note(group, number):
    """What a process tells the others."""
    return rushlight.full((1,), int(number), dtype=rushlight.int32, device=group._note_device)


class JoinHook:
    """What a process does once it has joined.

    For an example see `distributed.algorithms.Join`.
    """

    def main_hook(self) -> None:
        """Called for each iteration of the processes that still have inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all processes have joined."""


class Joinable(abc.ABC):
    """The base of objects that `Join` accepts.

    For an example see `distributed.algorithms.Join`.
    """

    @abc.abstractmethod
    def __init__(self):
        super().__init__()
        self._join_config = _JoinConfig(False, False, False)

    @abc.abstractmethod
    def join_hook(self, **kwargs) -> JoinHook:
        """The hook that replaces this object in a process without inputs."""

    @property
    @abc.abstractmethod
    def join_device(self):
        """The device of its collectives."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The process group of its collectives."""


class _Notice:
    """The reduction that says how many go on."""

    def __init__(self, work, ones):
        self._work = work
        self._ones = ones

    def wait(self):
        self._work.wait()
        return True

    @property
    def active(self) -> int:
        self.wait()
        return int(self._ones)


class Join:
    """A context manager in which processes may have different numbers of inputs.

    Args:
        joinables: models and optimisers that communicate: `DistributedDataParallel`,
            `ZeroRedundancyOptimizer`.
        enable: False: it does nothing.
        throw_on_early_termination: raise in all processes when the first has no more inputs.
        kwargs: for the hooks of all joinables.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.algorithms import Join
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> with Join([model]):
        ...     for x in torch.ones(3, 1, 2):
        ...         model(x).sum().backward()
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        joinables: Sequence[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ):
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._enable = enable
        self._throw = throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        groups = {id(j.join_process_group): j.join_process_group for j in joinables}
        if len(groups) > 1:
            raise ValueError(
                "Using join context manager with multiple process groups with different devices"
            )
        self._group = next(iter(groups.values()))
        self._device = joinables[0].join_device
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if not self._enable or kind:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig(False, False, False)
            return
        last = True
        warned = 0
        while True:
            going_on = self._count(0)
            if going_on == 0:
                break
            if self._throw:
                self._tell_all(1)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            last = False
            for hook in self._hooks:
                hook.main_hook()
            warned += 1
            if warned == 1000:
                warn(
                    "Detected uneven input skew of greater than 1000. This means that rank "
                    f"{self._group.rank()} has at least 1000 fewer inputs than other ranks.",
                )
        for hook in self._hooks:
            hook.post_hook(last)
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig(False, False, False)

    def _count(self, own):
        count = _note(self._group, own)
        self._group.allreduce([count]).wait()
        return int(count)

    def _tell_all(self, stop):
        flag = _note(self._group, stop)
        self._group.allreduce([flag], op=ReduceOp.MAX).wait()
        return int(flag)

    @staticmethod
    def notify_join_context(joinable):
        """Tell the others that this process continues; called before each iteration's first
        collective.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group = joinable.join_process_group
        ones = _note(group, 1)
        work = group.allreduce([ones])
        if config.throw_on_early_termination and int(_Notice(work, ones).active) != group.size():
            flag = _note(group, 0)
            group.allreduce([flag], op=ReduceOp.MAX).wait()
            if int(flag):
                raise RuntimeError(
                    "throw_on_early_termination: there is at least one rank that exhausted inputs, "
                    "so that all stop"
                )
        return _Notice(work, ones)
