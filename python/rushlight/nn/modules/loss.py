"""Losses. Most are generated from ops/modules.py; the ones with rules of their own stand here."""

from __future__ import annotations

from .. import functional as F
from ._stateless.loss import *  # noqa: F403
from ._stateless.loss import NLLLoss, _Loss
from ._stateless.loss import __all__ as _generated
from .distance import PairwiseDistance

__all__ = [
    *(name for name in _generated if not name.startswith("_")),
    "CTCLoss",
    "NLLLoss2d",
    "TripletMarginWithDistanceLoss",
]


class CTCLoss(_Loss):
    """Connectionist temporal classification: sequences and targets of unknown alignment.

    Args:
        blank: the class between labels.
        reduction: "mean" (of each loss over its target's length), "sum" or "none".
        zero_infinity: impossible targets count as zero.
    """

    def __init__(self, blank=0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` for images."""


class TripletMarginWithDistanceLoss(_Loss):
    """How much nearer, by any distance, the anchor should be to `positive` than to `negative`.

    Args:
        distance_function: of two batches of vectors; `PairwiseDistance` by default.
        margin: how much nearer.
        swap: the negative may also be near the positive.
    """

    def __init__(
        self,
        *,
        distance_function=None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}"
                " instead"
            )
        if distance_function is None:
            distance_function = PairwiseDistance()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
