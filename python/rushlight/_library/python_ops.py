"""`rushlight.ops`, with those ops of PyTorch's that are Python here: `ops.aten._pin_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import _C
from rushlight._lazy import later
from rushlight._library import registry
from rushlight._library import schema as schemas
from rushlight._ops import _overload, ops

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["_overload", "ops"]


def _op(schema: str, space: str = "aten") -> Callable[..., Any]:
    """Decorates what an op of that schema does, made of other ops."""

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        op = registry.define(schemas.parse(schema, space))
        op.implement("CompositeImplicitAutograd", function)
        return function

    return define


@_op("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def _pin_memory(self, device=None):
    return _C._pin_memory(self)


@_op("is_pinned(Tensor self, Device? device=None) -> bool")
def is_pinned(self: Any, device: Any = None) -> bool:
    return self.is_pinned()


@_op("_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool")
def _has_compatible_shallow_copy_type(self: Any, other: Any) -> bool:
    """Whether `self.data = other` is possible: both have memory of one kind."""
    return self.layout == other.layout and self.device.type == other.device.type


@_op("lift_fresh_copy(Tensor self) -> Tensor")
def lift_fresh_copy(self):
    """A copy of a constant: where the op is run, nobody else has the tensor."""
    return self.clone()


@_op("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
def copy(self, src, non_blocking=False):
    """`copy_` into a copy: in graphs without writes in place."""
    return self.clone().copy_(src, non_blocking)


@_op("numpy_T(Tensor(a) self) -> Tensor(a)")
def numpy_t(self):
    return self.T


@_op(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor"
)
def _sparse_addmm(self, mat1, mat2, beta=1, alpha=1):
    return rushlight.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


@_op("item(Tensor self) -> Scalar")
def item(self):
    return self.item()


@_op(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def _grouped_mm(self: Any, mat2: Any, *rest: Any, **more: Any) -> Any:
    return rushlight._grouped_mm(self, mat2, *rest, **more)


@_op(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor"
)
def _scaled_mm(self: Any, mat2: Any, *rest: Any, **more: Any) -> Any:
    return rushlight._scaled_mm(self, mat2, *rest, **more)


# ---- softmax, as PyTorch's kernels are called ----


def _softmax_dtype(self, half_to_float):
    if half_to_float and self.dtype != rushlight.float16:
        raise RuntimeError("conversion is supported for Half type only")
    return rushlight.float32 if half_to_float else None


@_op("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
def _softmax(self, dim, half_to_float):
    return rushlight.softmax(self, dim, dtype=_softmax_dtype(self, half_to_float))


@_op("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
def _log_softmax(self, dim, half_to_float):
    return rushlight.log_softmax(self, dim, dtype=_softmax_dtype(self, half_to_float))


# ---- assertions ----


@_op("_assert_async(Tensor self) -> ()")
def _assert_async(self):
    rushlight._assert_async(self)


@_op("_assert_async.msg(Tensor self, str assert_msg) -> ()")
def _assert_async_msg(self, assert_msg):
    rushlight._assert_async(self, assert_msg)


@_op("_assert_scalar(Scalar self, str assert_msg) -> ()")
def _assert_scalar(self, assert_msg):
    """RuntimeError if a number is 0."""
    if not self:
        raise RuntimeError(assert_msg or "Assertion is failed")


@_op(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
    "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()"
)
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """RuntimeError if a tensor is not as is said; what is None is not asked."""
    for name, expected, got in (
        ("sizes", size, a.shape),
        ("strides", stride, None if stride is None else a.stride()),
        ("dtype", dtype, a.dtype),
        ("device", device, a.device),
        ("layout", layout, a.layout),
    ):
        if expected is None:
            continue
        if isinstance(got, tuple):
            expected, got = list(expected), list(got)
        if expected != got:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {got}")


@_op("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor")
def _functional_assert_async(self, assert_msg, dep_token):
    """`_assert_async` that gives the token on, so that a graph keeps the order."""
    rushlight._assert_async(self, assert_msg)
    return dep_token.clone()


@_op("_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor")
def _functional_assert_scalar(self, assert_msg, dep_token):
    """`_assert_scalar` that gives the token on, so that a graph keeps the order."""
    _assert_scalar(self, assert_msg)
    return dep_token.clone()


_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@_op("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()")
def sym_constrain_range(size: Any, *, min: Any = None, max: Any = None) -> None:
    """RuntimeError if a number is not from `min` to `max`.

    Args:
        size: the number.
        min: the least that it may be; None: any.
        max: the most that it may be; None: any.

    Example:
        >>> torch.sym_constrain_range(4, min=2, max=8)
        >>> torch.sym_constrain_range(9, max=8)
        Traceback (most recent call last):
            ...
        RuntimeError: Invalid value range for 9 ...
    """
    low = _LOWEST if min is None else min
    high = _HIGHEST if max is None else max
    if high < low:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= int(size) <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@_op("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
def sym_constrain_range_for_size(size: Any, *, min: Any = None, max: Any = None) -> None:
    """The same of a size, which is not negative; `max` is above 2.

    Args:
        size: the number.
        min: the least that it may be; None: 0.
        max: the most that it may be; None: any.

    Example:
        >>> torch.sym_constrain_range_for_size(4, max=8)
    """
    if max is not None and max <= 2:
        raise RuntimeError(
            f"Max value to constrain_range_for_size must be greater than 2. got: {max}"
        )
    sym_constrain_range(size, min=0 if min is None else min, max=max)


@_op("_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor")
def _functional_sym_constrain_range(size, min, max, dep_token):
    """`sym_constrain_range` that gives the token on."""
    sym_constrain_range(size, min=min, max=max)
    return dep_token.clone()


@_op(
    "_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) "
    "-> Tensor"
)
def _functional_sym_constrain_range_for_size(size, min, max, dep_token):
    """`sym_constrain_range_for_size` that gives the token on."""
    sym_constrain_range_for_size(size, min=min, max=max)
    return dep_token.clone()


# ---- indices of sparse matrices ----


@_op("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor")
def _convert_indices_from_coo_to_csr(
    self: rushlight.Tensor, size: int, *, out_int32: bool = False
) -> rushlight.Tensor:
    """Where each of `size` rows begins, from the sorted rows of all elements."""
    edges = rushlight.arange(size + 1, dtype=self.dtype, device=self.device)
    return rushlight.searchsorted(self, edges, out_int32=out_int32)


@_op(
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, "
    "bool out_int32=False, bool transpose=False) -> Tensor"
)
def _convert_indices_from_csr_to_coo(
    crow_indices: rushlight.Tensor,
    col_indices: rushlight.Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> rushlight.Tensor:
    """Row and column of all elements (with `transpose` column and row), after those of batches."""
    counts = crow_indices.diff(dim=-1)
    places = rushlight.repeat_interleave(counts.flatten())
    *batch, row = rushlight.unravel_index(places, counts.shape)
    pair = (row, col_indices.flatten())
    indices = rushlight.stack([*batch, *(reversed(pair) if transpose else pair)])
    return indices.to(rushlight.int32 if out_int32 else rushlight.int64)


# ---- collectives that return their results ----

_COLLECTIVES = "_c10d_functional"


_collectives = later("rushlight.distributed._functional_collectives")


def _collective(name: str, *args: Any) -> Any:
    return getattr(_collectives, name)(*args)


@_op("wait_tensor(Tensor tensor) -> Tensor", "c10d_functional")
@_op("wait_tensor(Tensor tensor) -> Tensor", _COLLECTIVES)
def _wait_tensor(tensor: Any) -> Any:
    return tensor


@_op("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor", _COLLECTIVES)
def _all_reduce(input: Any, reduce_op: str, group_name: str) -> Any:
    return _collective("all_reduce", input, reduce_op, group_name)


@_op("all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor", _COLLECTIVES)
def _all_gather_into_tensor(input: Any, group_size: int, group_name: str) -> Any:
    return _collective("all_gather_tensor", input, 0, group_name)


@_op(
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
    _COLLECTIVES,
)
def _reduce_scatter_tensor(input: Any, reduce_op: str, group_size: int, group_name: str) -> Any:
    return _collective("reduce_scatter_tensor", input, reduce_op, 0, group_name)


@_op("broadcast(Tensor input, int src, str group_name) -> Tensor", _COLLECTIVES)
def _broadcast(input: Any, src: int, group_name: str) -> Any:
    return _collective("broadcast", input, src, group_name)


@_op("_wrap_tensor_autograd(Tensor input) -> Tensor", _COLLECTIVES)
def _wrap_tensor_autograd(input: Any) -> Any:
    return input


# Their older names, with the ranks of a group.
@_op(
    "all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor",
    "c10d_functional",
)
def _all_gather_of_ranks(shard: Any, tag: str, ranks: Any, group_size: int) -> Any:
    return _collective("all_gather_tensor", shard, 0, list(ranks))


@_op("scatter_(Tensor[] output, Tensor[] inputs, str group_name, int src) -> Tensor[]", "c10d")
def _scatter(output: Any, inputs: Any, group_name: str, src: int) -> Any:
    raise NotImplementedError("c10d.scatter_ is no op here: distributed.scatter does the same")
