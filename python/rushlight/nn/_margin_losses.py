"""Losses of margins, pairs and triplets; public in `nn.functional`."""

from __future__ import annotations

from collections.abc import Callable

import rushlight
from rushlight import Tensor
from rushlight._table import ops

from ._losses import _reduce, _reduction


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1.

    Args:
        input: what the network says.
        target: 1 or -1 for each element.
        margin: the distance beyond which there is no loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.hinge_embedding_loss(
        ...     torch.tensor([0.5, 0.5]), torch.tensor([1.0, -1.0])
        ... )
        tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.hinge_embedding_loss(input, target, margin, number)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * x)).

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0, 2.0]), torch.ones(2))
        tensor(0.4100)
    """
    return ops.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin).

    Args:
        input1: the first operand.
        input2: the second operand.
        target: 1 where the first is to be larger, else -1.
        margin: the distance beyond which there is no loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.margin_ranking_loss(
        ...     torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0])
        ... )
        tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    Args:
        input1: the first operand.
        input2: the second operand.
        target: 1 where a pair belongs together, else -1.
        margin: the distance beyond which there is no loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.cosine_embedding_loss(
        ...     torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1])
        ... )
        tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.cosine_embedding_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to `positive` - distance to `negative` + margin).

    Args:
        anchor: the samples to compare with.
        positive: samples that are to be near.
        negative: samples that are to be far.
        margin: the distance beyond which there is no loss.
        p: the exponent, or the order of the norm.
        eps: a small number that keeps the result finite.
        swap: whether the distance of positive and negative counts where it is smaller.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.triplet_margin_loss(
        ...     torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.5]])
        ... )
        tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin).

    `distance_function` is `pairwise_distance` by default; with `swap` the negative may be nearer to
    the positive than to the anchor.

    Args:
        anchor: the samples to compare with.
        positive: samples that are to be near.
        negative: samples that are to be far.
        distance_function: of two batches of vectors; `pairwise_distance` by default.
        margin: the distance beyond which there is no loss.
        swap: whether the distance of positive and negative counts where it is smaller.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.triplet_margin_with_distance_loss(
        ...     torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.5]])
        ... )
        tensor(0.5000)
    """
    number = _reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = ops.pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "anchor, positive and negative should have the same number of dimensions, not "
            f"{anchor.dim()}, {positive.dim()} and {negative.dim()}"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = rushlight.min(far, distance(positive, negative))
    return _reduce((near - far + margin).clamp_min(0), number)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss for many classes.

    Args:
        input: what the network says.
        target: what the input is to be.
        p: the exponent, or the order of the norm.
        margin: the distance beyond which there is no loss.
        weight: a factor of each class, or of each element of the loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.8]]), torch.tensor([1]))
        tensor(0.1500)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss for samples with several classes each.

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.multilabel_margin_loss(
        ...     torch.tensor([[0.1, 0.8]]), torch.tensor([[1, -1]])
        ... )
        tensor(0.1500)
    """
    return ops.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy with logits, averaged over the last dimension.

    Args:
        input: what the network says.
        target: what the input is to be.
        weight: a factor of each class, or of each element of the loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.multilabel_soft_margin_loss(
        ...     torch.tensor([[0.0, 2.0]]), torch.eye(2)[:1]
        ... )
        tensor(1.4100)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.multilabel_soft_margin_loss(input, target, weight, number)
