"""Traces without writes: an op in place is recorded as the op that gives a new tensor."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["has_live_views", "out_of_place"]


def out_of_place(op: Any, things: list[Any]) -> tuple[str, list[Any]] | None:
    """The overload and arguments that give what an op writes; None where it writes nothing so."""
    schema = op._schema
    space, _, name = schema.name.partition("::")
    if space != "aten" or not name.endswith("_") or name.endswith("__"):
        return None
    if name == "zero_":
        return "aten::zeros_like", [things[0], *[None] * 5]
    if name == "copy_" and things[0].dtype == things[1].dtype:
        return "aten::expand_as", [things[1], things[0]]
    packet = getattr(rushlight.ops.aten, name[:-1], None)
    overload = schema.overload_name
    if packet is None or (overload or "default") not in packet.overloads():
        raise RuntimeError(f"_force_outplace: there is no op that gives what {schema.name} writes")
    return f"aten::{name[:-1]}" + (f".{overload}" if overload else ""), things


def has_live_views(tensor: Tensor, known: Iterable[Tensor], held: int) -> bool:
    """Whether a program has other tensors on the memory of one.

    Args:
        tensor: that is written.
        known: the tensors of the trace.
        held: how many references the trace itself has to each of them.
    """
    place = tensor.untyped_storage().data_ptr()
    return any(
        other is not tensor
        and sys.getrefcount(other) > held + 2  # this loop's, and that of the call
        and other.untyped_storage().data_ptr() == place
        for other in known
    )
