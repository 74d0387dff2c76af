"""Groups of processes: `ProcessGroup`, and `Work` under way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight.distributed import _monitored
from rushlight.distributed._kinds import default_pg_timeout
from rushlight.futures import Future

__all__ = ["ProcessGroup", "Work"]

_types: Any = _C._load_distributed()


class Work:
    """An asynchronous operation, which succeeds or fails.

    Args:
        handle: what the engine gave; None: the operation has ended.
        outputs: the tensors of the result.
        keep: what has to live as long.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> work = torch.distributed.all_reduce(torch.ones(2), async_op=True)
        >>> work.wait()
        True
        >>> work.is_completed()
        True
        >>> torch.distributed.destroy_process_group()
    """

    _is_part = False  # of a group of calls, whose work is waited for

    def __init__(self, handle: Any = None, outputs: Any = None, keep: Any = None) -> None:
        self._handle = handle
        self._outputs = outputs
        self._keep = keep
        self._future: Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation has ended; its error is raised."""
        if self._handle is not None:
            if timeout is not None and not isinstance(timeout, timedelta):
                timeout = timedelta(seconds=timeout)
            no_time = timeout is None or timeout <= timedelta(0)
            self._handle.wait(None if no_time else timeout)
        return True

    def synchronize(self):
        """Wait until the operation has ended."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the operation has ended."""
        return self._handle is None or self._handle.is_completed()

    def is_success(self) -> bool:
        """Whether the operation has succeeded."""
        return self._handle is None or self._handle.is_success()

    def exception(self):
        """The error of the operation, or None."""
        return None if self._handle is None else self._handle.exception()

    def source_rank(self) -> int:
        """The rank that sent the message."""
        return -1 if self._handle is None else self._handle.source_rank()

    _source_rank = source_rank

    def result(self):
        """The resulting tensors."""
        self.wait()
        return self._outputs

    def get_future(self) -> Future:
        """A future of the tensors."""
        if self._future is None:
            self._future = Future()
            self._fill(self._future)
        return self._future

    def _fill(self, future):
        """Let a future have the tensors when it has ended."""

        def set_result():
            error = self.exception()
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(self._outputs)

        if self._handle is None:
            set_result()
        else:
            self._handle.then(set_result)

    def get_future_result(self):
        """Alias of `get_future`."""
        return self.get_future()

    def block_current_stream(self):
        """Let the current stream wait for the operation on a device; otherwise wait."""
        self.wait()

    def abort(self):
        """Refused: a group is aborted as a whole."""
        raise RuntimeError("rushlight has no Work.abort: a process group is aborted as a whole")

    def boxed(self):
        """Return the work itself."""
        return self


def _tensors(value):
    if isinstance(value, rushlight.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _timeout_of(opts, default):
    timeout = None if opts is None else opts.timeout
    return default if timeout is None or timeout < timedelta(0) else timeout


def _as_list(tensors):
    return [tensors] if isinstance(tensors, rushlight.Tensor) else list(tensors)


class _Calls:
    """The calls of PyTorch's engines that others are made of."""

    if TYPE_CHECKING:  # an engine's own calls

        def __getattr__(self, name: str) -> Any: ...

    def allreduce_coalesced(self, tensors, opts=None):
        """Reduce tensors of all processes at once; engines that can have their own."""
        raise NotImplementedError

    def getBackendName(self) -> str:
        """The engine's name."""
        raise NotImplementedError

    def name(self) -> str:
        """The engine's name."""
        return self.getBackendName()


class ProcessGroup(_Calls):
    """The processes of a group as one of them sees it, with a backend for each device type.

    Args:
        args: a store, the rank of this process, and the number of processes; without a store two
            numbers.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.group.WORLD.size()
        1
        >>> torch.distributed.destroy_process_group()
    """

    class BackendType:
        """The numbers of backends."""

        UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = range(7)

    class Options:
        """Settings of a backend."""

        def __init__(self, backend="undefined", timeout=default_pg_timeout):
            self.backend = backend
            self._timeout = timeout
            self.is_high_priority_stream = False
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""

    def __init__(self, *args: Any) -> None:
        *store, rank, size = args
        self._store: Any = store[0] if store else None
        self._rank = rank
        self._size = size
        self._backends: dict[str, Any] = {}
        self._name = ""
        self._description = "undefined"
        self._timeout = default_pg_timeout
        self._sequence = 0
        self._monitored = 0

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return self._size

    def getBackendName(self) -> str:
        """The names of the backends."""
        return next(iter(self._backends.values())).name() if self._backends else "undefined"

    def name(self) -> str:
        """The name of the first backend."""
        return self.getBackendName()

    @property
    def group_name(self) -> str:
        """The group's name in the registry."""
        return self._name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._description

    def _set_group_name(self, name):
        self._name = name

    def _set_group_desc(self, description):
        self._description = description

    def _get_backend_name(self):
        return self.getBackendName()

    def _register_backend(self, device, _kind, backend):
        self._backends[rushlight.device(device).type] = backend

    def _get_backend(self, device):
        kind = rushlight.device(device).type
        if kind not in self._backends:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._backends[kind]

    @property
    def _note_device(self):
        """Where tensors lie that processes tell each other of themselves."""
        kind = next(iter(self._backends), "cpu")
        return rushlight.device("cpu" if "cpu" in self._backends else kind)

    @property
    def _device_types(self):
        return [rushlight.device(kind) for kind in self._backends]

    def _has_hooks(self):
        return False

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return next(iter(self._backends.values()))._get_sequence_number_for_group()

    def _set_default_backend(self, backend):
        pass

    def _backend_of(self, tensor):
        if not self._backends:
            raise NotImplementedError(f"{type(self).__name__} does not define this collective")
        if tensor is None:
            return next(iter(self._backends.values()))
        return self._get_backend(tensor.device)

    def shutdown(self):
        """Finish all operations, and close the connections."""
        for backend in dict.fromkeys(self._backends.values()):
            backend.shutdown()

    def abort(self):
        """Abort all operations."""
        for backend in dict.fromkeys(self._backends.values()):
            backend.abort()

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier that names the ranks that are missing."""
        timeout = self._timeout if timeout is None else timeout
        return _monitored.barrier(self, range(self._size), timeout, wait_all_ranks)

    def _set_default_timeout(self, timeout):
        for backend in self._backends.values():
            backend._set_default_timeout(timeout)


def _first_tensor(*values):
    """The first tensor in lists of lists; None if there is none."""
    for value in values:
        if isinstance(value, rushlight.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tensor(*value)
            if found is not None:
                return found
    return None


def _forwarding_method(name):
    def call(self, tensors, *args, **kwargs):
        return getattr(self._backend_of(_first_tensor(tensors, *args)), name)(
            tensors, *args, **kwargs
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of the engine that serves the tensors' device."
    return call


for _name in (
    "broadcast",
    "allreduce",
    "allreduce_coalesced",
    "reduce",
    "allgather",
    "_allgather_base",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "gather",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "send",
    "recv",
    "recv_anysource",
):
    setattr(ProcessGroup, _name, _forwarding_method(_name))


def _scatter(self, outputs, inputs, *args, **kwargs):
    """`scatter` of the engine that serves the tensors' device."""
    return self._backend_of(_first_tensor(outputs)).scatter(outputs, inputs, *args, **kwargs)


def _barrier(self, opts=None):
    """A barrier of the first engine."""
    return next(iter(self._backends.values())).barrier(opts)


ProcessGroup.scatter = _scatter  # type: ignore[attr-defined]
ProcessGroup.barrier = _barrier  # type: ignore[attr-defined]
