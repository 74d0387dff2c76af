"""The engines there are: Gloo, MPI and NCCL, each the group that `_engine_group.py` describes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import rushlight
from rushlight.distributed import _kinds
from rushlight.distributed._engine_group import _EngineGroup, _types
from rushlight.distributed._kinds import default_pg_timeout
from rushlight.distributed._process_group import (
    ProcessGroup,
    Work,
)
from rushlight.futures import Future

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    from rushlight.distributed import Store

__all__ = ["ProcessGroupGloo", "ProcessGroupMPI", "ProcessGroupNCCL"]


class _GlooOptions(ProcessGroup.Options):
    def __init__(self):
        super().__init__("gloo")
        self._devices = []
        self._threads = 2


class ProcessGroupGloo(_EngineGroup):
    """Processes that are connected by Gloo, for tensors in host memory.

    Args:
        store: where processes find each other.
        rank: the number of this process.
        size: how many processes.
        timeout: how long others are waited for.

    For an example see `distributed.init_process_group`.
    """

    _name_of_engine = "gloo"
    _Options = Options = _GlooOptions

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta = default_pg_timeout,
    ) -> None:
        super().__init__(store, rank, size)
        interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
        hostname = ""
        if isinstance(timeout, ProcessGroup.Options):
            options, timeout = timeout, timeout._timeout
            for device in getattr(options, "_devices", [])[:1]:
                interface, hostname = device
        if not _kinds.is_gloo_available():
            raise RuntimeError(
                f"Distributed package doesn't have Gloo built in: {_kinds._GLOO_IS_MISSING}"
            )
        if not interface and not hostname:
            hostname = _types._local_address(store)
        self._connect(store, timeout, interface, hostname)

    @staticmethod
    def create_device(interface="", hostname="", **_):
        """The interface or the address that connections use."""
        return (interface, hostname)

    create_default_device = create_device

    @property
    def options(self):
        """The settings of the group."""
        options = _GlooOptions()
        options._timeout = self._timeout
        return options


class ProcessGroupMPI(_EngineGroup):
    """Processes that one mpirun started, connected by its MPI, for tensors in host memory.

    Args:
        store: where processes find each other.
        rank: the number of this process.
        size: how many processes.
        timeout: how long others are waited for.

    For an example see `distributed.init_process_group`.
    """

    _name_of_engine = "mpi"

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta = default_pg_timeout,
    ) -> None:
        super().__init__(store, rank, size)
        if isinstance(timeout, ProcessGroup.Options):
            timeout = timeout._timeout
        _kinds.mpi_place()
        self._connect(store, timeout)


class _NCCLOptions(ProcessGroup.Options):
    def __init__(self, is_high_priority_stream=False):
        super().__init__("nccl")
        self.is_high_priority_stream = is_high_priority_stream


class _QueuedWork(Work):
    """Something queued on a device's stream."""

    @property
    def _is_part(self):
        return self._handle is None

    def get_future(self):
        """A future of the tensors, whose callbacks queue their work where this was asked for."""
        if self._future is None:
            self._future = _StreamFuture(rushlight.cuda.current_stream())
            self._fill(self._future)
        return self._future


class _StreamFuture(Future):
    """A future whose callbacks run with the stream that was current when it was made."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream

    def then(self, callback):
        """A future of what `callback` makes of this one."""

        def on_stream(future):
            with rushlight.cuda.stream(self._stream):
                return callback(future)

        return super().then(on_stream)


class ProcessGroupNCCL(_EngineGroup):
    """Processes that are connected by NCCL, for tensors on GPUs.

    What is asked for is queued on a stream of its own. `wait` lets the current stream wait for it,
    not the host (but with TORCH_NCCL_BLOCKING_WAIT=1, or a timeout). The processes are connected
    with the first tensor of a device.

    Args:
        store: where processes find each other.
        rank: the number of this process.
        size: how many processes.
        timeout: how long others are waited for.
        options: `ProcessGroupNCCL.Options`.

    For an example see `distributed.init_process_group`.
    """

    _name_of_engine = "nccl"
    _device = "cuda"
    _work = _QueuedWork
    Options = _NCCLOptions

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta = default_pg_timeout,
        options: Any = None,
    ) -> None:
        super().__init__(store, rank, size)
        if isinstance(timeout, ProcessGroup.Options):
            options, timeout = timeout, timeout._timeout
        if not _kinds.is_nccl_available():
            raise RuntimeError(
                "Distributed package doesn't have NCCL built in: libnccl.so.2 was not found "
                "(pip install nvidia-nccl-cu13; or set RUSHLIGHT_NCCL_LIBRARY)"
            )
        if rushlight.cuda.device_count() == 0:
            raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
        if not _types._local_address(store):  # all are on this machine
            os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        self.bound_device_id: rushlight.device | None = None
        self._connect(
            store, timeout, high_priority=bool(options and options.is_high_priority_stream)
        )

    @property
    def options(self):
        """The settings of the group."""
        options = _NCCLOptions()
        options._timeout = self._timeout
        return options

    def eager_connect_single_device(self, device=None):
        """Connect the processes for a device at once."""
        index = rushlight.device(device or self._device).index
        here = rushlight.cuda.current_device() if index is None else index
        self._engine.connect(here, self._timeout)

    def barrier(self, opts=None):
        """Wait until all ranks have called this; the host waits, too."""
        numbers = getattr(opts, "device_ids", None) or []
        device = rushlight.device("cuda", numbers[0]) if numbers else self.bound_device_id
        with rushlight.cuda.device(device):
            return super().barrier(opts)

    def recv_anysource(self, tensors, tag: int = 0):
        """Refused: NCCL receives from a rank that is named."""
        raise RuntimeError("ProcessGroupNCCL does not support recvAnysource")
