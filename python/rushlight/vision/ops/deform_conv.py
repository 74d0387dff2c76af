"""Deformable convolution."""

import rushlight as torch
from rushlight import Tensor, nn
from rushlight._table import ops as _ops

from ._shared import n_of, pair, register

__all__ = ["DeformConv2d", "deform_conv2d"]

_deform_conv2d = register(_ops.deform_conv2d)


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, int] = (1, 1),
    padding: int | tuple[int, int] = (0, 0),
    dilation: int | tuple[int, int] = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:
    """Deformable convolution of images (N, C, H, W) with a weight (O, C / groups, kh, kw) and
    offsets.

    offset (N, 2 * offset groups * kh * kw, H', W') moves the taps by rows and columns, pair by
    pair, for each group of channels; mask (N, offset groups * kh * kw, H', W') multiplies what they
    see. The result is (N, O, H', W'). RuntimeError for shapes that do not fit, or dtypes that
    differ; ValueError for other numbers of dimensions.

    Args:
        input: images (N, C, H, W).
        offset: how far each tap is moved, (N, 2 * offset groups * kh * kw, H', W'): by rows, then
            by columns.
        weight: the kernels, (O, C / groups, kh, kw).
        bias: is added to each channel, (O), or None.
        stride, padding, dilation: as in `conv2d`: a number, or one for the height and one for the
            width.
        mask: factors of what taps see, (N, offset groups * kh * kw, H', W'), or None.

    Example:
        >>> image = torch.arange(16.0).view(1, 1, 4, 4)
        >>> offset = torch.zeros(1, 2, 4, 4)
        >>> offset[:, 1] = 0.5  # half a pixel to the right
        >>> torch.vision.ops.deform_conv2d(image, offset, torch.ones(1, 1, 1, 1))
        tensor([[[[ 0.5000,  1.5000,  2.5000,  1.5000],
                  [ 4.5000,  5.5000,  6.5000,  3.5000],
                  [ 8.5000,  9.5000, 10.5000,  5.5000],
                  [12.5000, 13.5000, 14.5000,  7.5000]]]])
    """
    if input.dim() != 4 or weight.dim() < 2:
        raise ValueError(
            "deform_conv2d: input and weight have four dimensions, but got shapes "
            f"{tuple(input.shape)} and {tuple(weight.shape)}"
        )
    steps = pair(stride, "stride"), pair(padding, "padding"), pair(dilation, "dilation")
    return _deform_conv2d(input, offset, weight, bias, *steps, mask)


class DeformConv2d(nn.Module):
    """`deform_conv2d` as a layer with a weight and a bias.

    Called with images (N, in_channels, H, W), offsets and perhaps a mask; the result is (N,
    out_channels, H', W').

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: height and width of the kernels, or one number for both.
        stride: the step between places of the kernel.
        padding: zeros around the input.
        dilation: the step between taps.
        groups: into how many parts the channels fall, each with kernels of its own.
        bias: whether a number is added to each channel.

    Raises:
        ValueError: `groups` does not divide the channels.

    Example:
        >>> layer = torch.vision.ops.DeformConv2d(3, 8, kernel_size=3, padding=1)
        >>> layer(torch.randn(1, 3, 16, 16), torch.zeros(1, 18, 16, 16)).shape
        torch.Size([1, 8, 16, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = n_of(kernel_size, 2), n_of(stride, 2)
        self.padding, self.dilation = n_of(padding, 2), n_of(dilation, 2)
        self.weight = nn.Parameter(
            torch.empty(out_channels, in_channels // groups, *self.kernel_size)
        )
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise weight and bias as nn.Conv2d does."""
        nn.Conv2d.reset_parameters(self)  # type: ignore[arg-type]

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )

    def extra_repr(self) -> str:
        said = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        said += f", padding={self.padding}" if self.padding != (0, 0) else ""
        said += f", dilation={self.dilation}" if self.dilation != (1, 1) else ""
        said += f", groups={self.groups}" if self.groups != 1 else ""
        return said + (", bias=False" if self.bias is None else "")
