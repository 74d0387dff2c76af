"""Activations and softmax as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.relu_(input)
    return torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.relu6_(input)
    return torch.relu6(input)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.selu_(input)
    return torch.selu(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.hardswish_(input)
    return torch.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.hardsigmoid_(input)
    return torch.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.silu_(input)
    return torch.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.mish_(input)
    return torch.mish(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.elu_(input, alpha)
    return torch.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.celu_(input, alpha)
    return torch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.leaky_relu_(input, negative_slope)
    return torch.leaky_relu(input, negative_slope)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.threshold_(input, threshold, value)
    return torch.threshold(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    if inplace:
        return torch.hardtanh_(input, min_val, max_val)
    return torch.hardtanh(input, min_val, max_val)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    if inplace:
        return torch.rrelu_(input, lower, upper, training)
    return torch.rrelu(input, lower, upper, training)


def logsigmoid(input: Tensor) -> Tensor:
    return torch.log_sigmoid(input)


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def _last_dim(ndim: int) -> int:
    return 0 if ndim == 0 or ndim == 1 or ndim == 3 else 1


def softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    if dim is None:
        dim = _last_dim(input.dim())
    return torch.softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    if dim is None:
        dim = _last_dim(input.dim())
    return torch.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None
) -> Tensor:
    if dim is None:
        dim = _last_dim(input.dim())
    return torch.log_softmax(input, dim, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    noise = torch.empty_like(logits).exponential_().log()
    scores = torch.softmax((logits - noise) / tau, dim)
    if hard:
        largest = scores.argmax(dim, True)
        ones = torch.zeros_like(scores).scatter(dim, largest, 1.0)
        scores = ones + (scores - scores.detach())
    return scores
