"""Linear layers, norms, embeddings and padded convolutions as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.linear(input, weight, bias)


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def layer_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.group_norm(input, num_groups, weight, bias, eps)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if max_norm is not None:
        with no_grad():
            torch.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    place = -1
    if padding_idx is not None:
        place = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    return torch.embedding(weight, input, place, scale_grad_by_freq, sparse)


def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor] = None
) -> Tensor:
    return torch.bilinear(input1, input2, weight, bias)


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = torch.pad(squares, [0, 0, before, after])
        means = torch.avg_pool2d(padded, [size, 1], [1]).squeeze(1)
    else:
        sizes = input.size()
        rows = squares.view([sizes[0], 1, sizes[1], sizes[2], -1])
        padded = torch.pad(rows, [0, 0, 0, 0, before, after])
        means = torch.avg_pool3d(padded, [size, 1, 1], [1]).squeeze(1).view(sizes)
    return input / means.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    size = torch.norm(input, p, [dim], True).clamp_min(eps).expand_as(input)
    return input / size


def rms_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    eps: Optional[float] = None,
) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    if max_norm is not None:
        torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights needs mode='sum'")
    number = 0 if mode == "sum" else 1
    if mode == "max":
        number = 2
    elif mode != "sum" and mode != "mean":
        raise ValueError("mode has to be one of sum, mean or max")
    rows = input
    starts = torch.zeros([0], dtype=4)
    weights = per_sample_weights
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None")
        starts = torch.arange(0, input.numel(), input.size(1), dtype=4, device=input.device)
        rows = input.reshape(-1)
        if weights is not None:
            weights = weights.reshape(-1)
    elif offsets is not None:
        starts = offsets
    else:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    out = torch.embedding_bag(
        weight,
        rows,
        starts,
        scale_grad_by_freq,
        number,
        sparse,
        weights,
        include_last_offset,
        padding_idx,
    )
    return out[0]


def conv1d_reflected(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: List[int],
    dilation: List[int],
    groups: int,
    mode: str,
    around: List[int],
) -> Tensor:
    padded = torch.pad(input, around, mode)
    return torch.conv1d(padded, weight, bias, stride, [0], dilation, groups)


def conv2d_reflected(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: List[int],
    dilation: List[int],
    groups: int,
    mode: str,
    around: List[int],
) -> Tensor:
    padded = torch.pad(input, around, mode)
    return torch.conv2d(padded, weight, bias, stride, [0, 0], dilation, groups)


def conv3d_reflected(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: List[int],
    dilation: List[int],
    groups: int,
    mode: str,
    around: List[int],
) -> Tensor:
    padded = torch.pad(input, around, mode)
    return torch.conv3d(padded, weight, bias, stride, [0, 0, 0], dilation, groups)
