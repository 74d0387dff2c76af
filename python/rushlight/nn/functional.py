"""`nn.functional`: the functions behind the layers, in PyTorch's names and signatures.

All computing is done by ops of the table. A function whose signature is the op's own is the op
itself (`functional=` in the table); the others translate flags such as `inplace`, `reduction` and
`return_indices` into the op that is meant. Losses stand in `_losses.py` and `_margin_losses.py`,
dropout in `_dropout.py`, pooling in `_pool.py`, resampling in `_resample.py`.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor as Tensor, _warnings
from rushlight._library.offers import (  # PyTorch has them here, too
    handle_torch_function as handle_torch_function,
    has_torch_function as has_torch_function,
    has_torch_function_unary as has_torch_function_unary,
    has_torch_function_variadic as has_torch_function_variadic,
)
from rushlight._names.listed import dir_of as _listed
from rushlight._table import ops

from . import grad  # noqa: F401  # PyTorch has it here, too
from ._arguments import (  # noqa: F401
    _dims,
    _list_with_default,
    _pair,
    _probability,
    _single,
    _triple,
)
from ._attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward as multi_head_attention_forward,
)
from ._dropout import (
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
)
from ._losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    ctc_loss as ctc_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    poisson_nll_loss as poisson_nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from ._margin_losses import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from ._pool import (
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices,
    max_pool3d as max_pool3d,
    max_pool3d_with_indices as max_pool3d_with_indices,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from ._products import (
    ScalingType as ScalingType,
    SwizzleType as SwizzleType,
    grouped_mm as grouped_mm,
    linear_cross_entropy as linear_cross_entropy,
    scaled_grouped_mm as scaled_grouped_mm,
    scaled_mm as scaled_mm,
)
from ._resample import (
    GRID_SAMPLE_INTERPOLATION_MODES as GRID_SAMPLE_INTERPOLATION_MODES,
    GRID_SAMPLE_PADDING_MODES as GRID_SAMPLE_PADDING_MODES,
    interpolate as interpolate,
    upsample as upsample,
    upsample_bilinear as upsample_bilinear,
    upsample_nearest as upsample_nearest,
)

if TYPE_CHECKING:
    # Some stand below with more arguments.
    from rushlight._functional import *  # noqa: F403  # pyright: ignore[reportAssignmentType]


# Functions that are ops: the table says which.
globals().update({n: f for n, f in vars(_C._functional).items() if not n.startswith("__")})


# ---- activations -------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return input.relu_() if inplace else ops.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.relu6(torch.tensor([-1.0, 8.0]))
        tensor([0., 6.])
    """
    return (ops.relu6_ if inplace else ops.relu6)(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, `negative_slope * x` elsewhere.

    Args:
        input: the tensor to compute with.
        negative_slope: the slope below zero.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    return (ops.leaky_relu_ if inplace else ops.leaky_relu)(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, `alpha * (exp(x) - 1)` elsewhere.

    Args:
        input: the tensor to compute with.
        alpha: minus the limit far below zero.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return (ops.elu_ if inplace else ops.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the fixed alpha and scale that keep mean 0 and variance 1.

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.selu(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return (ops.selu_ if inplace else ops.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, alpha * expm1(x / alpha) elsewhere.

    Args:
        input: the tensor to compute with.
        alpha: minus the limit far below zero.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return (ops.celu_ if inplace else ops.celu)(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """
    return (ops.silu_ if inplace else ops.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """
    return (ops.mish_ if inplace else ops.mish)(input)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [min_val, max_val].

    Args:
        input: the tensor to compute with.
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (ops.hardtanh_ if inplace else ops.hardtanh)(input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6.

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.hardswish(torch.tensor([-1.0, 4.0]))
        tensor([-0.3333,  4.0000])
    """
    return (ops.hardswish_ if inplace else ops.hardswish)(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6.

    Args:
        input: the tensor to compute with.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0]))
        tensor([0.0000, 0.5000])
    """
    return (ops.hardsigmoid_ if inplace else ops.hardsigmoid)(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above `threshold`, `value` elsewhere.

    Args:
        input: the tensor to compute with.
        threshold: the bound.
        value: what stands where the input is not above it.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.threshold(torch.tensor([0.5, 2.0]), 1.0, -1.0)
        tensor([-1.,  2.])
    """
    return (ops.threshold_ if inplace else ops.threshold)(input, threshold, value)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`leaky_relu` with a slope drawn from [lower, upper] in training, their mean otherwise.

    Args:
        input: the tensor to compute with.
        lower: the lower bound of the slope.
        upper: the upper bound of the slope.
        training: whether to drop at all.
        inplace: whether the result is written into the input.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.5, 0.5)
        tensor([-0.5000,  2.0000])
    """
    return (ops.rrelu_ if inplace else ops.rrelu)(input, lower, upper, training)


def _get_softmax_dim(name, ndim, stacklevel=None):
    """The dim that softmax took before it was an argument, with PyTorch's warning."""
    _warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated: give dim=",
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """exp(x) over its sum along `dim`; `dtype` is cast to first.

    Args:
        input: the tensor to compute with.
        dim: the dimension to work along, counted from the end where negative.
        dtype: the dtype of the parameters; the default dtype if None.

    Example:
        >>> torch.nn.functional.softmax(torch.tensor([[0.0, 0.0], [1.0, 3.0]]), dim=1)
        tensor([[0.5000, 0.5000],
                [0.1192, 0.8808]])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", _dims("softmax", input))
    return ops.softmax(input, dim) if dtype is None else ops.softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """`softmax` of -x.

    Args:
        input: the tensor to compute with.
        dim: the dimension to work along, counted from the end where negative.
        dtype: the dtype of the parameters; the default dtype if None.

    Example:
        >>> torch.nn.functional.softmin(torch.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", _dims("softmin", input))
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _C.dtype | None = None
) -> Tensor:
    """The logarithm of `softmax`, computed without losing digits.

    Args:
        input: the tensor to compute with.
        dim: the dimension to work along, counted from the end where negative.
        dtype: the dtype of the parameters; the default dtype if None.

    Example:
        >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", _dims("log_softmax", input))
    return (
        ops.log_softmax(input, dim) if dtype is None else ops.log_softmax(input, dim, dtype=dtype)
    )


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A differentiable sample of the categorical distribution with these logits.

    `hard` makes it one-hot in the forward pass, with the soft sample's gradient.

    Args:
        logits: logarithms of probabilities, up to a constant.
        tau: the temperature: small ones give nearly one-hot samples.
        hard: whether samples are one-hot; the gradient is that of the soft ones.
        eps: accepted, without effect.
        dim: the dimension to work along, counted from the end where negative.

    Example:
        >>> torch.nn.functional.gumbel_softmax(torch.tensor([[0.0, 100.0]]), hard=True)
        tensor([[0., 1.]])
    """
    if eps != 1e-10:
        _warnings.warn("`eps` parameter is deprecated and has no effect.")
    return ops.gumbel_softmax(logits, tau, hard, dim)


# ---- windows and edges -------------------------------------------------------------------------


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The inverse of `unfold`: adds up overlapping windows into an image of `output_size`.

    Args:
        input: the tensor to compute with.
        output_size: the spatial sizes of the result.
        kernel_size: the size of a window, one number or one for each dimension.
        dilation: the distance between elements of a window, for each dimension.
        padding: how many zeros stand on either side of each spatial dimension.
        stride: the step from one window to the next, in elements, for each dimension.

    Example:
        >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (2, 2), (1, 2))
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of an image as the columns of a matrix.

    Args:
        input: the tensor to compute with.
        kernel_size: the size of a window, one number or one for each dimension.
        dilation: the distance between elements of a window, for each dimension.
        padding: how many zeros stand on either side of each spatial dimension.
        stride: the step from one window to the next, in elements, for each dimension.

    Example:
        >>> torch.nn.functional.unfold(torch.arange(9.0).view(1, 1, 3, 3), 2)
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """
    return ops.im2col(input, kernel_size, dilation, padding, stride)


# Activations that PyTorch has as functions of Python: programs hang attributes on them.
for _name in ("sigmoid", "softsign", "tanh", "tanhshrink"):
    globals()[_name] = _C._Offered(globals()[_name])
    globals()[_name].__module__ = __name__

# Calls are offered to function modes and to arguments with __torch_function__ first.
for _name, _function in list(globals().items()):
    if isinstance(_function, types.FunctionType) and not _name.startswith("_"):
        _function.__module__ = __name__  # by which files name it
        globals()[_name] = _C._Offered(_function)

__dir__ = _listed(__name__, "ops sigmoid_ tanh_ types")
