"""`nn.init`: fills parameters with initial values.

Every function works in place without recording gradients and returns its tensor. The random
numbers are drawn as PyTorch draws them, so that one seed gives the same weights.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import rushlight
from rushlight import _C, Tensor
from rushlight._library.offers import handle_torch_function, has_torch_function_unary
from rushlight._texts.docstrings import arguments
from rushlight._warnings import warn

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_F = TypeVar("_F", bound=Callable[..., Any])

# Those that are offered to `__torch_function__`, as PyTorch's are.
_OFFERED = ("constant_", "kaiming_uniform_", "normal_", "uniform_")
# Rounds after which `trunc_normal_` gives up: limits so far out that hardly a number is accepted.
_TRUNCATION_ROUNDS = 100_000


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor on the standard deviation that keeps the variance through a nonlinearity.

    `param` is the negative slope of "leaky_relu".

    Args:
        nonlinearity: the name of a function of `nn.functional`, such as "relu" or "tanh".
        param: the negative slope of "leaky_relu".

    Example:
        >>> torch.nn.init.calculate_gain("relu")
        1.4142135623730951
    """
    convolutions = ("conv", "conv_transpose")
    linear = {"linear", "sigmoid", *(f"{c}{n}d" for c in convolutions for n in (1, 2, 3))}
    if nonlinearity in linear:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: _C.Generator | None = None
) -> Tensor:
    """Fill with numbers from U(a, b).

    Args:
        tensor: the tensor to fill, which is returned.
        a: the lower bound.
        b: the upper bound.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> weight = torch.nn.init.uniform_(torch.empty(100), a=-1.0, b=1.0)
        >>> bool((weight.abs() <= 1).all())
        True
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(uniform_, (tensor,), tensor, a, b, generator=generator)
    with rushlight.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: _C.Generator | None = None
) -> Tensor:
    """Fill with numbers from N(mean, std²).

    Args:
        tensor: the tensor to fill, which is returned.
        mean: the mean of the distribution.
        std: the standard deviation of the distribution.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> torch.nn.init.normal_(torch.empty(3, 5)).shape
        torch.Size([3, 5])
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(normal_, (tensor,), tensor, mean, std, generator=generator)
    with rushlight.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: _C.Generator | None = None,
) -> Tensor:
    """Fill with numbers from N(mean, std²) limited to [a, b].

    Candidates come from the normal distribution where at least 30 % of them fall into the limits,
    else uniformly from the limits, and are drawn again until all are accepted.

    Args:
        tensor: the tensor to fill, which is returned.
        mean: the mean of the distribution.
        std: the standard deviation of the distribution.
        a: the lower bound.
        b: the upper bound.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> weight = torch.nn.init.trunc_normal_(torch.empty(100), std=1.0, a=-1.0, b=1.0)
        >>> bool((weight.abs() <= 1).all())
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            f"trunc_normal_: mean is more than 2 std from [{a}, {b}], where N({mean}, {std}²) has "
            "almost nothing"
        )

    def normal_cdf(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if tensor.is_meta:  # nothing can be drawn, nor refused
        return tensor
    from_normal = normal_cdf(b) - normal_cdf(a) >= 0.3
    peak = min(max(mean, a), b)
    with rushlight.no_grad():
        waiting = None
        for _ in range(_TRUNCATION_ROUNDS):
            drawn = rushlight.empty_like(tensor)
            if from_normal:
                drawn.normal_(mean, std, generator=generator)
                refused = (drawn < a) | (drawn > b)
            else:
                drawn.uniform_(a, b, generator=generator)
                ratio = ((peak - mean) ** 2 - (drawn - mean) ** 2) / (2 * std * std)
                level = rushlight.empty_like(tensor).uniform_(0.0, 1.0, generator=generator)
                refused = level.log() > ratio
            if waiting is None:
                tensor.copy_(drawn)
                waiting = refused
            else:
                tensor.copy_(rushlight.where(waiting, drawn, tensor))
                waiting = waiting & refused
            if not waiting.any():
                return tensor
    raise RuntimeError(
        f"trunc_normal_: no numbers of N({mean}, {std}²) were found in [{a}, {b}] "
        f"in {_TRUNCATION_ROUNDS} rounds"
    )


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Args:
        tensor: the tensor to fill, which is returned.
        val: the value.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(constant_, (tensor,), tensor, val)
    with rushlight.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Args:
        tensor: the tensor to fill, which is returned.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Args:
        tensor: the tensor to fill, which is returned.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    with rushlight.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Args:
        tensor: the tensor to fill, which is returned.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with rushlight.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it passes its input channels through unchanged.

    Args:
        tensor: the tensor to fill, which is returned.
        groups: the groups of the convolution.

    Example:
        >>> weight = torch.nn.init.dirac_(torch.empty(1, 1, 3))
        >>> torch.nn.functional.conv1d(torch.tensor([[[1.0, 2.0, 3.0]]]), weight, padding=1)
        tensor([[[1., 2., 3.]]])
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    share = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with rushlight.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(share, sizes[1])):
                place = (group * share + channel, channel, *centre)
                tensor[place] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    _check_matrix(tensor, "Fan in and fan out can not be computed for tensor")
    outputs, inputs, *field = tensor.shape
    return inputs * math.prod(field), outputs * math.prod(field)


def _check_matrix(tensor: Tensor, complaint: str) -> None:
    """ValueError for less than a matrix."""
    if tensor.dim() < 2:
        raise ValueError(
            f"{complaint} with fewer than 2 dimensions: the shape is {tensor.shape}; for a "
            "vector use nn.init.uniform_ or normal_"
        )


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported: it is 'fan_in' or 'fan_out'")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: _C.Generator | None = None
) -> Tensor:
    """Fill from U(-a, a) with a = gain √(6 / (fan_in + fan_out)).

    Args:
        tensor: the tensor to fill, which is returned.
        gain: a factor; see `calculate_gain`.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> weight = torch.nn.init.xavier_uniform_(torch.empty(3, 3))
        >>> bool((weight.abs() <= 1).all())
        True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: _C.Generator | None = None
) -> Tensor:
    """Fill from N(0, std²) with std = gain √(2 / (fan_in + fan_out)).

    Args:
        tensor: the tensor to fill, which is returned.
        gain: a factor; see `calculate_gain`.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> torch.nn.init.xavier_normal_(torch.empty(3, 5)).shape
        torch.Size([3, 5])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _draw_affine_(weight: Tensor, bias: Tensor | None) -> None:
    """New values of a layer's weight and bias, from U(-k, k) with k = 1 / √fan_in."""
    kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = _calculate_fan_in_and_fan_out(weight)
        k = 1 / math.sqrt(fan_in) if fan_in else 0.0
        uniform_(bias, -k, k)


def _is_empty(tensor: Tensor) -> bool:
    """Whether a dimension has size 0: there is nothing to fill, which is told."""
    if 0 not in tensor.shape:
        return False
    warn("Initializing zero-element tensors is a no-op")
    return True


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: _C.Generator | None = None,
) -> Tensor:
    """Fill from U(-bound, bound) with bound = gain √(3 / fan).

    Args:
        a: negative slope of the leaky ReLU that follows.
        mode: "fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: see `calculate_gain`.
        tensor: the tensor to fill, which is returned.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> torch.nn.init.kaiming_uniform_(torch.empty(3, 5), nonlinearity="relu").shape
        torch.Size([3, 5])
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(
            kaiming_uniform_, (tensor,), tensor, a, mode, nonlinearity, generator=generator
        )
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: _C.Generator | None = None,
) -> Tensor:
    """Fill from N(0, std²) with std = gain / √fan; see `kaiming_uniform_`.

    Args:
        tensor: the tensor to fill, which is returned.
        a: the slope below zero of the leaky ReLU that follows.
        mode: "fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: what follows; see `calculate_gain`.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> torch.nn.init.kaiming_normal_(torch.empty(3, 5), nonlinearity="relu").shape
        torch.Size([3, 5])
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: _C.Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain`; later dimensions count as one.

    Args:
        tensor: the tensor to fill, which is returned.
        gain: a factor of the matrix.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> weight = torch.nn.init.orthogonal_(torch.empty(3, 3))
        >>> torch.allclose(weight @ weight.T, torch.eye(3), atol=1e-5)
        True
    """
    if tensor.dim() < 2:
        raise ValueError(
            "Only tensors with 2 or more dimensions can be orthogonal, not one with "
            f"{tensor.ndimension()}"
        )
    if 0 in tensor.shape:
        return tensor
    rows, columns = tensor.size(0), math.prod(tensor.shape[1:])
    drawn = tensor.new_empty(rows, columns).normal_(generator=generator)
    q, r = rushlight.linalg.qr(drawn.T if rows < columns else drawn)
    # The signs of r's diagonal make the distribution uniform over orthogonal matrices.
    signed = q * r.diagonal().sign()
    with rushlight.no_grad():
        tensor.view(rows, columns).copy_(signed.T if rows < columns else signed)
        return tensor.mul_(gain)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: _C.Generator | None = None
) -> Tensor:
    """Fill a matrix from N(0, std²), then set this fraction of each column to zero.

    Args:
        tensor: the tensor to fill, which is returned.
        sparsity: which fraction of a column is zero.
        std: the standard deviation of the rest.
        generator: where random numbers come from; the default generator if None.

    Example:
        >>> int((torch.nn.init.sparse_(torch.empty(10, 2), 0.3) == 0).sum())
        6
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * len(tensor))
    with rushlight.no_grad():
        tensor.normal_(std=std, generator=generator)
        for column in tensor.T:
            column[rushlight.randperm(len(column))[:zeros]] = 0
    return tensor


def _old_name(function: _F) -> _F:
    """The name without the underscore, which warns."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def call_new(*args, **kwargs):
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    call_new.__name__ = old
    known = arguments(inspect.cleandoc(function.__doc__ or ""))
    call_new.__doc__ = "\n".join(
        [
            f"The old name of `{new}`.",
            "",
            "Args:",
            *known.values(),
            "",
            f"For an example see `{new}`.",
        ]
    )
    return call_new  # type: ignore[return-value]


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)


# ---- under the names of PyTorch's inner functions

_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_fill_ = constant_
_no_grad_zero_ = zeros_
