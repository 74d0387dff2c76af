"""Pooling as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _root_of_sums(powers: Tensor, kernel_size: List[int], norm_type: float) -> Tensor:
    count = 1
    for one in kernel_size:
        count = count * one
    return (torch.sign(powers) * torch.relu(torch.abs(powers))).mul(count).pow(1.0 / norm_type)


def max_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call max_pool1d_with_indices")
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_max_pool1d(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call adaptive_max_pool1d_with_indices")
    return torch.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)


def lp_pool1d(
    input: Tensor,
    norm_type: number,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    powers = torch.avg_pool1d(input.pow(float(norm_type)), kernel_size, steps, [0], ceil_mode)
    return _root_of_sums(powers, kernel_size, float(norm_type))


def max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call max_pool2d_with_indices")
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_max_pool2d(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call adaptive_max_pool2d_with_indices")
    return torch.adaptive_max_pool2d(input, output_size)[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool2d(input, output_size)


def lp_pool2d(
    input: Tensor,
    norm_type: number,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    powers = torch.avg_pool2d(input.pow(float(norm_type)), kernel_size, steps, [0, 0], ceil_mode)
    return _root_of_sums(powers, kernel_size, float(norm_type))


def max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call max_pool3d_with_indices")
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch.adaptive_avg_pool3d(input, output_size)


def adaptive_max_pool3d(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tensor:
    if return_indices:
        raise RuntimeError("return_indices: call adaptive_max_pool3d_with_indices")
    return torch.adaptive_max_pool3d(input, output_size)[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool3d(input, output_size)


def lp_pool3d(
    input: Tensor,
    norm_type: number,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    powers = torch.avg_pool3d(input.pow(float(norm_type)), kernel_size, steps, [0, 0, 0], ceil_mode)
    return _root_of_sums(powers, kernel_size, float(norm_type))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes: List[int] = []
    if output_size is None:
        for d in range(1):
            size = (input.size(d - 1) - 1) * steps[d] + kernel_size[d] - 2 * padding[d]
            sizes.append(size)
    else:
        sizes = output_size[len(output_size) - 1 :]
    out = torch.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [sizes[0], 1])
    return out.squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes: List[int] = []
    if output_size is None:
        for d in range(2):
            size = (input.size(d - 2) - 1) * steps[d] + kernel_size[d] - 2 * padding[d]
            sizes.append(size)
    else:
        sizes = output_size[len(output_size) - 2 :]
    return torch.max_unpool2d(input, indices, sizes)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    sizes: List[int] = []
    if output_size is None:
        for d in range(3):
            size = (input.size(d - 3) - 1) * steps[d] + kernel_size[d] - 2 * padding[d]
            sizes.append(size)
    else:
        sizes = output_size[len(output_size) - 3 :]
    return torch.max_unpool3d(input, indices, sizes, steps, padding)
