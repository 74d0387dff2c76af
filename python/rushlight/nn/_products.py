"""Products with rules of their own: groups of matrices, scaled 8-bit floats, layers with a loss."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.types import _dtype

__all__ = [
    "ScalingType",
    "SwizzleType",
    "grouped_mm",
    "linear_cross_entropy",
    "scaled_grouped_mm",
    "scaled_mm",
]

ops = _C.ops


class ScalingType(enum.IntEnum):
    """How many numbers of a matrix share one scale.

    Example:
        >>> torch.nn.functional.ScalingType.TensorWise.name
        'TensorWise'
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The memory layout of scales.

    Example:
        >>> torch.nn.functional.SwizzleType.NO_SWIZZLE.name
        'NO_SWIZZLE'
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


# ---- groups ----


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Any = None,
    bias: Tensor | None = None,
    out_dtype: _dtype | None = None,
) -> Tensor:
    """Products of groups: of rows, of columns, or of the sum, where offsets say; or of a batch.

    Args:
        mat_a: (rows, k), rows in groups; (k, …) with groups of the sum; or (groups, m, k).
        mat_b: (groups, k, n), or a matrix with groups of columns or of the sum.
        offs: where each group ends along the dimension of groups, int32.
        bias: refused.
        out_dtype: that of the inputs.

    Example:
        >>> rows, factors = torch.ones(4, 8), torch.ones(2, 8, 8)
        >>> ends = torch.tensor([1, 4], dtype=torch.int32)
        >>> torch.nn.functional.grouped_mm(rows, factors, offs=ends).shape
        torch.Size([4, 8])
    """
    for name, t in (("mat_a", mat_a), ("mat_b", mat_b)):
        if not isinstance(t, rushlight.Tensor):
            raise TypeError(
                f"grouped_mm(): argument '{name}' must be Tensor, not {type(t).__name__}"
            )
        if t.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if mat_a.dtype not in (rushlight.float32, rushlight.bfloat16, rushlight.float16):
        raise RuntimeError(
            f"Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {mat_a.dtype}"
        )
    if mat_a.dtype != mat_b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {mat_a.dtype} != {mat_b.dtype}"
        )
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, and none for two batches: got "
            f"{mat_a.dim()}d and {mat_b.dim()}d {'without' if offs is None else 'with'} offs"
        )
    if offs is not None and (offs.dtype != rushlight.int32 or offs.dim() != 1):
        raise RuntimeError("Offsets have to be int32, in one dimension")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return ops.bmm(mat_a, mat_b)
    along_a, along_b = (1, 0) if mat_b.dim() == 2 and mat_a.dim() == 2 else (0, 1)
    ends = offs.tolist()
    parts = []
    begin = 0
    for group, end in enumerate(ends):
        a = mat_a[group] if mat_a.dim() == 3 else mat_a.narrow(along_a, begin, end - begin)
        b = mat_b[group] if mat_b.dim() == 3 else mat_b.narrow(along_b, begin, end - begin)
        parts.append(ops.mm(a, b))
        begin = end
    if mat_a.dim() == mat_b.dim() == 2:
        return ops.stack(parts)
    whole, across = (mat_a, 0) if mat_a.dim() == 2 else (mat_b, 1)
    rest = whole.shape[across] - begin
    if rest:  # behind the last group, nobody's
        sizes = [rest, mat_b.shape[2]] if across == 0 else [mat_a.shape[1], rest]
        parts.append(mat_a.new_zeros(sizes))
    return ops.cat(parts, across)


# ---- scaled 8-bit floats ----


def _one(value, what: str):
    values = value if isinstance(value, list | tuple) else [value]
    if len(values) != 1:
        raise NotImplementedError(f"scaled_mm(): {what}s in several levels are not there")
    return values[0]


def _check_scale(scale: Any, recipe: Any, wanted: tuple[int, int]) -> None:
    if recipe == ScalingType.TensorWise:
        if scale.numel() != 1:
            raise ValueError("a TensorWise scale is one number")
    elif recipe == ScalingType.RowWise:
        if scale.numel() != max(wanted):
            raise ValueError(f"RowWise scales have {max(wanted)} numbers, not {scale.numel()}")
    else:
        raise NotImplementedError(f"scaled_mm(): no scales of blocks: {ScalingType(recipe).name}")


def _check_order(op: str, *swizzles: Any) -> None:
    """Raises where scales do not lie in rows."""
    for swizzle in swizzles:
        if swizzle is not None and _one(swizzle, "order") != SwizzleType.NO_SWIZZLE:
            raise NotImplementedError(f"{op}(): scales lie in rows")


def _check_float8(mat_a: Tensor, mat_b: Tensor) -> None:
    """Raises where a factor is not of 8-bit floats."""
    for name, t in (("mat_a", mat_a), ("mat_b", mat_b)):
        if not str(t.dtype).startswith("torch.float8"):
            raise ValueError(f"Expected {name} to be Float8 matrix got {t.dtype}")


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_recipe_a: Any,
    scale_b: Tensor,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: _dtype = rushlight.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """mat_a @ mat_b of 8-bit floats, each times its scales, summed in float32.

    Args:
        mat_a: (m, k).
        mat_b: (k, n).
        scale_a: one number, or one for each row.
        scale_recipe_a: `ScalingType.TensorWise` or `RowWise`.
        scale_b: one number, or one for each column.
        scale_recipe_b: as above.
        swizzle_a: `SwizzleType.NO_SWIZZLE`, or None.
        swizzle_b: the same.
        bias: is added.
        output_dtype: the output dtype of the result.
        contraction_dim: refused: the sum runs over k.
        use_fast_accum: has no effect: sums are float32.

    Example:
        >>> a, b = (torch.ones(16, 16).to(torch.float8_e4m3fn) for _ in range(2))
        >>> one, kind = torch.tensor(0.5), torch.nn.functional.ScalingType.TensorWise
        >>> torch.nn.functional.scaled_mm(a, b.T, one, kind, one, kind)[0, 0]
        tensor(4., dtype=torch.bfloat16)
    """
    _check_order("scaled_mm", swizzle_a, swizzle_b)
    if contraction_dim:
        raise NotImplementedError("scaled_mm(): the sum runs over the last dimension of mat_a")
    _check_float8(mat_a, mat_b)
    scale_a, scale_b = _one(scale_a, "scale"), _one(scale_b, "scale")
    rows, columns = (mat_a.shape[0], 1), (1, mat_b.shape[1])
    _check_scale(scale_a, _one(scale_recipe_a, "recipe"), rows)
    _check_scale(scale_b, _one(scale_recipe_b, "recipe"), columns)
    out = ops.mm(mat_a.float(), mat_b.float())
    out = out * (scale_a.reshape(()) if scale_a.numel() == 1 else scale_a.reshape(rows))
    out = out * (scale_b.reshape(()) if scale_b.numel() == 1 else scale_b.reshape(columns))
    if bias is not None:
        out = out + bias
    return out.to(rushlight.bfloat16 if output_dtype is None else output_dtype)


def _grouped_mm(input, mat2, offs=None, bias=None, out_dtype=None):
    """`grouped_mm` by its op's name."""
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _scaled_mm(
    input,
    mat2,
    scale_a,
    scale_b,
    bias=None,
    scale_result=None,
    out_dtype=None,
    use_fast_accum=False,
):
    """`scaled_mm` by its op's name: scales of one number, or of rows and columns.

    Args:
        input: (m, k).
        mat2: (k, n).
        scale_a: one number, or one for each row.
        scale_b: one number, or one for each column.
        bias: is added.
        scale_result: what a result of 8 bits is multiplied by.
        out_dtype: of the result; the input's where None.
        use_fast_accum: has no effect: sums are float32.
    """
    out_dtype = input.dtype if out_dtype is None else out_dtype
    recipes = [
        ScalingType.TensorWise if s.numel() == 1 else ScalingType.RowWise
        for s in (scale_a, scale_b)
    ]
    out = scaled_mm(
        input,
        mat2,
        scale_a,
        recipes[0],
        scale_b,
        recipes[1],
        bias=bias,
        output_dtype=rushlight.float32,
        use_fast_accum=use_fast_accum,
    )
    if scale_result is not None and str(out_dtype).startswith("torch.float8"):
        out = out * scale_result
    return out.to(out_dtype)


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_recipe_a: Any,
    scale_b: Tensor,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: _dtype = rushlight.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """`grouped_mm` of 8-bit floats, each times its scales, summed in float32.

    Args:
        mat_a: (rows, k), rows in groups; or (groups, m, k).
        mat_b: (groups, k, n).
        scale_a: one for each row.
        scale_recipe_a: `ScalingType.RowWise`.
        scale_b: one for each column of each group.
        scale_recipe_b: as above.
        swizzle_a: `SwizzleType.NO_SWIZZLE`, or None.
        swizzle_b: the same.
        bias: refused.
        offs: where each group ends, int32.
        output_dtype: of the result.
        contraction_dim: refused: the sum runs over k.
        use_fast_accum: has no effect: sums are float32.

    Example:
        >>> rows, factors = torch.ones(4, 16), torch.ones(2, 16, 8)
        >>> found = torch.nn.functional.scaled_grouped_mm(
        ...     rows.to(torch.float8_e4m3fn),
        ...     factors.to(torch.float8_e4m3fn),
        ...     torch.full((4,), 0.5),
        ...     torch.nn.functional.ScalingType.RowWise,
        ...     torch.ones(2, 8),
        ...     torch.nn.functional.ScalingType.RowWise,
        ...     offs=torch.tensor([1, 4], dtype=torch.int32),
        ... )
        >>> found[0, 0]
        tensor(8., dtype=torch.bfloat16)
    """
    _check_order("scaled_grouped_mm", swizzle_a, swizzle_b)
    if contraction_dim or mat_b.dim() != 3:
        raise NotImplementedError("scaled_grouped_mm(): mat_b must be (groups, k, n)")
    _check_float8(mat_a, mat_b)
    scale_a, scale_b = _one(scale_a, "scale"), _one(scale_b, "scale")
    for recipe in (scale_recipe_a, scale_recipe_b):
        if _one(recipe, "recipe") != ScalingType.RowWise:
            raise NotImplementedError("scaled_grouped_mm(): scales are RowWise")
    a = mat_a.float() * scale_a.reshape(*mat_a.shape[:-1], 1)
    b = mat_b.float() * scale_b.reshape(mat_b.shape[0], 1, mat_b.shape[2])
    return grouped_mm(a, b, offs=offs, bias=bias).to(output_dtype)


# ---- a layer and its loss ----


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` after a linear layer.

    Args:
        input: (batch, in) or (in).
        linear_weight: (classes, …, in): one class for each place of the dimensions between.
        target: classes, or probabilities of classes.
        linear_bias: (classes, …), or None.
        weight: the weight of the classes.
        reduction: "mean", "sum" or "none".
        ignore_index: the class that counts nothing; -100 where None.
        label_smoothing: as in `cross_entropy`.
        options: refused: the layer's result is made at once.

    Example:
        >>> x, weight = torch.zeros(2, 4), torch.zeros(10, 4)
        >>> torch.nn.functional.linear_cross_entropy(x, weight, torch.tensor([1, 2]))
        tensor(2.3026)
    """
    if options is not None:
        raise NotImplementedError("linear_cross_entropy(): the layer's result is made at once")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    sizes = linear_weight.shape[:-1]
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = rushlight.nn.functional.linear(
        input, flat, None if linear_bias is None else linear_bias.reshape(-1)
    )
    return rushlight.nn.functional.cross_entropy(
        logits.reshape(*input.shape[:-1], *sizes),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
