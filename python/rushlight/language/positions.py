"""The angles that positions turn heads by, and how those are scaled for longer texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["Scaling"]


@dataclass(frozen=True)
class Scaling:
    """How positions are scaled for texts longer than those that a network was trained on.

    Args:
        kind: "none"; "linear": all angles are `factor` times smaller; "yarn": those that turn
            less than `slow` times within `original` positions are, and those that turn more than
            `fast` times stay.
        factor: how many times longer the texts are.
        original: positions that the network was trained on.
        attention: what cosines and sines are multiplied by beside what "yarn" itself asks for.
        fast: turns.
        slow: turns.
        share: how much of the scaling "yarn" leaves out where angles stay.

    Example:
        >>> from rushlight.language.positions import Scaling
        >>> Scaling("linear", 4.0).angles(4, 10000.0)
        tensor([0.2500, 0.0025], dtype=torch.float64)
    """

    kind: str = "none"
    factor: float = 1.0
    original: int = 1
    attention: float = 1.0
    fast: float = 32.0
    slow: float = 1.0
    share: float = 1.0

    @classmethod
    def of(cls, metadata: Mapping[str, Any], context: int) -> Scaling:
        """What metadata say; ValueError where it is not known."""

        def number(name: str, otherwise: float) -> float:
            value = metadata.get(f"llama.rope.scaling.{name}", otherwise)
            if type(value) not in (int, float) or not 0 < value < 1 << 31:
                raise ValueError(f"llama.rope.scaling.{name} must be a number, not {value!r}")
            return value

        factor = number("factor", metadata.get("llama.rope.scale_linear", 1.0))
        kind = metadata.get("llama.rope.scaling.type", "none" if factor == 1 else "linear")
        if kind not in ("none", "linear", "yarn"):
            raise ValueError(
                f"positions are scaled in the way {kind!r}; those that are known are 'none', "
                "'linear' and 'yarn'"
            )
        if kind == "none":
            return cls()
        return cls(
            kind=kind,
            factor=factor,
            original=int(number("original_context_length", context)),
            attention=number("attn_factor", 1.0) * number("yarn_attn_factor", 1.0),
            fast=number("yarn_beta_fast", 32.0),
            slow=number("yarn_beta_slow", 1.0),
            share=number("yarn_ext_factor", 1.0),
        )

    @property
    def size(self) -> float:
        """What cosines and sines are multiplied by."""
        more = 1 + 0.1 * math.log(self.factor) if self.kind == "yarn" and self.factor > 1 else 1.0
        return self.attention * more

    def angles(self, turned: int, base: float) -> Tensor:
        """By how much each pair of `turned` numbers is turned from a position to the next.

        Args:
            turned: numbers of a head that are turned.
            base: of the frequencies.
        """
        pairs = rushlight.arange(0, turned, 2, dtype=rushlight.float64) / turned
        angles = base**-pairs
        if self.kind == "none":
            return angles
        if self.kind == "linear":
            return angles / self.factor

        def pair_with(turns: float) -> float:
            """Which pair turns so often within the original positions."""
            return turned * math.log(self.original / (turns * 2 * math.pi)) / (2 * math.log(base))

        first = max(math.floor(pair_with(self.fast)), 0)
        last = min(math.ceil(pair_with(self.slow)), turned - 1)
        ramp = rushlight.arange(turned // 2, dtype=rushlight.float64)
        ramp = ((ramp - first) / max(0.001, last - first)).clamp(0, 1)
        stays = (1 - ramp) * self.share
        return angles * stays + angles / self.factor * (1 - stays)
