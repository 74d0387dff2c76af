"""Lowerings of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def batched(g: Builder, x: Value, dims: int) -> tuple[Value, bool]:
    """An input with a batch dimension, and whether that had to be put in."""
    if not x.dtype.is_floating_point:
        raise Unsupported(f"an input of {x.dtype}: ONNX has it for floating-point numbers alone")
    return (g.unsqueeze(x, 0), True) if x.rank == dims + 1 else (x, False)


def each(numbers: Sequence[int], dims: int) -> list[int]:
    """A number for each dimension, where one may stand for all."""
    return list(numbers) * dims if len(numbers) == 1 else list(numbers)


def _convolution(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int] | str,
    dilation: Sequence[int],
    groups: int,
) -> Value:
    dims = weight.rank - 2
    x, alone = batched(g, input, dims)
    stride, dilation = each(stride, dims), each(dilation, dims)
    if isinstance(padding, str):
        reach = [d * (k - 1) for d, k in zip(dilation, weight.sizes[2:], strict=True)]
        less = [r // 2 if padding == "same" else 0 for r in reach]
        more = [r - r // 2 if padding == "same" else 0 for r in reach]
    else:
        less = more = each(padding, dims)
    out = g.Conv(
        x,
        weight,
        bias,
        strides=stride,
        pads=[*less, *more],
        dilations=dilation,
        group=groups,
    )
    return g.squeeze(out, 0) if alone else out


@lowers("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
@lowers("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Any,
    dilation: Sequence[int],
    groups: int,
) -> Value:
    return _convolution(g, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> Value:
    dims = weight.rank - 2
    x, alone = batched(g, input, dims)
    out = g.ConvTranspose(
        x,
        weight,
        bias,
        strides=each(stride, dims),
        pads=each(padding, dims) * 2,
        output_padding=each(output_padding, dims),
        group=groups,
        dilations=each(dilation, dims),
    )
    return g.squeeze(out, 0) if alone else out


lowers(
    "aten.conv_transpose1d.default",
    "aten.conv_transpose2d.input",
    "aten.conv_transpose3d.input",
)(_transposed)


@lowers("aten.convolution.default", "aten._convolution.default", "aten._convolution.deprecated")
def convolution(
    g: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    if transposed:
        return _transposed(
            g, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return _convolution(g, input, weight, bias, stride, padding, dilation, groups)


@lowers("aten.im2col.default")
def im2col(
    g: Builder,
    self: Value,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    x, alone = batched(g, self, 2)
    n, c, height, width = x.sizes
    if not (isinstance(height, int) and isinstance(width, int)):
        raise Unsupported("the size of an image is not constant")
    (h, w), (dh, dw), (ph, pw), (sh, sw) = kernel_size, dilation, padding, stride
    x = g.Pad(x, [0, 0, ph, pw, 0, 0, ph, pw])
    height, width = height + 2 * ph, width + 2 * pw
    down = range(0, height - dh * (h - 1), sh)
    across = range(0, width - dw * (w - 1), sw)
    rows = [[top + i * dh for top in down] for i in range(h)]
    columns = [[left + j * dw for left in across] for j in range(w)]
    # N, C, kernel's row, row, kernel's column, column
    x = g.Gather(g.Gather(x, g.int64(rows), axis=2), g.int64(columns), axis=4)
    x.shape = (n, c, h, len(down), w, len(across))
    x = g.transpose(x, [0, 1, 2, 4, 3, 5])
    sizes = [c * h * w, len(down) * len(across)]
    return g.reshape(x, sizes if alone else [n, *sizes])


@lowers("aten.col2im.default")
def col2im(
    g: Builder,
    self: Value,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    x, alone = (g.unsqueeze(self, 0), True) if self.rank == 2 else (self, False)
    out = g.Col2Im(
        x,
        list(output_size),
        list(kernel_size),
        dilations=list(dilation),
        pads=[*padding, *padding],
        strides=list(stride),
    )
    return g.squeeze(out, 0) if alone else out
