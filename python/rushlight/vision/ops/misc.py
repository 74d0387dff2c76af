"""Building blocks of many networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn.functional import interpolate as interpolate

from ._shared import n_of

__all__ = [
    "MLP",
    "Conv2dNormActivation",
    "Conv3dNormActivation",
    "ConvNormActivation",
    "FrozenBatchNorm2d",
    "Permute",
    "SqueezeExcitation",
    "interpolate",
]


class FrozenBatchNorm2d(nn.Module):
    """Batch norm (N, C, H, W) with fixed statistics and factors, which are all buffers.

    Args:
        num_features: the number of channels, C.
        eps: is added to the variances, so that none is 0.

    Example:
        >>> norm = torch.vision.ops.FrozenBatchNorm2d(4)
        >>> norm
        FrozenBatchNorm2d(4, eps=1e-05)
        >>> len(list(norm.parameters()))
        0
    """

    def __init__(self, num_features: int, eps: float = 1e-05) -> None:
        super().__init__()
        self.eps = eps
        for name, fill in (
            ("weight", 1.0),
            ("bias", 0.0),
            ("running_mean", 0.0),
            ("running_var", 1.0),
        ):
            self.register_buffer(name, torch.full((num_features,), fill))

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        state_dict.pop(f"{prefix}num_batches_tracked", None)  # BatchNorm2d has it
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


class ConvNormActivation(nn.Sequential):
    """A convolution, a normalisation and an activation; `None` leaves one of the latter out.

    Padding keeps the size where the stride is 1; there is a bias where there is no normalisation.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: the size of the kernels along each dimension, or one number.
        stride: the step between places of the kernel.
        padding: what is added around the input; None keeps the size where the stride is 1.
        groups: into how many parts the channels fall, each with kernels of its own.
        norm_layer: makes the normalisation, of `out_channels`.
        activation_layer: makes the activation.
        dilation: the step between taps.
        inplace: what the activation is told; None: nothing.
        bias: whether the convolution adds a number to each channel; None: where there is no
            normalisation.
        conv_layer: makes the convolution.

    Example:
        >>> block = torch.vision.ops.misc.ConvNormActivation(3, 8, conv_layer=torch.nn.Conv2d)
        >>> block(torch.zeros(1, 3, 16, 16)).shape
        torch.Size([1, 8, 16, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: int | Sequence[int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: Callable[..., nn.Module] = nn.Conv2d,
    ) -> None:
        if padding is None:
            dims = max(
                len(v) if isinstance(v, list | tuple) else 0 for v in (kernel_size, dilation)
            )
            sizes, steps = n_of(kernel_size, dims or 1), n_of(dilation, dims or 1)
            padding = tuple((k - 1) // 2 * d for k, d in zip(sizes, steps, strict=True))
            if dims:
                kernel_size, dilation = sizes, steps
            else:
                (padding,) = padding
        layers: list[nn.Module] = [
            conv_layer(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias=norm_layer is None if bias is None else bias,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(
                activation_layer() if inplace is None else activation_layer(inplace=inplace)
            )
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """A convolution of images (N, C, H, W), a normalisation and an activation.

    Input and result are (N, in_channels, H, W) and (N, out_channels, H', W').

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: the size of the kernels along each dimension, or one number.
        stride: the step between places of the kernel.
        padding: what is added around the input; None keeps the size where the stride is 1.
        groups: into how many parts the channels fall, each with kernels of its own.
        norm_layer: makes the normalisation, of `out_channels`.
        activation_layer: makes the activation.
        dilation: the step between taps.
        inplace: what the activation is told; None: nothing.
        bias: whether the convolution adds a number to each channel; None: where there is no
            normalisation.

    Example:
        >>> block = torch.vision.ops.Conv2dNormActivation(
        ...     3, 8, stride=2, activation_layer=torch.nn.SiLU
        ... )
        >>> [type(layer).__name__ for layer in block]
        ['Conv2d', 'BatchNorm2d', 'SiLU']
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: int | Sequence[int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            *(in_channels, out_channels, kernel_size, stride, padding, groups),
            *(norm_layer, activation_layer, dilation, inplace, bias, nn.Conv2d),
        )


class Conv3dNormActivation(ConvNormActivation):
    """A convolution of volumes (N, C, D, H, W), a normalisation and an activation.

    Input and result are (N, in_channels, D, H, W) and (N, out_channels, D', H', W').

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: the size of the kernels along each dimension, or one number.
        stride: the step between places of the kernel.
        padding: what is added around the input; None keeps the size where the stride is 1.
        groups: into how many parts the channels fall, each with kernels of its own.
        norm_layer: makes the normalisation, of `out_channels`.
        activation_layer: makes the activation.
        dilation: the step between taps.
        inplace: what the activation is told; None: nothing.
        bias: whether the convolution adds a number to each channel; None: where there is no
            normalisation.

    Example:
        >>> block = torch.vision.ops.Conv3dNormActivation(3, 8, kernel_size=(1, 3, 3))
        >>> block(torch.zeros(1, 3, 4, 16, 16)).shape
        torch.Size([1, 8, 4, 16, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str | None = None,
        groups: int = 1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm3d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation: int | Sequence[int] = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:
        super().__init__(
            *(in_channels, out_channels, kernel_size, stride, padding, groups),
            *(norm_layer, activation_layer, dilation, inplace, bias, nn.Conv3d),
        )


class SqueezeExcitation(nn.Module):
    """Multiplies channels (N, C, H, W) by factors that two layers compute from the channels'
    means.

    Args:
        input_channels: channels of input and result.
        squeeze_channels: channels between the two layers.
        activation: makes the function behind the first layer.
        scale_activation: makes the function behind the second, whose values are the factors.

    Example:
        >>> layer = torch.vision.ops.SqueezeExcitation(16, 4)
        >>> layer(torch.ones(2, 16, 8, 8)).shape
        torch.Size([2, 16, 8, 8])
    """

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., nn.Module] = nn.ReLU,
        scale_activation: Callable[..., nn.Module] = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        factors = self.activation(self.fc1(self.avgpool(input)))
        return self.scale_activation(self.fc2(factors)) * input


class MLP(nn.Sequential):
    """Linear layers from in_channels through hidden_channels; all but the last with norm and
    activation.

    Args:
        in_channels: numbers in a row of the input.
        hidden_channels: numbers behind each layer; the last are those of the result.
        norm_layer: makes the normalisation behind each layer but the last; None: there is none.
        activation_layer: makes the activation behind each layer but the last; None: there is none.
        inplace: what activations and dropout are told; None: nothing.
        bias: whether layers add a number to each result.
        dropout: the probability with which numbers behind a layer become 0.

    Example:
        >>> torch.vision.ops.MLP(8, [16, 2])(torch.zeros(5, 8)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: list[int],
        norm_layer: Callable[..., nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        how = {} if inplace is None else {"inplace": inplace}
        *widths, last = in_channels, *hidden_channels[:-1], hidden_channels[-1]
        between: list[nn.Module] = []
        for before, width in itertools.pairwise(widths):
            between += [
                nn.Linear(before, width, bias=bias),
                *([] if norm_layer is None else [norm_layer(width)]),
                *([] if activation_layer is None else [activation_layer(**how)]),
                nn.Dropout(dropout, **how),
            ]
        end = nn.Linear(widths[-1], last, bias=bias), nn.Dropout(dropout, **how)
        super().__init__(*between, *end)


class Permute(nn.Module):
    """`permute` as a layer.

    Args:
        dims: the dimensions of the input in the order that the result has.

    Example:
        >>> torch.vision.ops.Permute([0, 2, 3, 1])(torch.zeros(1, 3, 8, 6)).shape
        torch.Size([1, 8, 6, 3])
    """

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.dims)
