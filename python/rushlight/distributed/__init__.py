"""Training in several processes: stores, process groups, collectives.

What of PyTorch's is not there yet raises when it is called.
"""

# ruff: noqa: F401, F403  # names below are for type checkers and for those who import this

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.distributed import distributed_c10d
from rushlight.distributed.distributed_c10d import *
from rushlight.distributed.distributed_c10d import (
    _coalescing_manager,
    _create_process_group_wrapper,
    _get_default_group,
    _make_nccl_premul_sum,
    _rank_not_in_group,
    _state,
    _Work,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *distributed_c10d.__all__,
        "DeviceMesh",
        "breakpoint",
        "init_device_mesh",
        "is_available",
    ]

with lazy(__name__):
    from rushlight.distributed import (
        _functional_collectives,
        algorithms,
        checkpoint,
        collective_utils,
        device_mesh,
        distributed_c10d,
        elastic,
        fsdp,
        launch,
        nn,
        optim,
        run,
        tensor,
        utils,
    )
    from rushlight.distributed._debugger import breakpoint as breakpoint
    from rushlight.distributed.device_mesh import (
        DeviceMesh as DeviceMesh,
    )
    from rushlight.distributed.device_mesh import (
        init_device_mesh as init_device_mesh,
    )


def is_available() -> bool:
    """Whether the package has process groups: always True (`is_gloo_available` may be False).

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True
