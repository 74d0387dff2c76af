"""Loading of checkpoints in any number of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn
from rushlight.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from rushlight.distributed.checkpoint.state_dict_saver import _is_alone, _storage_setup
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.checkpoint.utils import _all_keys, _DistWrapper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rushlight.distributed import ProcessGroup

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint into a state: tensors are filled in place, objects are replaced.

    Args:
        state_dict: the state, changed in place.
        checkpoint_id: the folder.
        storage_reader: the reader; None: one of the folder.
        planner: by default a `DefaultLoadPlanner`.
        process_group: the processes; all of them if None.
        no_dist: whether this process loads alone.

    Raises:
        CheckpointException: a name is missing, sizes differ, or a file is damaged.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> _ = checkpoint.save(
        ...     {"weight": torch.tensor([4.0]), "step": 7}, checkpoint_id=folder, no_dist=True
        ... )
        >>> state = {"weight": torch.zeros(1), "step": 0}
        >>> checkpoint.load(state, checkpoint_id=folder, no_dist=True)
        >>> state
        {'weight': tensor([4.]), 'step': 7}
    """
    alone = _is_alone(no_dist)
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    keys = list(state_dict) if alone else _all_keys(state_dict, process_group)
    if keys != sorted(keys):
        keys = sorted(keys, key=str)
    states = {}
    for key in keys:
        if key in state_dict:
            value = state_dict[key]
            states[key] = value.state_dict() if isinstance(value, Stateful) else value
    _load_state_dict(states, reader, process_group, no_dist=alone, planner=planner)
    for key in keys:
        if key not in state_dict:
            continue
        value = state_dict[key]
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(
    state_dict: Mapping[str, Any],
    storage_reader: Any,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """Deprecated form of `load`.

    For an example see `distributed.checkpoint.load`.

    Args:
        state_dict: the state, changed in place.
        storage_reader: the reader.
        process_group: the processes; all of them if None.
        coordinator_rank: the process that plans.
        no_dist: whether this process loads alone.
        planner: by default a `DefaultLoadPlanner`.
    """
    warn(
        "'load_state_dict' is deprecated and will be removed in future versions. "
        "Please use 'load' instead.",
        FutureWarning,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict,
    storage_reader,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner=None,
) -> None:
    together = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultLoadPlanner()

    def local_step():
        metadata = storage_reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, together.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, together.is_coordinator)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def global_step(plans):
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = together.reduce_scatter("plan", local_step, global_step)

    def read():
        storage_reader.read_data(planner.finish_plan(plan), planner).wait()

    together.all_gather("read", read)


def _load_state_dict_from_keys(
    keys=None, *, checkpoint_id=None, storage_reader=None, process_group=None
) -> dict[str, Any]:
    """What a checkpoint has under some names, or all of it."""
    alone = _is_alone(False)
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    if isinstance(keys, str):
        keys = {keys}
    states: dict[str, Any] = {}
    _load_state_dict(
        states,
        reader,
        process_group,
        no_dist=alone,
        planner=_EmptyStateDictLoadPlanner(keys=keys or None),
    )
    return states
