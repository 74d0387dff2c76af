"""An op whose result, and whose arithmetic, has another dtype than its arguments."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor

__all__ = ["out_dtype"]


def out_dtype(op: Any, output_dtype: Any, *args: Any) -> Tensor:
    """Call an op so that it computes in a dtype, and gives it.

    Products of int8 matrices to int32 are multiplied as codes.

    Args:
        op: an overload, such as `ops.aten.mm.default`.
        output_dtype: of the result.
        args: of the op.

    Example:
        >>> from rushlight._higher_order_ops.out_dtype import out_dtype
        >>> a = torch.tensor([[100, 100]], dtype=torch.int8)
        >>> out_dtype(torch.ops.aten.mm.default, torch.int32, a, a.t())
        tensor([[20000]], dtype=torch.int32)
    """
    is_product = op is rushlight.ops.aten.mm.default and output_dtype == rushlight.int32
    if is_product and all(t.dtype == rushlight.int8 for t in args):
        return _C.ops._int_mm(*args)
    return op(*(t.to(output_dtype) if isinstance(t, Tensor) else t for t in args))
