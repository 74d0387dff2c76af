"""Groups that check before each collective that all ranks call the same on the same shapes.

That is TORCH_DISTRIBUTED_DEBUG=DETAIL. What each rank is about to do goes through the store.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import rushlight
from rushlight import _C
from rushlight.distributed import _monitored
from rushlight.distributed._process_group import ProcessGroup, _tensors

__all__ = ["CheckedGroup"]

_types: Any = _C._load_distributed()

# What may differ between ranks (scattered and gathered lists stand at one of them alone).
_CHECKED = {
    "broadcast": ("BROADCAST", 0),
    "allreduce": ("ALLREDUCE", 0),
    "allreduce_coalesced": ("ALLREDUCE_COALESCED", 0),
    "reduce": ("REDUCE", 0),
    "allgather": ("ALLGATHER", 1),
    "allgather_coalesced": ("ALLGATHER_COALESCED", 1),
    "_allgather_base": ("_ALLGATHER_BASE", 1),
    "allgather_into_tensor_coalesced": ("ALLGATHER_INTO_TENSOR_COALESCED", 1),
    "gather": ("GATHER", 1),
    "scatter": ("SCATTER", 0),
    "reduce_scatter": ("REDUCE_SCATTER", 0),
    "_reduce_scatter_base": ("_REDUCE_SCATTER_BASE", 0),
    "reduce_scatter_tensor_coalesced": ("REDUCE_SCATTER_TENSOR_COALESCED", 0),
    "alltoall": ("ALLTOALL", None),
    "alltoall_base": ("ALLTOALL_BASE", None),
    "barrier": ("BARRIER", None),
}
_NAMES = {
    rushlight.float32: "Float",
    rushlight.float64: "Double",
    rushlight.float16: "Half",
    rushlight.bfloat16: "BFloat16",
    rushlight.int64: "Long",
    rushlight.int32: "Int",
    rushlight.int16: "Short",
    rushlight.int8: "Char",
    rushlight.uint8: "Byte",
    rushlight.bool: "Bool",
    rushlight.complex64: "ComplexFloat",
    rushlight.complex128: "ComplexDouble",
}


class CheckedGroup(ProcessGroup):
    """An engine whose collectives are compared between ranks first."""

    def __init__(self, engine, store):
        super().__init__(store, engine.rank(), engine.size())
        self._inner = engine
        self._timeout = engine._timeout
        self._backends = dict.fromkeys(engine._backends, self)
        self._calls = 0

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)

    def getBackendName(self):
        """The engine's name."""
        return self._inner.name()

    def _backend_of(self, tensor):
        return self._inner

    def shutdown(self):
        """Let what was asked for end, and close the connections."""
        self._inner.shutdown()

    def abort(self):
        """Give everything up."""
        self._inner.abort()

    def _get_sequence_number_for_group(self):
        return self._calls

    @property
    def wrapped_pg(self):
        """The engine."""
        return self._inner

    def _compare(self, op, tensors):
        """RuntimeError, on all ranks, where they do not all do the same."""
        number = self._calls
        self._calls += 1
        _monitored.barrier(self, range(self._size), self._timeout, True)
        text = f"OpType={op}"
        if tensors:
            shapes = "".join(str(list(t.shape)) for t in tensors)
            kinds = "".join(_NAMES.get(t.dtype, str(t.dtype)) for t in tensors)
            devices = "".join(str(t.device) for t in tensors)
            text += f", TensorShape={shapes}, TensorDtypes={kinds}, TensorDeviceTypes={devices}"
        store = self._store
        place = f"checked/{number}"
        store.set(f"{place}/{self._rank}", text)
        keys = [f"{place}/{rank}" for rank in range(self._size)]
        store.wait(keys, self._timeout)
        every = [value.decode() for value in store.multi_get(keys)]
        if number > 0:
            store.delete_key(f"checked/{number - 1}/{self._rank}")  # all have read it
        for rank, other in enumerate(every):
            if other != text:
                mine, theirs = (
                    f"CollectiveFingerPrint(SequenceNumber={number}, {t})" for t in (text, other)
                )
                pairs = zip(_fields(text), _fields(other), strict=False)
                differ = [f"  {a} vs {b}" for a, b in pairs if a != b] or ["  Tensors"]
                raise RuntimeError(
                    f"Detected mismatch between collectives on ranks. Rank {self._rank} is running "
                    f"collective: {mine}, but Rank {rank} is running collective: {theirs}."
                    "Collectives differ in the following aspects:\n" + "\n".join(differ)
                )


def _fields(text: str) -> list[str]:
    return text.split(", Tensor")


def _checking_method(name):
    op, read = _CHECKED[name]

    def call(self, *args, **kwargs):
        tensors: list[Any] = []
        if read is not None and read < len(args):
            tensors = list(_tensors(args[read]))
        self._compare(op, tensors)
        return getattr(self._inner, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of the engine, once all ranks are known to call it."
    return call


for _name in _CHECKED:
    setattr(CheckedGroup, _name, _checking_method(_name))


def _create_process_group_wrapper(
    wrapped_pg, store_prefix, store, rank, world_size, timeout=timedelta(minutes=30)
):
    """A checked group on an engine."""
    if (rank, world_size) != (wrapped_pg.rank(), wrapped_pg.size()):
        raise ValueError("the wrapper and the engine are of different groups")
    made = CheckedGroup(wrapped_pg, _types.PrefixStore(store_prefix, store))
    made._timeout = timeout
    return made
