"""Convolutions and transposed convolutions of 1, 2 and 3 spatial dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor
from rushlight._warnings import warn

from .. import functional as F
from .. import init
from ..parameter import new_parameter
from .module import Module
from .utils import (  # noqa: F401  # PyTorch has them here, too
    _documented,
    _ntuple,
    _pair,
    _reverse_repeat_tuple,
    _single,
    _triple,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.types import Device

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _check_padding(padding: str | Sequence[int], mode: str, stride: Sequence[int]) -> None:
    """ValueError for a padding, or a mode of it, that there is not."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError(
                "padding='same' is not supported for strided convolutions, whose results are "
                f"smaller (stride={tuple(stride)}): give numbers"
            )
    if mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{mode}'"
        )


class _ConvNd(Module):
    """Settings and parameters of all convolutions.

    `weight` has shape (out_channels, in_channels / groups, *kernel_size), transposed ones have
    (in_channels, out_channels / groups, *kernel_size); weight and bias start from U(-k, k) with
    k = 1 / √fan_in.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed,
        output_padding: tuple[int, ...],
        groups,
        bias,
        padding_mode,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(
                    f"{name} must be divisible by groups: {type(self).__name__} cannot share "
                    f"{channels} channels between {groups} groups"
                )
        _check_padding(padding, padding_mode, stride)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = kernel_size, stride
        self.padding, self.dilation, self.transposed = padding, dilation, transposed
        self.output_padding, self.groups = output_padding, groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice: Any = self._padding_for_pad()
        sides = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        made = {"device": device, "dtype": dtype}
        self.weight = new_parameter((sides[0], sides[1] // groups, *kernel_size), **made)
        self.register_parameter("bias", new_parameter(out_channels, bias, **made))
        self.reset_parameters()

    def _padding_for_pad(self):
        """The padding as `F.pad` takes it; "same" pads more at the end where it is uneven."""
        if self.padding == "valid":
            return [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            sizes = []
            for dilation, kernel in zip(
                reversed(self.dilation), reversed(self.kernel_size), strict=False
            ):
                total = dilation * (kernel - 1)
                sizes += [total // 2, total - total // 2]
            return sizes
        return _reverse_repeat_tuple(self.padding, 2)

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        # Without inputs nothing is drawn.
        init._draw_affine_(self.weight, self.bias if self.weight.numel() else None)

    def extra_repr(self) -> str:
        ones, zeros = (1,) * len(self.stride), (0,) * len(self.stride)
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """Cross-correlation with learnt kernels.

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size, stride, dilation: an int for all spatial dimensions, or one for each.
        padding: the same, or "valid" (none) or "same" (the output has the input's size).
        groups: channels are split into as many groups, convolved separately.
        bias: whether a number is added to each channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
    """

    _dimensions = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        expand = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            padding if isinstance(padding, str) else expand(padding),
            expand(dilation),
            False,
            expand(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _convolve(self, *args):
        raise NotImplementedError

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            sizes = self._reversed_padding_repeated_twice
            input = F.pad(input, sizes, mode=self.padding_mode)
            padding = (0,) * self._dimensions
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    __doc__ = _documented(
        _Conv,
        """Shape: (N, C, L) or (C, L), with C in_channels, to the same with out_channels.
            A spatial size L becomes
            floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1.

        Example:
            >>> torch.nn.Conv1d(3, 8, 3)(torch.zeros(2, 3, 10)).shape
            torch.Size([2, 8, 8])
        """,
    )
    _dimensions = 1

    def _convolve(self, *args):
        return F.conv1d(*args)


class Conv2d(_Conv):
    __doc__ = _documented(
        _Conv,
        """Shape: (N, C, H, W) or (C, H, W), with C in_channels, to the same with out_channels.
            A spatial size L becomes
            floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1.

        Example:
            >>> torch.nn.Conv2d(3, 8, kernel_size=3, padding=1)(torch.zeros(2, 3, 32, 32)).shape
            torch.Size([2, 8, 32, 32])
        """,
    )
    _dimensions = 2

    def _convolve(self, *args):
        return F.conv2d(*args)


class Conv3d(_Conv):
    __doc__ = _documented(
        _Conv,
        """Shape: (N, C, D, H, W) or (C, D, H, W), with C in_channels, to the same with
            out_channels. A spatial size L becomes
            floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1.

        Example:
            >>> torch.nn.Conv3d(3, 8, 3)(torch.zeros(2, 3, 4, 4, 4)).shape
            torch.Size([2, 8, 2, 2, 2])
        """,
    )
    _dimensions = 3

    def _convolve(self, *args):
        return F.conv3d(*args)


class _ConvTransposeNd(_ConvNd):
    """The transpose (the gradient) of a convolution, which enlarges where that shrinks.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, groups, bias, dilation: those of
            the convolution; `padding` makes the output smaller.
        output_padding: added to one side of the output.
        padding_mode: only "zeros".
        device: where parameters live; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.
    """

    _dimensions = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        expand = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            expand(padding),
            expand(dilation),
            True,
            expand(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """The output padding that gives an output of `output_size`."""
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        extra = input.dim() - n  # batch (if any) and channels
        output_size = list(output_size)
        if len(output_size) == n + extra:
            output_size = output_size[extra:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                f"or {n + extra} elements (got {len(output_size)})"
            )
        smallest, largest = [], []
        for d in range(n):
            reach = (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1)
            size = (input.size(d + extra) - 1) * stride[d] - 2 * padding[d] + reach + 1
            smallest.append(size)
            largest.append(size + stride[d] - 1)
        for size, low, high in zip(output_size, smallest, largest, strict=False):
            if not low <= size <= high:
                raise ValueError(
                    f"ConvTranspose{n}D: requested an output size of {output_size}, but an input "
                    f"of {input.size()[2:]} can become {smallest} at least and {largest} at most"
                )
        return [size - low for size, low in zip(output_size, smallest, strict=False)]

    def _convolve(self, *args):
        raise NotImplementedError

    def forward(self, input: Tensor, output_size=None):
        output_padding = self._output_padding(
            input,
            output_size,
            self.stride,
            self.padding,
            self.kernel_size,
            self._dimensions,
            self.dilation,
        )
        return self._convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


class _ConvTransposeMixin(_ConvTransposeNd):
    """An old name of the class above, which programs derive from."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            "`_ConvTransposeMixin` is a deprecated internal class: derive from the layers "
            "themselves",
            FutureWarning,
        )
        super().__init__(*args, **kwargs)


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = _documented(
        _ConvTransposeNd,
        """Shape: (N, C, L) or (C, L), with C in_channels, to the same with out_channels.
            A spatial size L becomes
            (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

        Example:
            >>> torch.nn.ConvTranspose1d(3, 8, 2, stride=2)(torch.zeros(2, 3, 10)).shape
            torch.Size([2, 8, 20])
        """,
    )
    _dimensions = 1

    def _convolve(self, *args):
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = _documented(
        _ConvTransposeNd,
        """Shape: (N, C, H, W) or (C, H, W), with C in_channels, to the same with out_channels.
            A spatial size L becomes
            (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

        Example:
            >>> torch.nn.ConvTranspose2d(3, 8, 2, stride=2)(torch.zeros(2, 3, 4, 4)).shape
            torch.Size([2, 8, 8, 8])
        """,
    )
    _dimensions = 2

    def _convolve(self, *args):
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = _documented(
        _ConvTransposeNd,
        """Shape: (N, C, D, H, W) or (C, D, H, W), with C in_channels, to the same with
            out_channels. A spatial size L becomes
            (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

        Example:
            >>> torch.nn.ConvTranspose3d(3, 8, 2, stride=2)(torch.zeros(2, 3, 2, 2, 2)).shape
            torch.Size([2, 8, 4, 4, 4])
        """,
    )
    _dimensions = 3

    def _convolve(self, *args):
        return F.conv_transpose3d(*args)
