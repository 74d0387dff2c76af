"""Process groups and what they exchange: the names, which refuse."""

from __future__ import annotations

import os
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar

from rushlight import _C
from rushlight.distributed import _refused

__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ProcessGroupNCCL",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "_get_default_group",
    "_rank_not_in_group",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "split_group",
    "supports_complex",
]

default_pg_timeout = timedelta(minutes=30)

_types: Any = _C._load_distributed()
Store = _types.Store
FileStore = _types.FileStore
HashStore = _types.HashStore
PrefixStore = _types.PrefixStore
TCPStore = _types.TCPStore
DistError = _types.DistError
DistStoreError = _types.DistStoreError
DistNetworkError = _types.DistNetworkError
DistBackendError = _types.DistBackendError
for _kind in (Store, FileStore, HashStore, PrefixStore, TCPStore):
    _kind.__module__ = __name__


class Backend(str):
    """The name of a way to communicate."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    default_device_backend_map: ClassVar[dict[str, str]] = {}
    backend_list: ClassVar[list[str]] = []

    def __new__(cls, name: str):
        return super().__new__(cls, name.lower())


class ReduceOp(Enum):
    """What becomes of the values of several processes."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


reduce_op = ReduceOp
# Where the values of PyTorch's ReduceOp are.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class DebugLevel(Enum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    """`DebugLevel.OFF`."""
    return DebugLevel.OFF


class group:
    """The group of all processes: None, as there is none."""

    WORLD: Any = None


class GroupMember(group):
    """The same, and what stands for a group that this process is no part of."""

    NON_GROUP_MEMBER = -100


_pg_map: dict[Any, Any] = {}


def is_initialized() -> bool:
    """Whether there is a process group: never."""
    return False


is_mpi_available = is_nccl_available = is_gloo_available = is_initialized
is_ucc_available = is_xccl_available = is_initialized


def is_backend_available(backend: str) -> bool:
    """Whether processes can communicate in a way: in none yet."""
    return backend.lower() in Backend.backend_list


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


P2POp = _refused.kind("P2POp", __name__)
ProcessGroup = _refused.kind("ProcessGroup", __name__)
ProcessGroupGloo = _refused.kind("ProcessGroupGloo", __name__)
ProcessGroupNCCL = _refused.kind("ProcessGroupNCCL", __name__)
Work = _refused.kind("Work", __name__)
init_process_group = _refused.function("torch.distributed.init_process_group")
new_group = _refused.function("torch.distributed.new_group")
new_subgroups = _refused.function("torch.distributed.new_subgroups")
new_subgroups_by_enumeration = _refused.function("torch.distributed.new_subgroups_by_enumeration")
split_group = _refused.function("torch.distributed.split_group")
all_gather = _refused.in_group("torch.distributed.all_gather")
all_gather_coalesced = _refused.in_group("torch.distributed.all_gather_coalesced")
all_gather_into_tensor = _refused.in_group("torch.distributed.all_gather_into_tensor")
all_gather_object = _refused.in_group("torch.distributed.all_gather_object")
all_reduce = _refused.in_group("torch.distributed.all_reduce")
all_reduce_coalesced = _refused.in_group("torch.distributed.all_reduce_coalesced")
all_to_all = _refused.in_group("torch.distributed.all_to_all")
all_to_all_single = _refused.in_group("torch.distributed.all_to_all_single")
barrier = _refused.in_group("torch.distributed.barrier")
batch_isend_irecv = _refused.in_group("torch.distributed.batch_isend_irecv")
broadcast = _refused.in_group("torch.distributed.broadcast")
broadcast_object_list = _refused.in_group("torch.distributed.broadcast_object_list")
destroy_process_group = _refused.in_group("torch.distributed.destroy_process_group")
gather = _refused.in_group("torch.distributed.gather")
gather_object = _refused.in_group("torch.distributed.gather_object")
get_backend = _refused.in_group("torch.distributed.get_backend")
get_backend_config = _refused.in_group("torch.distributed.get_backend_config")
get_global_rank = _refused.in_group("torch.distributed.get_global_rank")
get_group_rank = _refused.in_group("torch.distributed.get_group_rank")
get_process_group_ranks = _refused.in_group("torch.distributed.get_process_group_ranks")
get_rank = _refused.in_group("torch.distributed.get_rank")
get_world_size = _refused.in_group("torch.distributed.get_world_size")
irecv = _refused.in_group("torch.distributed.irecv")
isend = _refused.in_group("torch.distributed.isend")
monitored_barrier = _refused.in_group("torch.distributed.monitored_barrier")
recv = _refused.in_group("torch.distributed.recv")
recv_object_list = _refused.in_group("torch.distributed.recv_object_list")
reduce = _refused.in_group("torch.distributed.reduce")
reduce_scatter = _refused.in_group("torch.distributed.reduce_scatter")
reduce_scatter_tensor = _refused.in_group("torch.distributed.reduce_scatter_tensor")
scatter = _refused.in_group("torch.distributed.scatter")
scatter_object_list = _refused.in_group("torch.distributed.scatter_object_list")
send = _refused.in_group("torch.distributed.send")
send_object_list = _refused.in_group("torch.distributed.send_object_list")
supports_complex = _refused.in_group("torch.distributed.supports_complex")
_get_default_group = _refused.in_group("torch.distributed._get_default_group")
_rank_not_in_group = _refused.in_group("torch.distributed._rank_not_in_group")
