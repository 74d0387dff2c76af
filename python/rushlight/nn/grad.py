"""Gradients of convolutions with respect to inputs and weights, as functions."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _each(value, dims):
    return [value] * dims if isinstance(value, int) else list(value)


def _by_input(dims, input_size, weight, grad_output, stride, padding, dilation, groups):
    """A transposed convolution, which is told how large its result has to be."""
    stride, padding, dilation = (_each(v, dims) for v in (stride, padding, dilation))
    lengths = zip(
        input_size[-dims:],
        *(grad_output.shape[-dims:], weight.shape[-dims:]),
        *(stride, padding, dilation),
        strict=True,
    )
    more = [n - ((g - 1) * s - 2 * p + d * (k - 1) + 1) for n, g, k, s, p, d in lengths]
    return rushlight.convolution(
        *(grad_output, weight.conj(), None, stride, padding, dilation, True, more, groups)
    )


def _by_weight(dims, input, weight_size, grad_output, stride, padding, dilation, groups):
    stride, padding, dilation = (_each(v, dims) for v in (stride, padding, dilation))
    return rushlight.ops.rushlight.convolution_weight_backward(
        *(grad_output, input.conj(), list(weight_size), stride, padding, dilation, groups)
    )


def conv1d_input(
    input_size: Sequence[int],
    weight: rushlight.Tensor,
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
):
    """Differentiate `conv1d` by its input, which has the size `input_size`.

    Args:
        input_size: the shape of the input, (N, C, L).
        weight: the filters, (out channels, C / groups, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    For an example see `nn.grad.conv2d_input`.
    """
    return _by_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: rushlight.Tensor,
    weight_size: Sequence[int],
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> rushlight.Tensor:
    """Differentiate `conv1d` by its weight, which has the size `weight_size`.

    Args:
        input: the input, (N, C, L).
        weight_size: the shape of the filters, (out channels, C / groups, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    For an example see `nn.grad.conv2d_weight`.
    """
    return _by_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: rushlight.Tensor,
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
):
    """Differentiate `conv2d` by its input, which has the size `input_size`.

    Args:
        input_size: the shape of the input, (N, C, H, W).
        weight: the filters, (out channels, C / groups, height, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    Example:
        >>> weight = torch.ones(1, 1, 2, 2)
        >>> torch.nn.grad.conv2d_input((1, 1, 3, 3), weight, torch.ones(1, 1, 2, 2))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """
    return _by_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: rushlight.Tensor,
    weight_size: Sequence[int],
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> rushlight.Tensor:
    """Differentiate `conv2d` by its weight, which has the size `weight_size`.

    Args:
        input: the input, (N, C, H, W).
        weight_size: the shape of the filters, (out channels, C / groups, height, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    Example:
        >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
        >>> torch.nn.grad.conv2d_weight(x, (1, 1, 2, 2), torch.ones(1, 1, 2, 2))
        tensor([[[[ 8., 12.],
                  [20., 24.]]]])
    """
    return _by_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: rushlight.Tensor,
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
):
    """Differentiate `conv3d` by its input, which has the size `input_size`.

    Args:
        input_size: the shape of the input, (N, C, D, H, W).
        weight: the filters, (out channels, C / groups, depth, height, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    For an example see `nn.grad.conv2d_input`.
    """
    return _by_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: rushlight.Tensor,
    weight_size: Sequence[int],
    grad_output: rushlight.Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> rushlight.Tensor:
    """Differentiate `conv3d` by its weight, which has the size `weight_size`.

    Args:
        input: the input, (N, C, D, H, W).
        weight_size: the shape of the filters, (out channels, C / groups, depth, height, width).
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.

    For an example see `nn.grad.conv2d_weight`.
    """
    return _by_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
