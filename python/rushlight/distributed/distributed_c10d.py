"""Process groups and what they exchange: the names of PyTorch's module."""

# ruff: noqa: F401  # the private names are imported by programs, too

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight.distributed import _refused
from rushlight.distributed._checked import CheckedGroup, _create_process_group_wrapper
from rushlight.distributed._collectives import (
    P2POp,
    _coalescing_manager,
    _CoalescingManager,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    send,
    supports_complex,
)
from rushlight.distributed._gloo import ProcessGroupGloo
from rushlight.distributed._kinds import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    Backend,
    BackendConfig,
    BarrierOptions,
    BroadcastOptions,
    DebugLevel,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    _make_nccl_premul_sum,
    default_pg_timeout,
    get_debug_level,
    is_gloo_available,
    set_debug_level,
    set_debug_level_from_env,
)
from rushlight.distributed._objects import (
    _object_to_tensor,
    _tensor_to_object,
    all_gather_object,
    broadcast_object_list,
    gather_object,
    monitored_barrier,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from rushlight.distributed._process_group import ProcessGroup, Work
from rushlight.distributed._reducer import GradBucket, Reducer
from rushlight.distributed._world import (
    GroupMember,
    _get_default_group,
    _get_default_store,
    _is_member,
    _pg_group_ranks,
    _pg_map,
    _pg_names,
    _rank_not_in_group,
    _state,
    _store_based_barrier,
    _warn_not_in_group,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from rushlight.distributed.rendezvous import (
    register_rendezvous_handler,
    rendezvous,
)

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GatherOptions",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ProcessGroupNCCL",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "Reducer",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
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
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "split_group",
    "supports_complex",
]

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

ProcessGroupNCCL = _refused.kind("ProcessGroupNCCL", __name__)
reduce_op = ReduceOp
_Work = Work
_ProcessGroupWrapper = CheckedGroup
_world = _state
