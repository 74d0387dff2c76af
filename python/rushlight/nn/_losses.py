"""Losses: how far results are from targets, for each element or reduced.

Public in `nn.functional`. A loss turns the word `reduction` (and the old flags `size_average` and
`reduce`) into the op's number and calls the op.
"""

from __future__ import annotations

from collections.abc import Sequence

import rushlight
from rushlight import Tensor
from rushlight._table import ops
from rushlight._warnings import warn

from . import _arguments

_NONE, _MEAN, _SUM = 0, 1, 2
_NUMBERS = {"none": _NONE, "mean": _MEAN, "sum": _SUM}


def _reduction(reduction, size_average=None, reduce=None):
    """The number of a reduction; ValueError for an unknown one."""
    if size_average is not None or reduce is not None:
        reduction = _arguments._reduction(reduction, size_average, reduce)
    number = _NUMBERS.get(reduction)
    if number is None:
        raise ValueError(
            f"'{reduction}' is not a valid value for reduction: 'none', 'mean' or 'sum'"
        )
    return number


def _reduce(losses: Tensor, number: int) -> Tensor:
    if number == _NONE:
        return losses
    return losses.mean() if number == _MEAN else losses.sum()


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits and class indices or class probabilities.

    Args:
        input: logits, shape (C), (N, C) or (N, C, d1, …).
        target: int64 classes without the dimension C, or probabilities of the input's shape.
        weight: a factor for each class.
        ignore_index: a class that counts for nothing.
        label_smoothing: the part of each target that is spread over all classes.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.cross_entropy(
        ...     torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 1])
        ... )
        tensor(0.0878)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of class indices; `input` holds log probabilities.

    Args:
        input: what the network says.
        target: what the input is to be.
        weight: a factor of each class, or of each element of the loss.
        size_average: deprecated: False means `reduction='sum'`.
        ignore_index: a label whose samples count for nothing.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.nll_loss(torch.tensor([[0.9, 0.1]]).log(), torch.tensor([0]))
        tensor(0.1054)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.nll_loss_nd(input, target, weight, number, ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error.

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        weight: a factor of each class, or of each element of the loss.

    Example:
        >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    number = _reduction(reduction, size_average, reduce)
    if weight is not None:
        return ops._weighted_loss(ops.mse_loss(input, target, _NONE), weight, number)
    return ops.mse_loss(input, target, number)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error.

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        weight: a factor of each class, or of each element of the loss.

    Example:
        >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    if weight is not None:
        return ops._weighted_loss(ops.l1_loss(input, target, _NONE), weight, number)
    return ops.l1_loss(input, target, number)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The squared error over 2 beta where it is below beta, the absolute error beyond.

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        beta: where the parabola becomes a line.

    Example:
        >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]))
        tensor(1.3125)
    """
    return ops.smooth_l1_loss(input, target, _reduction(reduction, size_average, reduce), beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared error where it is below delta, linear beyond.

    Args:
        input: what the network says.
        target: what the input is to be.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        delta: where the parabola becomes a line.
        weight: a factor of each class, or of each element of the loss.

    Example:
        >>> torch.nn.functional.huber_loss(torch.tensor([0.0, 0.0]), torch.tensor([0.5, 3.0]))
        tensor(1.3125)
    """
    number = _reduction(reduction)
    if weight is not None:
        return _reduce(ops.huber_loss(input, target, _NONE, delta) * weight, number)
    return ops.huber_loss(input, target, number, delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities `input` and targets in [0, 1], of the same shape.

    Args:
        input: what the network says.
        target: what the input is to be.
        weight: a factor of each class, or of each element of the loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.binary_cross_entropy(
        ...     torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0])
        ... )
        tensor(0.1643)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), computed without losing digits.

    Args:
        input: what the network says.
        target: what the input is to be.
        weight: a factor of each class, or of each element of the loss.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        pos_weight: a factor of the positive term of each class.

    Example:
        >>> torch.nn.functional.binary_cross_entropy_with_logits(
        ...     torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0])
        ... )
        tensor(0.2201)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence; `input` holds log probabilities.

    "batchmean" divides the sum by the batch size, which is the divergence's definition.

    Args:
        input: what the network says.
        target: what the input is to be.
        size_average: deprecated: False means `reduction='sum'`.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.
        log_target: whether the target is given as logarithms.

    Example:
        >>> torch.nn.functional.kl_div(
        ...     torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]), reduction="batchmean"
        ... )
        tensor(0.3681)
    """
    if size_average is None and reduce is None and reduction == "mean":
        warn(
            "kl_div: reduction='mean' is the mean over all elements, which is no divergence: use "
            "reduction='batchmean', the mean over the batch",
        )
    batchmean = reduction == "batchmean"
    number = _reduction("sum" if batchmean else reduction, size_average, reduce)
    result = ops.kl_div(input, target, number, log_target=log_target)
    return result / input.size(0) if batchmean and input.dim() != 0 else result


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts under a Poisson distribution.

    Args:
        input: what the network says.
        target: what the input is to be.
        log_input: whether the input is the logarithm of the rate.
        full: whether to add the constant term.
        size_average: deprecated: False means `reduction='sum'`.
        eps: a small number that keeps the result finite.
        reduce: deprecated: False means `reduction='none'`.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.8591)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood under N(input, var).

    Args:
        input: what the network says.
        target: what the input is to be.
        var: the variances.
        full: whether to add the constant term.
        eps: a small number that keeps the result finite.
        reduction: what becomes of the losses of elements: `'none'`, `'mean'` or `'sum'`.

    Example:
        >>> torch.nn.functional.gaussian_nll_loss(
        ...     torch.tensor([0.0]), torch.tensor([2.0]), torch.tensor([4.0])
        ... )
        tensor(1.1931)
    """
    return ops.gaussian_nll_loss(input, target, var, full, eps, _reduction(reduction))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: -log of the probability of targets under all
    alignments.

    Args:
        log_probs: logarithms of probabilities, (length, batch, classes).
        targets: the classes, (batch, longest) or all targets in one row.
        input_lengths, target_lengths: how much of each counts, in lists or tensors.
        blank: the class between labels.
        reduction: "mean" divides by the targets' lengths first.
        zero_infinity: whether the loss of impossible targets is zero.

    Example:
        >>> torch.nn.functional.ctc_loss(
        ...     torch.zeros(2, 1, 2).log_softmax(2), torch.tensor([[1]]), [2], [1]
        ... )
        tensor(0.2877)
    """
    lengths = (input_lengths, target_lengths)
    if isinstance(input_lengths, rushlight.Tensor) != isinstance(target_lengths, rushlight.Tensor):
        lengths = [n.tolist() if isinstance(n, rushlight.Tensor) else n for n in lengths]
    return ops.ctc_loss(log_probs, targets, *lengths, blank, _reduction(reduction), zero_infinity)
