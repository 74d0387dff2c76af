"""Lowerings of matrix products and of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.reduce import reduced, vector_norm

__all__: list[str] = []  # lowerings are found by the names of their ops


@lowers("aten.matmul.default", "aten.mm.default", "aten.bmm.default", "aten.mv.default")
@lowers("aten.dot.default", "aten.vdot.default", "aten.inner.default", "aten.linalg_matmul.default")
def matmul(g: Builder, self: Value, other: Value) -> Value:
    if not self.rank or not other.rank:
        return g.Mul(self, other)
    if "inner" in g.overload and other.rank > 1:
        other = g.swap(other, -1, -2)
    return g.MatMul(self, other)


@lowers("aten.linalg_vecdot.default")
def vecdot(g: Builder, x: Value, y: Value, dim: int) -> Value:
    return reduced(g, "ReduceSum", g.Mul(*g.operands(x, y)), dim, False)


@lowers("aten.linalg_multi_dot.default", "aten.chain_matmul.default")
def multi_dot(g: Builder, tensors: list[Value]) -> Value:
    product = tensors[0]
    for tensor in tensors[1:]:
        product = g.MatMul(product, tensor)
    return product


@lowers("aten.linear.default")
def linear(g: Builder, input: Value, weight: Value, bias: Value | None) -> Value:
    is_matrix = input.rank == 2 and bias is not None and bias.rank == 1 and weight.rank == 2
    if is_matrix and input.dtype.is_floating_point:
        return g.Gemm(input, weight, bias, transB=1)
    out = g.MatMul(input, g.swap(weight, 0, 1) if weight.rank > 1 else weight)
    return out if bias is None else g.Add(out, bias)


def _plus(g: Builder, self: Value, product: Value, beta: Any, alpha: Any) -> Value:
    """beta self + alpha product."""
    if product.dtype == rushlight.bool:
        product = product if alpha else g.And(product, g.constant(False))
        return g.Or(self, product) if beta else g.expand(product, g.result.shape)
    product = product if alpha == 1 else g.Mul(product, alpha)
    if beta == 0:
        return g.expand(product, g.result.shape)
    return g.Add(self if beta == 1 else g.Mul(self, beta), product)


@lowers("aten.addmm.default", "aten.addmv.default", "aten.baddbmm.default")
def addmm(g: Builder, self: Value, a: Value, b: Value, beta: Any, alpha: Any) -> Value:
    if "addmm" in g.overload and a.dtype.is_floating_point and self.rank <= 2:
        return g.Gemm(a, b, self, beta=float(beta), alpha=float(alpha))
    return _plus(g, self, g.MatMul(a, b), beta, alpha)


@lowers("aten.addbmm.default")
def addbmm(g: Builder, self: Value, a: Value, b: Value, beta: Any, alpha: Any) -> Value:
    product = g.ReduceSum(g.MatMul(a, b), [0], keepdims=0)
    return _plus(g, self, product, beta, alpha)


@lowers("aten.addr.default")
def addr(g: Builder, self: Value, vec1: Value, vec2: Value, beta: Any, alpha: Any) -> Value:
    return _plus(g, self, outer(g, vec1, vec2), beta, alpha)


@lowers("aten.outer.default", "aten.ger.default")
def outer(g: Builder, self: Value, vec2: Value) -> Value:
    a, b = (g.unsqueeze(v, 1 - i) for i, v in enumerate(g.operands(self, vec2)))
    return g.And(a, b) if a.dtype == rushlight.bool else g.Mul(a, b)


@lowers("aten.bilinear.default")
def bilinear(g: Builder, a: Value, b: Value, weight: Value, bias: Value | None) -> Value:
    out = g.Einsum(a, weight, b, equation="...i,oij,...j->...o")
    return out if bias is None else g.Add(out, bias)


@lowers("aten.einsum.default")
def einsum(g: Builder, equation: str, tensors: list[Value]) -> Value:
    equation, dtype = equation.replace(" ", ""), g.result.dtype
    parts = [g.cast(t, dtype) for t in tensors]
    terms = equation.split("->")[0].split(",")
    # What "..." stands for has the same number of dimensions everywhere.
    free = [t.rank - len(term.replace("...", "")) for t, term in zip(parts, terms, strict=True)]
    for i, term in enumerate(terms):
        if "..." in term:
            place, missing = term.index("..."), max(free) - free[i]
            parts[i] = g.unsqueeze(parts[i], *range(place, place + missing))
    return g.Einsum(*parts, equation=equation)


@lowers("aten.tensordot.default")
def tensordot(
    g: Builder, self: Value, other: Value, dims_self: Sequence[int], dims_other: Sequence[int]
) -> Value:
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(self.rank)]
    right = [next(letters) for _ in range(other.rank)]
    for i, j in zip(dims_self, dims_other, strict=True):
        right[j] = left[i]
    summed = {left[i] for i in dims_self}
    kept = "".join(c for c in left + right if c not in summed)
    return g.Einsum(self, other, equation=f"{''.join(left)},{''.join(right)}->{kept}")


@lowers("aten.cross.default", "aten.linalg_cross.default")
def cross(g: Builder, self: Value, other: Value, dim: int | None) -> Value:
    if dim is None:
        dim = self.sizes.index(3)
    one, two = g.int64([1, 2, 0]), g.int64([2, 0, 1])
    a1, a2 = (g.Gather(self, i, axis=dim) for i in (one, two))
    b1, b2 = (g.Gather(other, i, axis=dim) for i in (one, two))
    return g.Sub(g.Mul(a1, b2), g.Mul(a2, b1))


@lowers("aten.det.default", "aten.linalg_det.default")
def det(g: Builder, self: Value) -> Value:
    return g.Det(self)


@lowers("aten.cosine_similarity.default")
def cosine_similarity(g: Builder, x1: Value, x2: Value, dim: int, eps: float) -> Value:
    a, b = g.broadcast(*g.operands(x1, x2))

    def length(x: Value) -> Value:
        return g.Max(g.ReduceL2(x, [dim], keepdims=1), eps)

    product = g.Mul(g.Div(a, length(a)), g.Div(b, length(b)))
    return g.ReduceSum(product, [dim], keepdims=0)


@lowers("aten.pairwise_distance.default")
def pairwise_distance(
    g: Builder, x1: Value, x2: Value, p: float, eps: float, keepdim: bool
) -> Value:
    return vector_norm(g, g.Add(g.Sub(x1, x2), eps), p, [-1], keepdim)


@lowers("aten.cdist.default")
def cdist(g: Builder, x1: Value, x2: Value, p: float) -> Value:
    apart = g.Sub(g.unsqueeze(x1, x1.rank - 1), g.unsqueeze(x2, x2.rank - 2))
    return vector_norm(g, apart, p, [-1], False)


@lowers("aten.trace.default")
def trace(g: Builder, self: Value) -> Value:
    rows, columns = self.sizes
    if not (isinstance(rows, int) and isinstance(columns, int)):
        raise Unsupported("the sizes of the matrix are not constant")
    eye = rushlight.eye(rows, columns, dtype=self.dtype)
    found = g.ReduceSum(g.Mul(self, g.constant(eye)), None, keepdims=0)
    return g.cast(found, g.result.dtype)
