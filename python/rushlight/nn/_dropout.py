"""Dropout of elements, channels and features; public in `nn.functional`."""

from __future__ import annotations

from rushlight import Tensor, _warnings
from rushlight._table import ops

from ._arguments import _probability


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to zero with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.dropout(torch.tensor([1.0, 2.0]), p=0.5, training=False)
        tensor([1., 2.])
    """
    _probability(p)
    return (ops.dropout_ if inplace else ops.dropout)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of `selu`'s results.

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.alpha_dropout(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    _probability(p)
    return (ops.alpha_dropout_ if inplace else ops.alpha_dropout)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels.

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.feature_alpha_dropout(torch.tensor([[1.0, 2.0]]))
        tensor([[1., 2.]])
    """
    _probability(p)
    function = ops.feature_alpha_dropout_ if inplace else ops.feature_alpha_dropout
    return function(input, p, training)


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return (ops.feature_dropout_ if inplace else ops.feature_dropout)(input, p, training)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L).

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 3), training=False)
        tensor([[[1., 1., 1.],
                 [1., 1., 1.]]])
    """
    _probability(p)
    return (ops.dropout1d_ if inplace else ops.dropout1d)(input, p, training)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, H, W), or of (N, C, L) with a warning.

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.dropout2d(torch.ones(1, 1, 2, 2), training=False)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    _probability(p)
    if input.dim() not in (3, 4):
        _warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated: "
            "images have 3 or 4 dimensions, and for rows there is dropout1d.",
        )
    elif input.dim() == 3:
        _warnings.warn(
            "dropout2d: Received a 3D input to dropout2d, which is taken for (N, C, L), not for an "
            "image without a batch. For rows there is dropout1d.",
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Args:
        input: the tensor to compute with.
        p: the probability of dropping.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.dropout3d(torch.ones(1, 1, 1, 2, 2), training=False)
        tensor([[[[[1., 1.],
                   [1., 1.]]]]])
    """
    _probability(p)
    if input.dim() not in (4, 5):
        _warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated: "
            "volumes have 4 or 5 dimensions.",
        )
    if input.dim() == 5:
        return _feature_dropout(input, p, training, inplace)
    dropped = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else dropped.squeeze(0)
