"""Weights of codes, packed once for the ops that multiply codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight import _C

__all__ = ["PackedWeight", "integer_weight", "steps_of"]


def steps_of(weight: Any) -> tuple[Any, Any]:
    """The scale of each row of a weight, or one for all, and zero points in the weight's shape."""
    about = weight._quantizer
    if about.axis is None:
        return rushlight.tensor([about.scale], dtype=rushlight.float32), about.zero_point
    shape = [-1] + [1] * (weight.dim() - 1)
    return about.scale.float(), about.zero_point.reshape(shape)


def integer_weight(weight: Any) -> Any:
    """The codes of a weight without their zero points, in float64."""
    return weight._codes.double() - steps_of(weight)[1]


MOST_TERMS = (2**31 - 1) // (255 * 128)  # src/kernels/int8_layout.h


class PackedWeight(NamedTuple):
    """A weight in the order in which products read it; the arguments of the ops that take one."""

    codes: Any
    sums: Any  # of the codes of each result, int32
    steps: Any  # the scale of each result
    bias: Any  # float32, or None

    @classmethod
    def of(cls, weight: Any, bias: Any, groups: int = 1) -> PackedWeight | None:
        """Pack a quantised weight (results, inputs of a group, ...).

        None where its zero points are not 0, or sums of so many products may not fit 32 bits: such
        weights are multiplied in float64.
        """
        steps, zeros = steps_of(weight)
        if rushlight.as_tensor(zeros).any() or weight._codes[:1].numel() > MOST_TERMS:
            return None
        # Windows are read channel by channel.
        rows = weight._codes.movedim(1, -1).reshape(len(weight), -1)
        by_channels = weight.shape[1] == 1 and groups == len(weight) > 1
        return cls(
            rows.t().contiguous() if by_channels else _C.ops._int8_pack(rows, groups),
            rows.sum(1, dtype=rushlight.int32),
            steps.expand(len(weight)).contiguous(),
            None if bias is None else bias.detach().float(),
        )
