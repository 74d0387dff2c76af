"""`nn.functional`: the functions behind the layers, in PyTorch's names and signatures.

All computing is done by ops of the table. A function whose signature is the op's own is the op
itself (`_OPS`, fetched on first use); the others translate flags such as `inplace`, `reduction` and
`return_indices` into the op that is meant.
"""

import math
import types
import warnings

import rushlight
from rushlight import _C
from rushlight._table import ops

from ._pool import (  # noqa: F401
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._resample import (  # noqa: F401
    GRID_SAMPLE_INTERPOLATION_MODES,
    GRID_SAMPLE_PADDING_MODES,
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from .modules import _settings
from .modules.utils import _list_with_default, _pair

# Functions that are ops: the name here, the name of the op.
_NAMES = (
    "linear bilinear conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
    "conv_transpose3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d gelu relu_ celu_ elu_ "
    "selu_ leaky_relu_ hardtanh_ threshold_ rrelu_ prelu hardshrink softplus softshrink "
    "cosine_similarity pairwise_distance pdist pixel_shuffle pixel_unshuffle channel_shuffle "
    "native_channel_shuffle one_hot scaled_dot_product_attention"
)
_OPS = {name: name for name in _NAMES.split(" ")}
_OPS["logsigmoid"] = "log_sigmoid"


def __getattr__(name):
    if name == "multi_head_attention_forward":
        from ._attention import multi_head_attention_forward

        return multi_head_attention_forward
    if name in _OPS:
        function = getattr(ops, _OPS[name])
        globals()[name] = function
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_OPS])


# ---- activations -------------------------------------------------------------------------------


def relu(input, inplace=False):
    """max(x, 0)."""
    return input.relu_() if inplace else ops.relu(input)


def relu6(input, inplace=False):
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where it is positive, `negative_slope * x` elsewhere."""
    return (ops.leaky_relu_ if inplace else ops.leaky_relu)(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    """x where it is positive, `alpha * (exp(x) - 1)` elsewhere."""
    return (ops.elu_ if inplace else ops.elu)(input, alpha)


def selu(input, inplace=False):
    """`elu` with the fixed alpha and scale that keep mean 0 and variance 1."""
    return (ops.selu_ if inplace else ops.selu)(input)


def celu(input, alpha=1.0, inplace=False):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    return (ops.celu_ if inplace else ops.celu)(input, alpha)


def silu(input, inplace=False):
    """x * sigmoid(x)."""
    return (ops.silu_ if inplace else ops.silu)(input)


def mish(input, inplace=False):
    """x * tanh(softplus(x))."""
    return (ops.mish_ if inplace else ops.mish)(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (ops.hardtanh_ if inplace else ops.hardtanh)(input, min_val, max_val)


def hardswish(input, inplace=False):
    """x * relu6(x + 3) / 6."""
    return (ops.hardswish_ if inplace else ops.hardswish)(input)


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6."""
    return (ops.hardsigmoid_ if inplace else ops.hardsigmoid)(input)


def threshold(input, threshold, value, inplace=False):
    """x where it is above `threshold`, `value` elsewhere."""
    return (ops.threshold_ if inplace else ops.threshold)(input, threshold, value)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """`leaky_relu` with a slope drawn from [lower, upper] in training, their mean otherwise."""
    return (ops.rrelu_ if inplace else ops.rrelu)(input, lower, upper, training)


def glu(input, dim=-1):
    """The first half along `dim` times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return ops.glu(input, dim)


def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


def tanh(input):
    """The hyperbolic tangent."""
    return ops.tanh(input)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - ops.tanh(input)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def _softmax_dim(name, ndim, stacklevel):
    """The dim that softmax took before it was an argument, with PyTorch's warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) over its sum along `dim`; `dtype` is cast to first."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return ops.softmax(input, dim) if dtype is None else ops.softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax` of -x."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax`, computed without losing digits."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return (
        ops.log_softmax(input, dim) if dtype is None else ops.log_softmax(input, dim, dtype=dtype)
    )


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A differentiable sample of the categorical distribution with these logits.

    `hard` makes it one-hot in the forward pass, with the soft sample's gradient.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -rushlight.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = rushlight.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


# ---- dropout -----------------------------------------------------------------------------------


def dropout(input, p=0.5, training=True, inplace=False):
    """Set each element to zero with probability `p` and scale the others by 1 / (1 - p)."""
    _settings._probability(p)
    return (ops.dropout_ if inplace else ops.dropout)(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of `selu`'s results."""
    _settings._probability(p)
    return (ops.alpha_dropout_ if inplace else ops.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels."""
    _settings._probability(p)
    function = ops.feature_alpha_dropout_ if inplace else ops.feature_alpha_dropout
    return function(input, p, training)


def _feature_dropout(input, p, training, inplace):
    return (ops.feature_dropout_ if inplace else ops.feature_dropout)(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    _settings._probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _feature_dropout(input, p, training, inplace)
    result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W)."""
    _settings._probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and "
            "will result in an error in a future release. For 1D channel-wise dropout use "
            "dropout1d.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W)."""
    _settings._probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and "
            "will result in an error in a future release.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


# ---- normalisation -----------------------------------------------------------------------------


def _verify_batch_size(size):
    values = math.prod(size) // max(size[1], 1)
    if values == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel by its mean and variance, over the batch in training.

    In training the running values (if any) move by `momentum` towards the batch's.
    """
    if training:
        _verify_batch_size(input.size())
    return ops.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel of each sample."""
    if use_input_stats and math.prod(input.size()[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.size()}"
        )
    return ops.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalise over the last dimensions, whose sizes are `normalized_shape`."""
    return ops.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions."""
    return ops.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalise each of `num_groups` groups of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    _verify_batch_size(
        [input.size(0) * input.size(1) // num_groups, num_groups, *list(input.size()[2:])]
    )
    return ops.group_norm(input, num_groups, weight, bias, eps)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """x over the larger of its p-norm along `dim` and `eps`."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / denominator
    return rushlight.div(input, denominator, out=out)


# ---- lookup ------------------------------------------------------------------------------------


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """The rows of `weight` at the indices `input`.

    `padding_idx` names a row whose gradient stays zero; rows longer than `max_norm` are shortened
    in place first.
    """
    rows = weight.size(0)
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx >= rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        if padding_idx < -rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        with rushlight.no_grad():
            ops.embedding_renorm_(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


# ---- pooling -----------------------------------------------------------------------------------


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima of the rows of `weight` at bags of indices.

    Args:
        input: (bags, length), or all indices in one row with `offsets`, where the bags begin.
        mode: "sum", "mean" or "max".
        per_sample_weights: factors of the rows, of the shape of input ("sum" only).
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that counts for nothing and gets no gradient.
    """
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, "
            f"then it must have the same shape as the input ({list(input.shape)})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        step = max(input.size(1), 1)
        offsets = rushlight.arange(
            0, input.size(0) * step, step, dtype=input.dtype, device=input.device
        )
        if input.size(1) == 0:
            offsets = offsets.zero_()
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    modes = {"sum": 0, "mean": 1, "max": 2}
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if max_norm is not None:
        with rushlight.no_grad():
            ops.embedding_renorm_(weight, input, max_norm, norm_type)
    return ops.embedding_bag(
        weight,
        input,
        offsets.to(input.dtype),
        scale_grad_by_freq,
        modes[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x over (k + alpha * the mean square of `size` neighbouring channels) to the power beta."""
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input).flatten(2).unsqueeze(1)
    padded = ops.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2))
    means = ops.avg_pool2d(padded, (size, 1), 1).squeeze(1).reshape(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, L)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, H, W)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, D, H, W)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool3d_with_indices if return_indices else ops.max_pool3d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool2d(input, output_size):
    """The means of as many windows as `output_size` says; None keeps a dimension's size."""
    return ops.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size):
    """The means of as many windows as `output_size` says; None keeps a dimension's size."""
    return ops.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest values of `output_size` windows."""
    values, indices = ops.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool2d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool3d(input, size)
    return (values, indices) if return_indices else values


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, L)."""
    mean = ops.avg_pool1d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    return _lp_finish(mean, kernel_size, norm_type)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, H, W)."""
    mean = ops.avg_pool2d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    return _lp_finish(mean, math.prod(_pair(kernel_size)), norm_type)


def _lp_finish(mean, count, norm_type):
    return (mean.sign() * relu(mean.abs()) * count).pow(1.0 / norm_type)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The inverse of `unfold`: adds up overlapping windows into an image of `output_size`."""
    return ops.col2im(
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of an image as the columns of a matrix."""
    return ops.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def pad(input, pad, mode="constant", value=None):
    """Pad the last dimensions; `pad` has two sizes for each, the last dimension first.

    Modes: "constant" (with `value`), "reflect", "replicate", "circular". Negative sizes crop.
    """
    return ops.pad(input, pad, mode, value)


# ---- losses ------------------------------------------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(reduction, size_average=None, reduce=None):
    """The reduction that is meant, checked."""
    reduction = _settings._reduction(reduction, size_average, reduce)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _weighted(loss, weight, reduction):
    """A loss of each element, times its weight, reduced; the mean is over the weights' sum."""
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / weight.expand_as(loss).sum()


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """The cross entropy of logits and class indices or class probabilities.

    Args:
        input: logits, shape (C), (N, C) or (N, C, d1, …).
        target: int64 classes without the dimension C, or probabilities of the input's shape.
        weight: a factor for each class.
        ignore_index: a class that counts for nothing.
        label_smoothing: the part of each target that is spread over all classes.
    """
    return ops.cross_entropy_loss(
        input,
        target,
        weight,
        _reduction(reduction, size_average, reduce),
        ignore_index,
        label_smoothing,
    )


def nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    """The negative log likelihood of class indices; `input` holds log probabilities."""
    reduction = _reduction(reduction, size_average, reduce)
    return ops.nll_loss_nd(input, target, weight, reduction, ignore_index)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference."""
    if weight is not None:
        return _weighted(ops.mse_loss(input, target, "none"), weight, reduction)
    return ops.mse_loss(input, target, _reduction(reduction, size_average, reduce))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    if weight is not None:
        return _weighted(ops.l1_loss(input, target, "none"), weight, reduction)
    return ops.l1_loss(input, target, _reduction(reduction, size_average, reduce))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The squared difference over 2 beta where it is below beta, the absolute one beyond."""
    reduction = _reduction(reduction, size_average, reduce)
    if beta == 0.0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the squared difference where it is below delta, linear beyond."""
    if weight is not None:
        return _weighted(ops.huber_loss(input, target, "none", delta), weight, reduction)
    return ops.huber_loss(input, target, _reduction(reduction), delta)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The cross entropy of probabilities `input` and targets in [0, 1], of the same shape."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(rushlight.broadcast_shapes(target.size(), weight.size()))
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
    pos_weight=None,
):
    """`binary_cross_entropy` of sigmoid(input), computed without losing digits."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence; `input` holds log probabilities.

    "batchmean" divides the sum by the batch size, which is the divergence's definition.
    """
    if size_average is not None or reduce is not None:
        mode = _reduction(reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        mode = _reduction("sum" if reduction == "batchmean" else reduction)
    result = ops.kl_div(input, target, mode, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        result = result / input.size()[0]
    return result


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """The negative log likelihood of counts under a Poisson distribution."""
    reduction = _reduction(reduction, size_average, reduce)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood under N(input, var)."""
    if not isinstance(var, rushlight.Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * rushlight.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in _REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with rushlight.no_grad():
        var.clamp_(min=eps)  # a limit on the value that the gradient does not see
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = _reduction(reduction, size_average, reduce)
    return ops.hinge_embedding_loss(input, target, margin, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * x))."""
    return ops.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = _reduction(reduction, size_average, reduce)
    return ops.margin_ranking_loss(input1, input2, target, margin, reduction)


def cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    reduction = _reduction(reduction, size_average, reduce)
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """How much nearer the anchor should be to `positive` than to `negative`."""
    reduction = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin).

    `distance_function` is `pairwise_distance` by default; with `swap` the negative may be nearer to
    the positive than to the anchor.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = ops.pairwise_distance if distance_function is None else distance_function
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = rushlight.min(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """-log of the probability of targets under all their alignments with sequences.

    Args:
        log_probs: (length, batch, classes), logarithms of probabilities.
        targets: (batch, longest) or all targets in one row.
        input_lengths, target_lengths: how much of each counts.
        blank: the class between labels.
        reduction: "mean" divides by the targets' lengths first.
        zero_infinity: impossible targets count as zero.
    """
    numbers = {"none": 0, "mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    lengths = [
        n.tolist() if isinstance(n, rushlight.Tensor) else n
        for n in (input_lengths, target_lengths)
    ]
    lengths = [n if isinstance(n, (list, tuple)) else [n] for n in lengths]
    return ops.ctc_loss(log_probs, targets, *lengths, blank, numbers[reduction], zero_infinity)


def multi_margin_loss(
    input,
    target,
    p=1,
    margin=1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """The hinge loss of many classes."""
    reduction = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of samples with several classes each."""
    return ops.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """The binary cross entropy with logits, averaged over the last dimension."""
    reduction = _reduction(reduction, size_average, reduce)
    loss = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    loss = loss.sum(dim=-1) / input.size(-1)
    return _reduced(loss, reduction)


# Calls are offered to function modes and to arguments with __torch_function__ first.
for _name, _function in list(globals().items()):
    if isinstance(_function, types.FunctionType) and not _name.startswith("_"):
        globals()[_name] = _C._Offered(_function)
