"""ONNX's ops in programs: any node by `symbolic`; attention and rotary embedding.

In a program that runs, `symbolic` gives zeros of the shape that it is told; in an exported one it
is a node of ONNX. `attention` and `rotary_embedding` compute what ONNX says of the ops of these
names, and are exported as the ops that they are made of, which every version has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.onnx._types import DTYPES, ELEMENT_TYPES

__all__ = [
    "aten_decompositions",
    "attention",
    "rotary_embedding",
    "symbolic",
    "symbolic_multi_out",
]

_SHARED = (
    "Tensor?[] inputs, str op_type, *, int[] dtypes, int[] sizes, int[] ranks, str[] attr_keys, "
    "str[] attr_types, int[] attr_counts, int[] attr_ints, float[] attr_floats, str[] attr_strs, "
    "str[] metadata_keys, str[] metadata_values, str domain='', int? version=None"
)


def aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """Functions that replace ops of ONNX in a graph: none, as graphs hold `symbolic` alone.

    Example:
        >>> torch.onnx.ops.aten_decompositions()
        {}
    """
    return {}


def _zeros(
    inputs: Sequence[Tensor | None], dtypes: Sequence[int], sizes: Sequence[int], ranks: Any
) -> list[Tensor]:
    device = next((t.device for t in inputs if t is not None), None)
    rest, made = list(sizes), []
    for number, rank in zip(dtypes, ranks, strict=True):
        shape, rest = rest[:rank], rest[rank:]
        made.append(rushlight.zeros(shape, dtype=DTYPES[number], device=device))
    return made


@functools.cache
def _library() -> Any:
    """What defines the op that stands for a node of ONNX in graphs."""
    library = rushlight.library.Library("onnx_symbolic", "DEF")
    library.define(f"_node({_SHARED}) -> Tensor[]")

    def run(inputs: Any, op_type: str, *, dtypes: Any, sizes: Any, ranks: Any, **_: Any) -> Any:
        return _zeros(inputs, dtypes, sizes, ranks)

    library.impl("_node", run, "CompositeExplicitAutograd")
    rushlight.library.register_fake("onnx_symbolic::_node", run)
    return library


def _attributes(attrs: dict[str, Any] | None) -> dict[str, list[Any]]:
    """Attributes as lists of plain values, which schemas have types for."""
    found: dict[str, list[Any]] = {f"attr_{k}": [] for k in ("keys", "types", "counts")}
    values: dict[type, list[Any]] = {int: [], float: [], str: []}
    for key, value in (attrs or {}).items():
        items = list(value) if isinstance(value, list | tuple) else [value]
        items = [int(v) if isinstance(v, bool) else v for v in items]
        kind = next((k for k in values if items and all(type(v) is k for v in items)), None)
        if kind is None:
            raise ValueError(
                f"Unsupported attribute type for {key}: {value!r} is no int, float or str, and no "
                "list of values of one of these types"
            )
        values[kind] += items
        found["attr_keys"].append(key)
        several = "s" if isinstance(value, list | tuple) else ""
        found["attr_types"].append(kind.__name__[0] + several)
        found["attr_counts"].append(len(items))
    found.update(attr_ints=values[int], attr_floats=values[float], attr_strs=values[str])
    return found


def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtypes: Sequence[rushlight.dtype | int],
    shapes: Sequence[Sequence[int]],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:
    """A node of ONNX with several results; in a program that is not exported, zeros.

    Args:
        domain_op: "domain::Op", or the name of an op of ONNX itself.
        inputs: tensors; None for inputs that are left out.
        attrs: ints, floats, texts, or lists of them by name.
        dtypes: of the results, as dtypes or ONNX's numbers.
        shapes: of the results.
        version: of the domain.
        metadata_props: texts by key, which the node gets.

    Raises:
        ValueError: an attribute is of another type, or the lists of results differ in length.

    Example:
        >>> x = torch.ones(2)
        >>> torch.onnx.ops.symbolic_multi_out(
        ...     "mine::Halves", [x], dtypes=[x.dtype, x.dtype], shapes=[(1,), (1,)]
        ... )
        [tensor([0.]), tensor([0.])]
    """
    if len(dtypes) != len(shapes):
        raise ValueError(f"got {len(dtypes)} dtypes and {len(shapes)} shapes")
    domain, _, name = domain_op.rpartition("::")
    props = metadata_props or {}
    numbers = [d if isinstance(d, int) else ELEMENT_TYPES[d] for d in dtypes]
    _library()
    return rushlight.ops.onnx_symbolic._node.default(
        list(inputs),
        name,
        dtypes=numbers,
        sizes=[size for shape in shapes for size in shape],
        ranks=[len(shape) for shape in shapes],
        metadata_keys=list(props),
        metadata_values=list(props.values()),
        domain=domain,
        version=version,
        **_attributes(attrs),
    )


def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtype: rushlight.dtype | int,
    shape: Sequence[int],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Tensor:
    """A node of ONNX with one result; as `symbolic_multi_out`.

    Args:
        domain_op: "domain::Op", or the name of an op of ONNX itself.
        inputs: tensors; None for inputs that are left out.
        attrs: ints, floats, texts, or lists of them by name.
        dtype: of the result, as a dtype or ONNX's number.
        shape: of the result.
        version: of the domain.
        metadata_props: texts by key, which the node gets.

    Example:
        >>> x = torch.ones(2, 3)
        >>> torch.onnx.ops.symbolic("mine::Fancy", [x], dtype=x.dtype, shape=(2, 1))
        tensor([[0.],
                [0.]])
    """
    return symbolic_multi_out(
        domain_op,
        inputs,
        attrs,
        dtypes=[dtype],
        shapes=[shape],
        version=version,
        metadata_props=metadata_props,
    )[0]


def rotary_embedding(
    X: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    """Features in pairs, turned by angles that depend on the place in the sequence.

    Args:
        X: (batch, heads, length, features), or (batch, length, heads * features) with `num_heads`.
        cos_cache, sin_cache: (places, pairs) with `position_ids`, else (batch, length, pairs).
        position_ids: (batch, length).
        interleaved: pairs are neighbours; otherwise the second half belongs to the first.
        rotary_embedding_dim: how many features are turned; 0 for all.
        num_heads: the number of heads, where X has three dimensions.

    Raises:
        ValueError: X has three dimensions, and `num_heads` is not given.

    Example:
        >>> x, angles = torch.ones(1, 1, 3, 4), torch.zeros(1, 3, 2)
        >>> torch.onnx.ops.rotary_embedding(x, angles.cos(), angles.sin())[0, 0, 2]
        tensor([1., 1., 1., 1.])
    """
    shape = X.shape
    if X.dim() == 3:
        if num_heads == 0:
            raise ValueError(f"num_heads must be given for X with three dimensions, got {shape}")
        X = X.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    turned = rotary_embedding_dim or X.shape[-1]
    x, rest = X[..., :turned], X[..., turned:]
    if position_ids is not None:
        cos_cache, sin_cache = cos_cache[position_ids], sin_cache[position_ids]
    cos, sin = cos_cache.unsqueeze(1), sin_cache.unsqueeze(1)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    pairs = a * cos - b * sin, a * sin + b * cos
    out = rushlight.stack(pairs, -1).flatten(-2) if interleaved else rushlight.cat(pairs, -1)
    out = rushlight.cat([out, rest], -1) if turned < X.shape[-1] else out
    return out.transpose(1, 2).reshape(shape) if len(shape) == 3 else out


def _by_heads(x: Tensor, heads: int, name: str) -> Tensor:
    if x.dim() == 4:
        return x
    if heads == 0:
        raise ValueError(f"{name} must be given for inputs with three dimensions, got {x.shape}")
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention with a cache: (output, keys so far, values so far, scores).

    Args:
        Q, K, V: (batch, heads, length, features), or (batch, length, heads * features) with
            `q_num_heads` and `kv_num_heads`.
        attn_mask: booleans, True where attention is allowed, or numbers that are added.
        past_key, past_value: (batch, heads, length, features), which come first.
        qk_matmul_output_mode: which scores are returned: 0 as multiplied, 1 with the mask, 2 after
            `softcap`, 3 after the softmax.
        softcap: scores become softcap * tanh(scores / softcap); 0 leaves them.
        softmax_precision: ONNX's number of the dtype in which the softmax is computed.
        is_causal: whether places see themselves and earlier ones alone.
        q_num_heads: the number of heads of Q, where it has three dimensions.
        kv_num_heads: the same of K and V.
        scale: what scores are multiplied with; None: one over the root of the features.

    Raises:
        ValueError: a number of heads is missing, or the mode is not 0 to 3.

    Example:
        >>> x = torch.ones(1, 2, 3, 4)
        >>> output, keys, values, scores = torch.onnx.ops.attention(x, x, x)
        >>> output.shape
        torch.Size([1, 2, 3, 4])
    """
    if qk_matmul_output_mode not in (0, 1, 2, 3):
        raise ValueError(f"qk_matmul_output_mode must be 0 to 3, got {qk_matmul_output_mode}")
    is_flat = Q.dim() == 3
    q = _by_heads(Q, q_num_heads, "q_num_heads")
    k, v = (_by_heads(x, kv_num_heads, "kv_num_heads") for x in (K, V))
    k = k if past_key is None else rushlight.cat([past_key, k], 2)
    v = v if past_value is None else rushlight.cat([past_value, v], 2)
    present = k, v
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    multiplied = (q * math.sqrt(scale)) @ (k * math.sqrt(scale)).transpose(-1, -2)
    scores = multiplied
    lowest = -math.inf
    if is_causal:
        n, m = scores.shape[-2:]
        earlier = 0 if past_key is None else past_key.shape[2]
        seen = rushlight.ones(n, m, dtype=rushlight.bool, device=q.device).tril(earlier)
        scores = scores.masked_fill(~seen, lowest)
    if attn_mask is not None:
        if attn_mask.dtype == rushlight.bool:
            scores = scores.masked_fill(~attn_mask, lowest)
        else:
            scores = scores + attn_mask
    masked = scores
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    capped = scores
    precision = scores.dtype if softmax_precision is None else DTYPES[softmax_precision]
    shares = scores.softmax(-1, dtype=precision).to(q.dtype)
    out = shares @ v
    if is_flat:
        out = out.transpose(1, 2).flatten(2)
    return out, *present, (multiplied, masked, capped, shares)[qk_matmul_output_mode]
