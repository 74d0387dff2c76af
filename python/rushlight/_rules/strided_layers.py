"""The rules of strided nested tensors for reductions, products and neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight._rules import strided_ops as layout
from rushlight._rules import strided_shapes  # noqa: F401  # enters its rules
from rushlight._rules.attention import check_attention
from rushlight._rules.strided_ops import _each, _pack, _size, _wrap_dim, each, rule
from rushlight.nested._strided import buffer_of, components, of_components, packed, wrap

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["layout"]

# ---- reductions, products, neural networks ----


@rule("sum")
def _sum(func, t, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return buffer_of(_pack(t)).sum(dtype=dtype)
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    inner = _wrap_dim(t, dims[0])
    if inner != t._windows.dim - 1:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(lambda part: part.sum(-1, keepdim=True, dtype=dtype), t)


@rule("any all")
def _any(func, t, dim=None, keepdim=False):
    if dim is None:
        return func(buffer_of(_pack(t)))
    inner = _wrap_dim(t, dim)
    if inner == 0:
        raise RuntimeError("any and all are not taken across nested dimension 0")
    return _each(lambda part: func(part, inner - 1, keepdim), t)


@rule("softmax log_softmax _softmax")
def _softmax(func, t, dim=None, *args, **kwargs):
    if not t._windows.shapes:
        return t
    inner = _wrap_dim(t, dim)
    if inner == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return _each(lambda part: func(part, inner - 1, *args, **kwargs), t)


@rule("layer_norm native_layer_norm rms_norm")
def _layer_norm(func, t, normalized_shape, *args, **kwargs):
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if t._windows.dim <= 2:
        raise RuntimeError("layer_norm: NestedTensor must have more than 2 dimensions")
    if not t._windows.packed():
        raise RuntimeError("layer_norm: NestedTensor must be contiguous")
    for i in range(len(shape)):
        dim = t._windows.dim - 1 - i
        if dim < 1 or _size(None, t, dim) != shape[-1 - i]:
            raise RuntimeError(
                f"Given normalized_shape={shape}, expected input with shape [*, {shape}], but the "
                f"dimension {dim} of the nested tensor differs"
            )
    rows = buffer_of(t).reshape(-1, *shape)
    return wrap(func(rows, shape, *args, **kwargs).reshape(-1), t._windows)


@rule("linear")
def _linear(
    func: Callable[..., Any], t: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    if not t.is_nested or weight.is_nested:
        raise RuntimeError("linear(): only the input may be nested")
    last = t._windows.dim - 1
    if last != 2:
        raise RuntimeError(
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{last + 1}. Dense tensor dim: {weight.dim()}"
        )
    width = _size(None, t, last)
    if width != weight.shape[1]:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' "
            f"to equal 'weight.size(1), but got: last_dim = {width}, and weight.size(1) = "
            f"{weight.shape[1]}"
        )
    t = _pack(t)
    rows = func(buffer_of(t).reshape(-1, width), weight, bias)
    shapes = [(*s[:-1], weight.shape[0]) for s in t._windows.shapes]
    return wrap(rows.reshape(-1), packed(shapes, t._windows.dim))


@rule("bmm")
def _bmm(func, a, b):
    if a.dim() != 3 or b.dim() != 3:
        raise RuntimeError(
            "batch1 must be a 3D tensor" if a.dim() != 3 else "batch2 must be a 3D tensor"
        )
    return _products(a, b)


def _products(a: Tensor, b: Tensor) -> Tensor:
    rows = [components(t) if t.is_nested else list(t.unbind(0)) for t in (a, b)]
    if len(rows[0]) != len(rows[1]):
        raise RuntimeError(
            f"batches of matrices: Expected size for the 1st dimension of both to be equal, but "
            f"got: {len(rows[0])} and {len(rows[1])}"
        )
    for i, (x, y) in enumerate(zip(*rows, strict=True)):
        if x.shape[-1] != y.shape[-2]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({x.shape[-2]}x"
                f"{x.shape[-1]} and {y.shape[-2]}x{y.shape[-1]})"
            )
        if x.shape[:-2] != y.shape[:-2]:
            raise RuntimeError(
                "matmul(): For nested tensors, batch dimensions must have the same sizes"
            )
    return of_components([x @ y for x, y in zip(*rows, strict=True)], a.dim())


@rule("matmul __matmul__ __rmatmul__")
def _matmul(func, a, b):
    nested = [t.is_nested for t in (a, b)]
    if nested == [True, False] and b.dim() == 2 and a.dim() >= 3:
        a_width = {s[-1] for s in a._windows.shapes}
        if a_width == {b.shape[0]}:
            a = _pack(a)
            rows = buffer_of(a).reshape(-1, b.shape[0]) @ b
            shapes = [(*s[:-1], b.shape[1]) for s in a._windows.shapes]
            return wrap(rows.reshape(-1), packed(shapes, a._windows.dim))
        raise RuntimeError(f"matmul(): the last sizes {sorted(a_width)} do not go with {b.shape}")
    if not all(nested):
        sides = ["nested" if n else "non-nested" for n in nested]
        raise RuntimeError(
            f"Expected both to be nested, but got a {sides[0]} self and {sides[1]} other"
        )
    if a.dim() < 3 or b.dim() < 3:
        which = ("1st", a) if a.dim() < 3 else ("2nd", b)
        raise RuntimeError(
            "matmul: For nested tensors, only inputs with >= 3 dims are multiplied; "
            f"{which[0]} input has rank: {which[1].dim()}"
        )
    if a.dim() != b.dim():
        raise RuntimeError(
            "matmul(): For nested tensors, inputs must have the same number of dimensions; got "
            f"{a.dim()} and {b.dim()}"
        )
    return _products(a, b)


@rule("scaled_dot_product_attention")
def _attention(
    func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    enable_gqa=False,
):  # fmt: skip
    check_attention(query, key, value, attn_mask)
    if any(t.dim() not in (3, 4) for t in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention(): nested tensors have 3 or 4 dimensions")

    def one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = func(
            q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), None, dropout_p, is_causal,
            scale=scale, enable_gqa=enable_gqa,
        )  # fmt: skip
        return out.squeeze(0)

    return each(one, query, key, value)
