"""Which groups there are, and what can be asked of them; `_making.py` makes them."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NewType

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.distributed import _kinds
from rushlight.distributed._kinds import Backend, BackendConfig

if TYPE_CHECKING:
    from rushlight.distributed import ProcessGroup

__all__ = [
    "GroupMember",
    "GroupName",
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
    "is_backend_available",
    "is_initialized",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
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


def get_node_local_rank(fallback_rank: int | None = None) -> int:
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


def get_default_backend_for_device(device: Any) -> str:
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


def _group(group: ProcessGroup | None) -> ProcessGroup:
    """The given group, or that of all."""
    return _get_default_group() if group is None else group


def _expect_member(group):
    group = _group(group)
    if group not in _pg_group_ranks:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group"
        )
    return group


def get_rank(group: ProcessGroup | None = None) -> int:
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


def get_world_size(group: ProcessGroup | None = None) -> int:
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


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
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


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
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


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
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


def get_backend(group: ProcessGroup | None = None) -> str:
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


def get_backend_config(group: ProcessGroup | None = None) -> str:
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


def _resolve_process_group(group_name):
    """The group with a name."""
    for pg, name in _pg_names.items():
        if name == group_name:
            return pg
    raise ValueError(f"there is no process group {group_name}: new_group makes one")
