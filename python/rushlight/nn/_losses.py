"""Losses: how far results are from targets, for each element or reduced.

Public in `nn.functional`. A loss checks its settings, turns `reduction` (and the old flags
`size_average` and `reduce`) into the op's, and calls the op.
"""

import math
import warnings

import rushlight
from rushlight._table import ops

from . import _arguments

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(reduction, size_average=None, reduce=None):
    """The reduction that is meant, checked."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _weighted(loss, weight, reduction):
    """A loss of each element, times its weight, reduced; the mean is over the weights' sum."""
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / weight.expand_as(loss).sum()


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """The cross entropy of logits and class indices or class probabilities.

    Args:
        input: logits, shape (C), (N, C) or (N, C, d1, …).
        target: int64 classes without the dimension C, or probabilities of the input's shape.
        weight: a factor for each class.
        ignore_index: a class that counts for nothing.
        label_smoothing: the part of each target that is spread over all classes.
    """
    return ops.cross_entropy_loss(
        input,
        target,
        weight,
        _reduction(reduction, size_average, reduce),
        ignore_index,
        label_smoothing,
    )


def nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    """The negative log likelihood of class indices; `input` holds log probabilities."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    return ops.nll_loss_nd(input, target, weight, reduction, ignore_index)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference."""
    if weight is not None:
        return _weighted(ops.mse_loss(input, target, "none"), weight, reduction)
    return ops.mse_loss(input, target, _reduction(reduction, size_average, reduce))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    if weight is not None:
        return _weighted(ops.l1_loss(input, target, "none"), weight, reduction)
    return ops.l1_loss(input, target, _reduction(reduction, size_average, reduce))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The squared difference over 2 beta where it is below beta, the absolute one beyond."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if beta == 0.0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the squared difference where it is below delta, linear beyond."""
    if weight is not None:
        return _weighted(ops.huber_loss(input, target, "none", delta), weight, reduction)
    return ops.huber_loss(input, target, _reduction(reduction), delta)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The cross entropy of probabilities `input` and targets in [0, 1], of the same shape."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(rushlight.broadcast_shapes(target.size(), weight.size()))
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
    pos_weight=None,
):
    """`binary_cross_entropy` of sigmoid(input), computed without losing digits."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence; `input` holds log probabilities.

    "batchmean" divides the sum by the batch size, which is the divergence's definition.
    """
    if size_average is not None or reduce is not None:
        mode = _reduction(reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        mode = _reduction("sum" if reduction == "batchmean" else reduction)
    result = ops.kl_div(input, target, mode, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        result = result / input.size()[0]
    return result


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """The negative log likelihood of counts under a Poisson distribution."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood under N(input, var)."""
    if not isinstance(var, rushlight.Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * rushlight.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in _REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with rushlight.no_grad():
        var.clamp_(min=eps)  # a limit on the value that the gradient does not see
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    return ops.hinge_embedding_loss(input, target, margin, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * x))."""
    return ops.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    return ops.margin_ranking_loss(input1, input2, target, margin, reduction)


def cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """How much nearer the anchor should be to `positive` than to `negative`."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin).

    `distance_function` is `pairwise_distance` by default; with `swap` the negative may be nearer to
    the positive than to the anchor.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = ops.pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = rushlight.min(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """-log of the probability of targets under all their alignments with sequences.

    Args:
        log_probs: (length, batch, classes), logarithms of probabilities.
        targets: (batch, longest) or all targets in one row.
        input_lengths, target_lengths: how much of each counts.
        blank: the class between labels.
        reduction: "mean" divides by the targets' lengths first.
        zero_infinity: impossible targets count as zero.
    """
    numbers = {"none": 0, "mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    lengths = [
        n.tolist() if isinstance(n, rushlight.Tensor) else n
        for n in (input_lengths, target_lengths)
    ]
    lengths = [n if isinstance(n, (list, tuple)) else [n] for n in lengths]
    return ops.ctc_loss(log_probs, targets, *lengths, blank, numbers[reduction], zero_infinity)


def multi_margin_loss(
    input,
    target,
    p=1,
    margin=1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """The hinge loss of many classes."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of samples with several classes each."""
    return ops.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The binary cross entropy with logits, averaged over the last dimension."""
    reduction = _arguments._reduction(reduction, size_average, reduce)
    loss = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    loss = loss.sum(dim=-1) / input.size(-1)
    return _reduced(loss, reduction)
