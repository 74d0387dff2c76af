"""Making groups of processes, and ending them."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._warnings import warn
from rushlight.distributed import _kinds, _last_words
from rushlight.distributed._checked import CheckedGroup
from rushlight.distributed._engines import ProcessGroupGloo, ProcessGroupMPI, ProcessGroupNCCL
from rushlight.distributed._kinds import Backend, BackendConfig, default_pg_timeout
from rushlight.distributed._process_group import ProcessGroup
from rushlight.distributed._world import (
    GroupMember,
    _get_default_group,
    _group,
    _pg_configs,
    _pg_group_ranks,
    _pg_map,
    _pg_names,
    _state,
    _types,
    get_global_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_backend_available,
)
from rushlight.distributed.rendezvous import rendezvous

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.distributed import Store
    from rushlight.types import Device

__all__ = [
    "destroy_process_group",
    "init_process_group",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
]


def _make_engine(name, store, rank, size, timeout, options, ranks):
    plugin = Backend._plugins.get(name.upper())
    if plugin is not None:
        if not plugin.extended_api:
            return plugin.creator_fn(store, rank, size, timeout)
        settings: Any = type("DistributedBackendOptions", (), {})()
        settings.store, settings.group_rank, settings.group_size = store, rank, size
        settings.timeout, settings.group_id = timeout, ""
        settings.global_ranks_in_group = ranks
        return plugin.creator_fn(settings, options)
    if name == Backend.GLOO:
        return ProcessGroupGloo(store, rank, size, timeout=timeout)
    if name == Backend.MPI:
        return ProcessGroupMPI(store, rank, size, timeout=timeout)
    if name == Backend.NCCL:
        return ProcessGroupNCCL(store, rank, size, timeout=timeout, options=options)
    if not hasattr(Backend, name.upper()):
        raise AssertionError(f"Unknown backend type {name}")
    raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")


@contextlib.contextmanager
def _keeper_named():
    """Says whose end it is where a store's server is gone."""
    try:
        yield
    except _types.DistNetworkError as error:
        scheme = (_state.init_method or "").partition("://")[0]
        if scheme not in ("env", "tcp"):
            raise
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        keeper = "the launcher" if agent else f"rank 0{_has_lost(0)}"
        raise _types.DistNetworkError(f"{error} It is kept by {keeper}.") from error


@_keeper_named()
def _make_group(ranks, rank, backend, store, name, timeout, options, description, device_id=None):
    """The group, in the registry."""
    size = len(ranks)
    config = BackendConfig(backend)
    prefix = _types.PrefixStore(f"{name}/", store)
    engines: dict[str, Any] = {}
    if str(backend) == Backend.UNDEFINED:
        wanted = {k: v for k, v in config.device_backend_map.items() if is_backend_available(v)}
        if not wanted:
            raise RuntimeError(f"there is no engine: {_kinds._GLOO_IS_MISSING}")
    else:
        wanted = dict(config.device_backend_map)
    several = len(set(wanted.values())) > 1
    for device, engine in wanted.items():
        if engine in engines:
            continue
        if several and not is_backend_available(engine):
            continue  # serves devices that this machine does not have
        place = _types.PrefixStore(f"{device}/", prefix)
        try:
            made = _make_engine(engine, place, rank, size, timeout, options, ranks)
        except _types.DistBackendError as error:
            # Gloo's ranks leave their addresses in the store, under keys that end with numbers.
            key = re.search(r"keys: \S*?(\d+)$", str(error))
            missing = _absent(prefix, rank, ranks) if key is None else [ranks[int(key[1])]]
            raise _types.DistBackendError(f"{error}{_did_not_come(missing)}") from error
        if (
            engine in (Backend.GLOO, Backend.NCCL)
            and _kinds.get_debug_level() == _kinds.DebugLevel.DETAIL
        ):
            made = CheckedGroup(made, place)
        engines[engine] = made
    if not engines:
        raise RuntimeError(f"Distributed package doesn't have {backend} built in")
    made = next(iter(engines.values()))
    if len(engines) == 1 and isinstance(made, ProcessGroup) and not made._backends:
        pg = made  # a whole group, written in Python
    else:
        pg = ProcessGroup(prefix, rank, size)
        for device, engine in wanted.items():
            if engine in engines:
                pg._register_backend(device, None, engines[engine])
    for engine in engines.values():
        if device_id is not None and isinstance(engine, ProcessGroupNCCL):
            engine.bound_device_id = rushlight.device(device_id)
            engine.eager_connect_single_device(device_id)
    pg._store = prefix
    pg._name = name
    pg._timeout = timeout
    pg._description = description or "undefined"
    _pg_map[pg] = (str(backend) if ":" in str(backend) else next(iter(engines)), prefix)
    _pg_names[pg] = name
    _pg_configs[pg] = config
    _pg_group_ranks[pg] = {global_rank: i for i, global_rank in enumerate(ranks)}
    _wait_for_all(prefix, rank, ranks, timeout)
    return pg


def _wait_for_all(store, rank, ranks, timeout):
    """Wait until all have connected."""
    store.set(f"here/{rank}", "")
    if store.add("arrived", 1) == len(ranks):
        store.set("all", "")
        return
    try:
        store.wait(["all"], timeout)
    except _types.DistStoreError as error:
        missing = _did_not_come(_absent(store, rank, ranks))
        raise _types.DistStoreError(f"{error}{missing}") from error


def _absent(store, rank, ranks):
    """The ranks that have not connected and do not say, as this one does, that they fail."""
    store.set(f"here/{rank}", "")
    deadline = time.monotonic() + 0.5
    missing = list(range(len(ranks)))
    while missing and time.monotonic() < deadline:
        missing = [r for r in missing if not store.check([f"here/{r}"])]
        time.sleep(0.02)
    return [ranks[r] for r in missing]


def _did_not_come(missing):
    """Names ranks, and whom they have lost before; tells the others."""
    for pg, numbers in _pg_group_ranks.items():
        engine = _engine_of(pg)
        if engine is not None and missing and missing[0] in numbers:
            engine.give_up(numbers[missing[0]])
    return "".join(f": rank {rank} did not come{_has_lost(rank)}" for rank in missing)


def _engine_of(pg):
    return getattr(pg._backends.get("cpu"), "_engine", None)


def _has_lost(rank):
    """Whom a rank has lost, if it said so in some group."""
    for pg, numbers in _pg_group_ranks.items():
        engine = _engine_of(pg)
        lost = -1 if engine is None or rank not in numbers else engine.lost_by(numbers[rank])
        if lost >= 0:
            return f", which has lost rank {next(r for r, n in numbers.items() if n == lost)}"
    return ""


def _store_based_barrier(rank, store, group_name, rendezvous_count, timeout, logging_interval=None):
    """A barrier on a store."""
    key = f"store_based_barrier_key:{group_name}"
    if store.add(key, 1) == rendezvous_count:
        store.set(f"{key}:last", "1")
    try:
        store.wait([f"{key}:last"], timeout)
    except RuntimeError as error:
        raise _types.DistStoreError(
            f"Rank {rank} timed out waiting for others in a barrier of the store: key {key}, "
            f"world_size={rendezvous_count}, timeout={timeout}"
        ) from error


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Device | None = None,
) -> None:
    """Make the default group of all processes: every process calls it once.

    They find each other by `init_method` (env://, tcp://host:port, file:///path) or by a `store`.
    With a `device_id` the engine nccl connects the processes for that device at once.

    Args:
        backend: "gloo", or a backend that a plug-in brings.
        init_method: where processes meet: "env://" reads MASTER_ADDR and MASTER_PORT;
            "tcp://HOST:PORT", "file://PATH".
        timeout: how long a collective may wait.
        world_size: the number of processes.
        rank: the number of this process, from 0 on.
        store: where processes meet, instead of `init_method`.
        group_name: the name of the group; "0" if empty.
        pg_options: options of the backend.
        device_id: the device of this process.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if _state.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise ValueError(
            f"Expected timeout argument to be of type datetime.timedelta, not {timeout}"
        )
    timeout = timeout or default_pg_timeout
    backend = Backend.UNDEFINED if backend is None else Backend(backend)
    if backend == Backend.GLOO and not _kinds.is_gloo_available():
        raise RuntimeError(
            f"Distributed package doesn't have Gloo built in: {_kinds._GLOO_IS_MISSING}"
        )
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    elif backend == Backend.MPI:
        store, rank, world_size = _mpi_rendezvous(rank, world_size, timeout)
        store = _types.PrefixStore("default_pg", store)
    else:
        init_method = init_method or "env://"
        found = rendezvous(init_method, rank, world_size, timeout=timeout)
        made, rank, world_size = next(iter(found))
        made.set_timeout(timeout)
        store = _types.PrefixStore("default_pg", made)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not in a world of {world_size}")
    _last_words.sign(rank)
    name = group_name or "0"
    _state.group_count = 1
    _state.init_method = init_method
    _state.default_pg = _make_group(
        list(range(world_size)),
        rank,
        backend,
        store,
        name,
        timeout,
        pg_options,
        "default_pg",
        device_id,
    )


def _mpi_rendezvous(rank, world_size, timeout):
    """(Store, rank, number of processes) of those that mpirun started."""
    if rank != -1 or world_size != -1:
        warn(
            f"world_size={world_size} and rank={rank} are ignored: those of the backend mpi are "
            "assigned by the MPI runtime",
        )
    rank, world_size = _kinds.mpi_place()
    # Rank 0 keeps the store, and says where: on this machine alone where all processes are.
    host = socket.gethostname()
    one_host = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "0")) == world_size or (
        int(os.environ.get("MPI_LOCALNRANKS", "0")) == world_size
    )
    address = os.environ.get("MASTER_ADDR") or ("127.0.0.1" if one_host else host)
    if rank == 0:
        store = _types.TCPStore(address, 0, world_size, True, timeout, wait_for_workers=False)
        _types._launcher_tell("mpi", f"{address} {store.port}")
    else:
        address, port = _types._launcher_tell("mpi", "").split()
        store = _types.TCPStore(
            address, int(port), world_size, False, timeout, wait_for_workers=False
        )
    return store, rank, world_size


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Destroy a group; without one all groups, after which a new default group can be made.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.destroy_process_group()
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    pg = _state.default_pg if group is None else group
    if pg is None:
        raise AssertionError("there is no process group to destroy")
    if pg not in _pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    if group is None or group is _state.default_pg:
        for each in reversed(list(_pg_map)):
            each.shutdown()
        _pg_map.clear()
        _pg_names.clear()
        _pg_configs.clear()
        _pg_group_ranks.clear()
        _state.default_pg = None
        _state.group_count = 0
        _state.local_counts.clear()
        return
    pg.shutdown()
    for known in (_pg_map, _pg_names, _pg_configs, _pg_group_ranks):
        known.pop(pg, None)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Device | None = None,
    sort_ranks: bool = True,
    group_name: str | None = None,
) -> Any:
    """Make a group of some processes. All processes call it in the same order, members or not.

    With `use_local_synchronization` the members alone call it.

    Args:
        ranks: the members; all processes if None.
        timeout: how long a collective may wait.
        backend: the backend; that of the default group if None.
        pg_options: options of the backend.
        use_local_synchronization: whether only members call it.
        group_desc: a description for messages.
        device_id: the device of this process.
        sort_ranks: whether ranks in the group follow those of the processes.
        group_name: its name; one is made up if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> group = torch.distributed.new_group([0])
        >>> torch.distributed.get_world_size(group)
        1
        >>> torch.distributed.destroy_process_group()
    """
    default = _get_default_group()
    default_backend, _ = _pg_map[default]
    store = _pg_map[default][1]
    size = default.size()
    if timeout is not None and not isinstance(timeout, timedelta):
        raise ValueError(
            f"Expected timeout argument to be of type datetime.timedelta, not {timeout}"
        )
    timeout = timeout or default._timeout
    if ranks is None:
        ranks = list(range(size))
    else:
        ranks = [int(r) for r in ranks]
        if sort_ranks:
            ranks = sorted(ranks)
        if len(ranks) > size:
            raise ValueError(
                "the new group's world size should be less or equal to that of all processes: "
                f"{len(ranks)} ranks of {size}"
            )
        if len(set(ranks)) != len(ranks):
            raise ValueError("a rank stands twice among the group's")
        for r in ranks:
            if not 0 <= r < size:
                raise ValueError(
                    "The new group's rank should be within the world_size set by init_process_group"
                )
    if use_local_synchronization:
        # The members count their own groups: a name that others need not know.
        text = "_".join(map(str, ranks))
        _state.local_counts[text] += 1
        name = f"local_{text}_{_state.local_counts[text]}"
    else:
        name = group_name or str(_state.group_count)
        _state.group_count += 1
    rank = default.rank()
    if rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    return _make_group(
        ranks,
        ranks.index(rank),
        Backend(backend) if backend is not None else default_backend,
        store,
        name,
        timeout,
        pg_options,
        group_desc,
        device_id,
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Make groups of disjoint lists of ranks: (this process's group, all groups).

    Args:
        ranks_per_subgroup_list: the ranks of each group; no rank is in two.
        timeout: how long a collective may wait, a `datetime.timedelta`.
        backend: the backend; that of the default group if None.
        pg_options: options of the backend.
        group_desc: a description for messages.

    Raises:
        ValueError: there are no groups, or a rank stands in two.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mine, groups = torch.distributed.new_subgroups_by_enumeration([[0]])
        >>> len(groups)
        1
        >>> torch.distributed.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = list(itertools.chain(*ranks_per_subgroup_list))
    for rank in every:
        if every.count(rank) > 1:
            raise ValueError(f"Rank {rank} has appeared in more than one subgroup")
    mine = None
    groups = []
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        if get_rank() in ranks:
            mine = made
    return mine, groups


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Make groups of neighbours of equal size: (this process's group, all groups).

    Args:
        group_size: how many processes a group has; None: as many as run on a machine.
        group: the processes that are divided; all of them if None.
        timeout: how long a collective may wait, a `datetime.timedelta`.
        backend: the backend; that of the default group if None.
        pg_options: options of the backend.
        group_desc: a description for messages.

    Raises:
        ValueError: the size does not divide the number of processes.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mine, groups = torch.distributed.new_subgroups(1)
        >>> torch.distributed.get_world_size(mine)
        1
        >>> torch.distributed.destroy_process_group()
    """
    size = get_world_size(group)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    all_ranks = get_process_group_ranks(group)
    lists = [all_ranks[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    **_: Any,
) -> ProcessGroup | None:
    """The part of a group that this process is in, of lists of ranks within that group.

    Args:
        parent_pg: the group that is divided; all processes if None.
        split_ranks: lists of ranks within that group.
        timeout: how long a collective may wait, a `datetime.timedelta`.
        pg_options: options of the backend.
        group_desc: a description for messages.

    Raises:
        ValueError: there are no lists.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> part = torch.distributed.split_group(split_ranks=[[0]])
        >>> torch.distributed.get_world_size(part)
        1
        >>> torch.distributed.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group(parent_pg)
    mine = None
    for part in split_ranks:
        ranks = [get_global_rank(parent, r) for r in part]
        made = new_group(ranks, timeout, None, pg_options, group_desc=group_desc)
        if made is not GroupMember.NON_GROUP_MEMBER:
            mine = made
    return mine
