"""Which groups there are: making and ending them, and what can be asked of them."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import socket
import time
from collections import Counter
from datetime import timedelta
from typing import Any, NewType

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.distributed import _kinds, _last_words
from rushlight.distributed._checked import CheckedGroup
from rushlight.distributed._engines import ProcessGroupGloo, ProcessGroupMPI, ProcessGroupNCCL
from rushlight.distributed._kinds import Backend, BackendConfig, default_pg_timeout
from rushlight.distributed._process_group import ProcessGroup
from rushlight.distributed.rendezvous import rendezvous

__all__ = [
    "GroupMember",
    "GroupName",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_backend_available",
    "is_initialized",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
]

_types: Any = _C._load_distributed()

# What is known of each group: (backend, store), its name, and ranks within it by global rank.
_pg_map: dict[Any, tuple[str, Any]] = {}
_pg_names: dict[Any, str] = {}
_pg_group_ranks: dict[Any, dict[int, int]] = {}
_pg_configs: dict[Any, BackendConfig] = {}


GroupName = NewType("GroupName", str)


class _World:
    default_pg: Any = None
    group_count = 0
    init_method: Any = None

    def __init__(self):
        self.local_counts: Counter[str] = Counter()  # of groups that their members alone made


_state = _World()


class _WorldMeta(type):
    @property
    def WORLD(cls):
        """The group of all processes; None before it is made."""
        return _state.default_pg

    @WORLD.setter
    def WORLD(cls, value):
        _state.default_pg = value


class group(metaclass=_WorldMeta):
    """`group.WORLD`: the default group of all processes.

    Example:
        >>> torch.distributed.group.WORLD is None  # before `init_process_group`
        True
    """


class GroupMember(metaclass=_WorldMeta):
    """The same, and what stands for a group that this process is no part of.

    Example:
        >>> torch.distributed.GroupMember.NON_GROUP_MEMBER
        -100
    """

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Whether the default group has been made.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return _state.default_pg is not None


def is_ucc_available() -> bool:
    """Whether processes can communicate through UCC: always False.

    Example:
        >>> torch.distributed.is_ucc_available()
        False
    """
    return False


def is_xccl_available() -> bool:
    """Whether processes can communicate through XCCL: always False.

    Example:
        >>> torch.distributed.is_xccl_available()
        False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend is available.

    Args:
        backend: the name, in upper or lower case.

    Example:
        >>> torch.distributed.is_backend_available("ucc")
        False
    """
    name = backend.lower()
    return (
        (name == Backend.GLOO and _kinds.is_gloo_available())
        or (name == Backend.MPI and _kinds.is_mpi_available())
        or (name == Backend.NCCL and _kinds.is_nccl_available())
        or name.upper() in Backend._plugins
    )


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process.

    Example:
        >>> torch.distributed.is_torchelastic_launched()
        False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank=None) -> int:
    """The rank of this process on its machine, from LOCAL_RANK.

    Args:
        fallback_rank: the rank where no launcher says one.

    Raises:
        RuntimeError: neither is there.

    Example:
        >>> torch.distributed.get_node_local_rank(fallback_rank=0)
        0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment, where launchers put it: without one pass "
        "fallback_rank"
    )


def get_default_backend_for_device(device) -> str:
    """The default backend of a device type.

    Args:
        device: a device or its name.

    Raises:
        ValueError: the kind of device has none.

    Example:
        >>> torch.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    kind = device.split(":")[0] if isinstance(device, str) else rushlight.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


# ---- asking ----


def _get_default_group():
    if _state.default_pg is None:
        raise ValueError(
            "Default process group has not been initialized: call init_process_group first"
        )
    return _state.default_pg


def _get_default_store():
    return _pg_map[_get_default_group()][1]


def _is_member(group) -> bool:
    return group is not GroupMember.NON_GROUP_MEMBER


def _rank_not_in_group(group) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(what) -> None:
    rank = -1 if _state.default_pg is None else _state.default_pg.rank()
    warn(f"{what} does nothing on global rank {rank}, which does not belong to the given group")


def _group(group):
    """The given group, or that of all."""
    return _get_default_group() if group is None else group


def _expect_member(group):
    group = _group(group)
    if group not in _pg_group_ranks:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group"
        )
    return group


def get_rank(group=None) -> int:
    """The rank of this process in a group; -1 if it is not a member.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_rank()
        0
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    if group is None or group is default:
        return default.rank()
    return get_group_rank(group, default.rank())


def get_world_size(group=None) -> int:
    """The number of processes of a group; -1 if this process is not a member.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return -1
    return _group(group).size()


def get_group_rank(group, global_rank: int) -> int:
    """The rank within a group of a process with a global rank.

    Args:
        group: the processes.
        global_rank: the rank among all processes.

    Raises:
        ValueError: that process is not in the group.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_group_rank(torch.distributed.group.WORLD, 0)
        0
        >>> torch.distributed.destroy_process_group()
    """
    if group is GroupMember.WORLD:
        return global_rank
    ranks = _pg_group_ranks[_expect_member(group)]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group, group_rank: int) -> int:
    """The global rank of a process of a group.

    Args:
        group: the processes.
        group_rank: the rank within the group.

    Raises:
        ValueError: the group has no such rank.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_global_rank(torch.distributed.group.WORLD, 0)
        0
        >>> torch.distributed.destroy_process_group()
    """
    if group is GroupMember.WORLD:
        return group_rank
    for rank, within in _pg_group_ranks[_expect_member(group)].items():
        if within == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_process_group_ranks(group=None) -> list[int]:
    """The global ranks of a group's processes.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_process_group_ranks()
        [0]
        >>> torch.distributed.destroy_process_group()
    """
    return list(_pg_group_ranks[_expect_member(group)])


def get_pg_count() -> int:
    """The number of groups of this process.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_pg_count()
        1
        >>> torch.distributed.destroy_process_group()
    """
    return len(_pg_map)


def get_backend(group=None) -> str:
    """The name of a group's backend.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_backend()
        'gloo'
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return Backend(_pg_map[_expect_member(group)][0])


def get_backend_config(group=None) -> str:
    """The backends of a group, by device type.

    Args:
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.get_backend_config()
        'cpu:gloo,cuda:gloo'
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return str(_pg_configs[_expect_member(group)])


# ---- making ----


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


def _resolve_process_group(group_name):
    """The group with a name."""
    for pg, name in _pg_names.items():
        if name == group_name:
            return pg
    raise ValueError(f"there is no process group {group_name}: new_group makes one")


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
    backend=None,
    init_method=None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store=None,
    group_name: str = "",
    pg_options=None,
    device_id=None,
):
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
        store, rank, world_size = next(iter(found))
        store.set_timeout(timeout)
        store = _types.PrefixStore("default_pg", store)
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


def destroy_process_group(group=None):
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


@atexit.register
def _give_up():
    """No program hangs at its end for a collective that others never came to."""
    for pg in list(_pg_map):
        pg.abort()


def new_group(
    ranks=None,
    timeout: timedelta | None = None,
    backend=None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc=None,
    device_id=None,
    sort_ranks: bool = True,
    group_name=None,
):
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
    ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None
):
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
    group_size=None,
    group=None,
    timeout=None,
    backend=None,
    pg_options=None,
    group_desc=None,
):
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
    parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, **_
):
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
