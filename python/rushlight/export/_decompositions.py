"""What `run_decompositions` runs in the place of ops that are made of others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["TABLE", "below"]

aten: Any = rushlight.ops.aten
TABLE: dict[Any, Callable[..., Any]] = {}


def _in_place_of(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates the function for ops by name: "linear.default"."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            packet, _, overload = name.partition(".")
            TABLE[getattr(getattr(aten, packet), overload)] = function
        return function

    return register


def below(*args: Any, **kwargs: Any) -> Any:
    """Stands in the table for: what the op itself calls."""
    raise NotImplementedError("run_decompositions alone can run what an op calls")


_MADE_OF_OTHERS = (
    "einsum.default movedim.int swapaxes.default swapdims.default expand_as.default "
    "view_as.default reshape_as.default type_as.default square.default stack.default "
    "unsafe_chunk.default instance_norm.default cosine_similarity.default hstack.default "
    "vstack.default tile.default ravel.default numpy_T.default matrix_H.default mT.default "
    "adaptive_avg_pool1d.default avg_pool1d.default max_pool1d.default cross_entropy_loss.default "
    "nll_loss_nd.default square_.default outer.default inner.default kron.default "
    "take_along_dim.default select.Dimname broadcast_to.default"
)
for _name in _MADE_OF_OTHERS.split():
    _packet, _, _overload = _name.partition(".")
    _op = getattr(getattr(aten, _packet, None), _overload, None)
    if _op is not None:
        TABLE[_op] = below


# ---- views ----


@_in_place_of("t.default")
def t(self: Tensor) -> Tensor:
    return aten.permute.default(self, list(reversed(range(self.dim()))))


@_in_place_of("transpose.int")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


@_in_place_of("flatten.using_ints")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    shape = list(self.shape) or [1]
    start, end = start_dim % len(shape), end_dim % len(shape)
    return _reshaped(self, [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]])


@_in_place_of("unflatten.int")
def unflatten(self: Tensor, dim: int, sizes: list[int]) -> Tensor:
    shape, dim = list(self.shape), dim % self.dim()
    known = -math.prod(sizes)
    sizes = [shape[dim] // known if n == -1 else n for n in sizes]
    return aten.view.default(self, [*shape[:dim], *sizes, *shape[dim + 1 :]])


@_in_place_of("reshape.default")
def reshape(self: Tensor, shape: list[int]) -> Tensor:
    known = -math.prod(shape)
    return _reshaped(self, [self.numel() // known if n == -1 else n for n in shape])


def _reshaped(self: Tensor, shape: list[int]) -> Tensor:
    if list(self.shape) == shape:
        return self
    try:
        self.view(shape)
    except RuntimeError:
        self = aten.clone.default(self, memory_format=rushlight.contiguous_format)
    return aten.view.default(self, shape)


@_in_place_of("contiguous.default")
def contiguous(self: Tensor, *, memory_format: Any = rushlight.contiguous_format) -> Tensor:
    return aten.clone.default(self, memory_format=memory_format)


@_in_place_of("chunk.default")
def chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    size = self.shape[dim]
    each = max(-(-size // chunks), 1)
    sizes = [each] * (size // each) + ([size % each] if size % each else [])
    return aten.split_with_sizes.default(self, sizes or [0] * chunks, dim)


# ---- copies and conversions ----


@_in_place_of("lift_fresh_copy.default")
def lift_fresh_copy(self: Tensor) -> Tensor:
    return aten.clone.default(self)


@_in_place_of("detach.default", "detach_.default", "alias.default")
def detach(self: Tensor) -> Tensor:
    return self


@_in_place_of("to.dtype")
def to_dtype(self: Tensor, dtype: Any, *_: Any, **__: Any) -> Tensor:
    return self if self.dtype == dtype else aten._to_copy.default(self, dtype=dtype)


@_in_place_of("pad.default")
def pad(self: Tensor, pad: list[int], mode: str = "constant", value: Any = None) -> Any:
    if mode != "constant":
        return NotImplemented
    return aten.constant_pad_nd.default(self, pad, 0.0 if value is None else value)


# ---- products ----


@_in_place_of("linear.default")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    if weight.dim() != 2 or input.dim() < 2:
        return NotImplemented
    turned = aten.permute.default(weight, [1, 0])
    rows = _reshaped(input, [math.prod(input.shape[:-1]), input.shape[-1]])
    if bias is not None:
        out = aten.addmm.default(bias, rows, turned)
    else:
        out = aten.mm.default(rows, turned)
    return out if input.dim() == 2 else aten.view.default(out, [*input.shape[:-1], out.shape[-1]])


@_in_place_of("matmul.default")
def matmul(self: Tensor, other: Tensor) -> Any:
    if self.dim() < 2 or other.dim() < 2:
        return NotImplemented
    if self.dim() == other.dim() == 2:
        return aten.mm.default(self, other)
    batch = list(rushlight.broadcast_shapes(self.shape[:-2], other.shape[:-2]))
    flat = []
    for factor in (self, other):
        rows = list(factor.shape[-2:])
        if list(factor.shape[:-2]) != batch:
            factor = aten.expand.default(factor, [*batch, *rows])
        flat.append(_reshaped(factor, [math.prod(batch), *rows]))
    out = aten.bmm.default(*flat)
    return aten.view.default(out, [*batch, self.shape[-2], other.shape[-1]])


def _convolve(dims: int) -> Callable[..., Tensor]:
    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if input.dim() != dims + 2:
            return NotImplemented
        each = [_each(v, dims) for v in (stride, padding, dilation)]
        return aten.convolution.default(input, weight, bias, *each, False, [0] * dims, groups)

    return convolve


def _each(value: Any, dims: int) -> list[int]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * dims if len(values) == 1 else values


for _dims in (1, 2, 3):
    _in_place_of(f"conv{_dims}d.default")(_convolve(_dims))


# ---- norms, dropout ----


@_in_place_of("layer_norm.default")
def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    return aten.native_layer_norm.default(input, normalized_shape, weight, bias, eps)[0]


@_in_place_of("group_norm.default")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    n, c = input.shape[0], input.shape[1]
    rest = math.prod(input.shape[2:])
    return aten.native_group_norm.default(input, weight, bias, n, c, rest, num_groups, eps)[0]


@_in_place_of("batch_norm.default")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    affine, stats = (input, weight, bias), (running_mean, running_var)
    if not training and running_mean is not None:
        return aten._native_batch_norm_legit_no_training.default(*affine, *stats, momentum, eps)[0]
    out, mean, deviation = aten._native_batch_norm_legit.no_stats(*affine, True, momentum, eps)
    if running_mean is not None and running_var is not None:
        count = input.numel() // input.shape[1]
        power = aten.pow.Tensor_Scalar(deviation, -2)
        variance = aten.sub.Tensor(power, eps)
        unbiased = aten.mul.Tensor(variance, count / max(count - 1, 1))
        for running, new in ((running_mean, mean), (running_var, unbiased)):
            kept = aten.mul.Tensor(running, 1 - momentum)
            aten.copy_.default(running, aten.add.Tensor(kept, aten.mul.Tensor(new, momentum)))
    return out


@_in_place_of("dropout.default")
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        return input
    return aten.native_dropout.default(input, p, True)[0]


# ---- attention, pooling ----


@_in_place_of("scaled_dot_product_attention.default")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        return NotImplemented
    turned = aten.transpose.int(key, -2, -1)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = aten.matmul.default(aten.mul.Tensor(query, factor), turned)
    if is_causal:
        shape = [query.shape[-2], key.shape[-2]]
        ones = aten.ones.default(shape, dtype=rushlight.bool, device=query.device)
        attn_mask = aten.tril.default(ones)
    if attn_mask is not None and attn_mask.dtype == rushlight.bool:
        hidden = aten.logical_not.default(attn_mask)
        scores = aten.masked_fill.Scalar(scores, hidden, -math.inf)
    elif attn_mask is not None:
        scores = aten.add.Tensor(scores, attn_mask)
    weights = aten.softmax.int(scores, -1)
    if attn_mask is not None:  # a query that sees nothing has no weights
        seen = aten.any.dim(aten.ne.Scalar(scores, -math.inf), -1, True)
        nothing = aten.full_like.default(weights, 0)
        weights = aten.where.self(seen, weights, nothing)
    if dropout_p:
        weights = aten.dropout.default(weights, dropout_p, True)
    return aten.matmul.default(weights, value)


@_in_place_of("max_pool2d.default")
def max_pool2d(self: Tensor, *args: Any) -> Tensor:
    return aten.max_pool2d_with_indices.default(self, *args)[0]


@_in_place_of("adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(self: Tensor, output_size: list[int]) -> Any:
    if list(output_size) != [1, 1]:
        return NotImplemented
    return aten.mean.dim(self, [-1, -2], True)
