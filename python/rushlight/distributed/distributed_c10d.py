"""Process groups and collectives, under the names of PyTorch's module."""

# ruff: noqa: F401, F403  # the names of the parts, and private ones that programs import, too

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight.distributed import (
    _collectives,
    _engines,
    _kinds,
    _making,
    _objects,
    _process_group,
    _reducer,
)
from rushlight.distributed import (
    _world as _world_part,
)
from rushlight.distributed import (
    rendezvous as _rendezvous,
)
from rushlight.distributed._calls import _coalescing_manager, _CoalescingManager
from rushlight.distributed._checked import CheckedGroup, _create_process_group_wrapper
from rushlight.distributed._collectives import *
from rushlight.distributed._engines import *
from rushlight.distributed._kinds import *
from rushlight.distributed._kinds import _make_nccl_premul_sum
from rushlight.distributed._making import *
from rushlight.distributed._making import _store_based_barrier
from rushlight.distributed._objects import *
from rushlight.distributed._objects import _object_to_tensor, _tensor_to_object
from rushlight.distributed._process_group import *
from rushlight.distributed._reducer import *
from rushlight.distributed._world import *
from rushlight.distributed._world import (
    _get_default_group,
    _get_default_store,
    _is_member,
    _pg_group_ranks,
    _pg_map,
    _pg_names,
    _rank_not_in_group,
    _resolve_process_group,
    _state,
    _warn_not_in_group,
)
from rushlight.distributed.rendezvous import *

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *_collectives.__all__,
        *_engines.__all__,
        *_kinds.__all__,
        *_making.__all__,
        *_objects.__all__,
        *_process_group.__all__,
        *_reducer.__all__,
        *_world_part.__all__,
        *_rendezvous.__all__,
        "DistBackendError",
        "DistError",
        "DistNetworkError",
        "DistStoreError",
        "FileStore",
        "HashStore",
        "PrefixStore",
        "Store",
        "TCPStore",
        "reduce_op",
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

reduce_op = _kinds.ReduceOp
_Work = _process_group.Work
_ProcessGroupWrapper = CheckedGroup
_world = _state
