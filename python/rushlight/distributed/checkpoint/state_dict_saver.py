"""Saving of checkpoints in several processes."""

from __future__ import annotations

import dataclasses
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from rushlight._warnings import warn
from rushlight.distributed import _making, _world
from rushlight.distributed.checkpoint.default_planner import DefaultSavePlanner
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.metadata import Metadata
from rushlight.distributed.checkpoint.staging import copy_to_cpu
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.checkpoint.utils import _DistWrapper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rushlight.distributed import ProcessGroup

__all__ = [
    "AsyncCheckpointerType",
    "AsyncSaveResponse",
    "async_save",
    "save",
    "save_state_dict",
]


class AsyncCheckpointerType(Enum):
    """What saves in the background: a process or a thread.

    For an example see `distributed.checkpoint.async_save`.
    """

    THREAD = "thread"
    PROCESS = "process"


@dataclasses.dataclass
class AsyncSaveResponse:
    """The futures of the staged copy and of the saved checkpoint.

    Args:
        staging_completion: done when the state has been copied.
        upload_completion: done when it has been saved.

    For an example see `distributed.checkpoint.async_save`.
    """

    staging_completion: Future[None]
    upload_completion: Future[None]


def _is_alone(no_dist: bool) -> bool:
    if no_dist:
        return True
    if _world.is_initialized():
        return False
    warn(
        "no process group has been initialized: this process saves by itself, as if there were no "
        "others",
    )
    return True


def _storage_setup(storage, checkpoint_id, reader: bool = False):
    """The storage of a checkpoint, by default a folder."""
    if storage is not None:
        storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    kind: Any = FileSystemReader if reader else FileSystemWriter
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(f"Cannot detect which storage {checkpoint_id} belongs to")
    return kind(checkpoint_id)


def _stateful_to_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The states of what has one."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state, of which each process writes its share; an old checkpoint stays until the
    end.

    Args:
        state_dict: the state: tensors, objects, and containers of them.
        checkpoint_id: the folder.
        storage_writer: the writer; None: one of the folder.
        planner: by default a `DefaultSavePlanner`.
        process_group: the processes; all of them if None.
        no_dist: whether this process saves alone.
        use_collectives: whether processes tell each other of errors.

    Returns:
        The checkpoint's `Metadata`.

    Raises:
        CheckpointException: a process could not write its share.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> state = {"weight": torch.ones(2, 3), "step": 7}
        >>> made = checkpoint.save(state, checkpoint_id=tempfile.mkdtemp(), no_dist=True)
        >>> sorted(made.state_dict_metadata)
        ['step', 'weight']
    """
    alone = _is_alone(no_dist)
    if not use_collectives:
        raise NotImplementedError("rushlight saves with collectives only")
    writer = _storage_setup(storage_writer, checkpoint_id)
    states = _stateful_to_state_dict(state_dict)
    return _save_state_dict(states, writer, process_group, no_dist=alone, planner=planner)


def save_state_dict(
    state_dict: Mapping[str, Any],
    storage_writer: Any,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Metadata:
    """Deprecated form of `save`.

    For an example see `distributed.checkpoint.save`.

    Args:
        state_dict: the state.
        storage_writer: the writer.
        process_group: the processes; all of them if None.
        coordinator_rank: the process that plans.
        no_dist: whether this process saves alone.
        planner: by default a `DefaultSavePlanner`.
    """
    warn(
        "'save_state_dict' is deprecated and will be removed in future versions."
        "Please use 'save' instead.",
        FutureWarning,
    )
    storage_writer.reset()
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )


def _save_state_dict(
    state_dict,
    storage_writer,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner=None,
) -> Metadata:
    together = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultSavePlanner()
    metadata: Any = None

    def local_step():
        planner.set_up_planner(state_dict, storage_writer.storage_meta(), together.is_coordinator)
        storage_writer.set_up_storage_writer(together.is_coordinator)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def global_step(plans):
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    plan = together.reduce_scatter("plan", local_step, global_step)

    def write():
        return storage_writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(results):
        storage_writer.finish(metadata=metadata, results=results)
        return metadata

    return together.all_reduce("write", write, finish)


_threads: Any = None
# All processes have just met; one that does not connect in this time has ended since.
_CONNECTING = timedelta(seconds=4)
_private_groups: dict[int, tuple[Any, Any]] = {}


def _group_of_its_own(group):
    """Other collectives than the training's, whose order the two threads could not agree on."""
    base = _world._group(group)
    known = _private_groups.get(id(base))
    if known is None or known[0] is not base:
        ranks = _world.get_process_group_ranks(base)
        base.barrier().wait()  # who has died is named here
        limit = min(base._timeout, _CONNECTING)
        made: Any = _making.new_group(ranks, timeout=limit, use_local_synchronization=True)
        made._set_default_timeout(base._timeout)
        known = base, made
        _private_groups.clear()
        _private_groups[id(base)] = known
    return known[1]


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """Copy a state and save it in the background; returns a future of the checkpoint's metadata.

    Args:
        state_dict: the state, which may change as soon as this returns.
        checkpoint_id: the folder.
        storage_writer: the writer; None: one of the folder.
        planner: by default a `DefaultSavePlanner`.
        process_group: the processes; all of them if None.
        async_checkpointer_type: whether a thread or a process saves.
        async_stager: what copies the state; None: the writer, or a default.
        no_dist: whether this process saves alone.
        use_collectives: whether processes tell each other of errors.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> state = {"weight": torch.ones(2, 3)}
        >>> future = checkpoint.async_save(state, checkpoint_id=tempfile.mkdtemp(), no_dist=True)
        >>> made = future.result()
    """
    global _threads
    alone = _is_alone(no_dist)
    writer = _storage_setup(storage_writer, checkpoint_id)
    states = _stateful_to_state_dict(state_dict)
    group = None if alone else _group_of_its_own(process_group)
    if async_stager is not None:
        staged = async_stager.stage(states)
    else:
        staged = copy_to_cpu(states)
    if _threads is None:
        _threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")

    def run():
        ready = staged.result() if isinstance(staged, Future) else staged
        return save(
            ready,
            storage_writer=writer,
            checkpoint_id=checkpoint_id,
            planner=planner,
            process_group=group,
            no_dist=alone,
            use_collectives=use_collectives,
        )

    done: Any = _threads.submit(run)
    if isinstance(staged, Future):
        copy_made: Any = Future()
        staged.add_done_callback(lambda _future: copy_made.set_result(None))
        return AsyncSaveResponse(copy_made, done)
    if async_stager is not None and async_stager.should_synchronize_after_execute:
        async_stager.synchronize_staging()
    return done
