"""Losses: most are generated from ops/modules.py; the others are written here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import functional as F
from ._stateless.loss import *  # noqa: F403
from ._stateless.loss import NLLLoss, _Loss
from ._stateless.loss import __all__ as _generated
from .distance import PairwiseDistance
from .linear import Linear

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight import Tensor
    from rushlight.types import Device, _dtype

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *(name for name in _generated if not name.startswith("_")),
        "CTCLoss",
        "LinearCrossEntropyLoss",
        "NLLLoss2d",
        "TripletMarginWithDistanceLoss",
    ]


class CTCLoss(_Loss):
    """Connectionist temporal classification: sequences and targets of unknown alignment.

    Args:
        blank: the class between labels.
        reduction: "mean" (of each loss over its target's length), "sum" or "none".
        zero_infinity: whether the loss of impossible targets is zero.

    Shape: logarithms of probabilities (T, N, C), targets (N, S), and the lengths of both.

    Example:
        >>> log_probs = torch.zeros(2, 1, 2).log_softmax(2)
        >>> torch.nn.CTCLoss()(log_probs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
        tensor(0.2877)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
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


class LinearCrossEntropyLoss(_Loss):
    """`CrossEntropyLoss` after a linear layer of its own.

    Args:
        in_features: size of an input.
        num_classes: the number of classes.
        out_features: sizes of what has a class each, for an input.
        bias: whether the layer has one.
        device: the device of the layer.
        dtype: the dtype of the layer.
        reduction: "mean", "sum" or "none".
        weight: the weight of the classes.
        ignore_index: the class that counts nothing; -100 where None.
        label_smoothing: as in `CrossEntropyLoss`.
        options: refused: the layer's result is made at once.

    Shape: input (N, in_features) and class indices (N); with reduction='none' (N), else a number.

    Example:
        >>> torch.nn.LinearCrossEntropyLoss(4, 10)(torch.zeros(2, 4), torch.tensor([1, 2])).shape
        torch.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device | None = None,
        dtype: _dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__(reduction=reduction)
        if options is not None:
            raise NotImplementedError("LinearCrossEntropyLoss: the layer's result is made at once")
        self.register_buffer("weight", weight)
        self.in_features, self.num_classes = in_features, num_classes
        self.out_features = tuple(out_features)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.options = None
        count = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, count, bias, device=device, dtype=dtype)

    def forward(self, input, target):
        sizes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*sizes, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(sizes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self):
        names = "in_features num_classes out_features"
        parts = [f"{name}={getattr(self, name)}" for name in names.split()]
        parts += [
            f"bias={self.linear.bias is not None}",
            f"reduction={self.reduction}",
            f"ignore_index={self.ignore_index}",
            f"label_smoothing={self.label_smoothing}",
            f"options={self.options}",
        ]
        return ", ".join(parts)


class NLLLoss2d(NLLLoss):
    """Deprecated name of `NLLLoss` for images.

    Args:
        weight, size_average, ignore_index, reduce, reduction: see `NLLLoss`.

    Shape: input (N, C, H, W) and class indices (N, H, W); with reduction='none' (N, H, W), else a
        number.

    Example:
        >>> torch.nn.NLLLoss2d()(
        ...     torch.full((1, 2, 1, 1), -0.5), torch.zeros(1, 1, 1, dtype=torch.int64)
        ... )
        tensor(0.5000)
    """


class TripletMarginWithDistanceLoss(_Loss):
    """How much nearer, by any distance, the anchor should be to `positive` than to `negative`.

    Args:
        distance_function: of two batches of vectors; `PairwiseDistance` by default.
        margin: the least difference of the distances.
        swap: the negative may also be near the positive.
        reduction: what becomes of the losses of samples: "none", "mean" or "sum".

    Shape: anchor, positive and negative (N, *); what the distance gives with reduction='none',
        else a number.

    Example:
        >>> loss = torch.nn.TripletMarginWithDistanceLoss()
        >>> loss(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.5]]))
        tensor(0.5000)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[..., Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be above 0, but it is {margin}"
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
