"""Helpers of code that is written over ops: dtypes and their kinds, strides, checks of sizes."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._checks import wrap_dim
from rushlight._subclasses.fake_tensor import MetadataMismatchError

TensorLike = Tensor
IntLike = (int, rushlight.SymInt)
Number = (bool, int, float, complex, rushlight.SymInt, rushlight.SymFloat, rushlight.SymBool)

# A complex dtype and the dtype of its parts.
_PARTS = {
    rushlight.complex32: rushlight.float16,
    rushlight.complex64: rushlight.float32,
    rushlight.complex128: rushlight.float64,
}
_LOW_PRECISION = (rushlight.float16, rushlight.bfloat16, rushlight.complex32)
_KINDS = (bool, int, float, complex)


# ---- dtypes ----


def is_boolean_dtype(dtype: rushlight.dtype) -> bool:
    """Whether it is bool."""
    return dtype is rushlight.bool


def is_integer_dtype(dtype: rushlight.dtype) -> bool:
    """Whether it is one of the integers."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))


def is_float_dtype(dtype: rushlight.dtype) -> bool:
    """Whether it is one of the floating-point dtypes."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: rushlight.dtype) -> bool:
    """Whether it is one of the complex dtypes."""
    return dtype.is_complex


def is_low_precision_dtype(dtype: rushlight.dtype) -> bool:
    """Whether numbers of 32 bits compute for it."""
    return dtype in _LOW_PRECISION


def is_grad_dtype(dtype: rushlight.dtype) -> bool:
    """Whether there are gradients of it."""
    return dtype.is_floating_point or dtype.is_complex


def corresponding_real_dtype(dtype: rushlight.dtype) -> rushlight.dtype:
    """The dtype of the parts of a complex one."""
    return _PARTS[dtype]


def corresponding_complex_dtype(dtype: rushlight.dtype) -> rushlight.dtype:
    """The complex dtype of such parts."""
    return next(c for c, part in _PARTS.items() if part is dtype)


def dtype_to_type(dtype: rushlight.dtype) -> type:
    """The Python type of a dtype's numbers."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def dtype_to_type_ctor(dtype: rushlight.dtype) -> type:
    """What makes a Python number of a number of a dtype."""
    return dtype_to_type(dtype)


def type_to_dtype(typ: type) -> rushlight.dtype:
    """The dtype of a Python number of that type."""
    default = rushlight.get_default_dtype()
    found = {
        bool: rushlight.bool,
        int: rushlight.int64,
        float: default,
        complex: default.to_complex(),
    }
    if typ not in found:
        raise ValueError(f"Invalid type {typ}!")
    return found[typ]


def get_higher_type(a: type, b: type) -> type:
    """That of two types of numbers which holds both."""
    return _KINDS[max(_KINDS.index(a), _KINDS.index(b))]


def get_higher_dtype(a: Any, b: Any) -> rushlight.dtype | None:
    """The dtype to which two dtypes, tensors or numbers are promoted; None stands for nothing."""

    def dtype_of(x):
        if x is None or isinstance(x, rushlight.dtype):
            return x
        return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))

    a, b = dtype_of(a), dtype_of(b)
    return b if a is None else a if b is None else rushlight.promote_types(a, b)


def get_computation_dtype(dtype: rushlight.dtype) -> rushlight.dtype:
    """The dtype that computes for one."""
    wide = {rushlight.complex32: rushlight.complex64}
    return wide.get(dtype, rushlight.float32 if is_low_precision_dtype(dtype) else dtype)


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """What the dtypes of an elementwise op follow from those of its operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def elementwise_dtypes(
    *_args, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[rushlight.dtype, rushlight.dtype]:
    """The dtypes in which an elementwise op computes and in which its result is."""
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    dtype = rushlight.bool
    given = [a for a in _args if isinstance(a, (Tensor, *_KINDS))]
    if given:
        dtype = rushlight.result_type(given[0], given[0])
        common = given[0]
        for a in given[1:]:
            dtype = rushlight.result_type(common, a)
            if isinstance(a, Tensor) and (not isinstance(common, Tensor) or a.dim() > 0):
                common = a.new_empty(a.shape, dtype=dtype, device="meta")
    if type_promotion_kind is kinds.INT_TO_FLOAT and not is_grad_dtype(dtype):
        dtype = rushlight.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and is_boolean_dtype(dtype):
        return rushlight.int64, rushlight.int64
    wide = dtype if type_promotion_kind is kinds.NO_OPMATH else get_computation_dtype(dtype)
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        return wide, rushlight.bool
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and dtype.is_complex:
        return wide, corresponding_real_dtype(dtype)
    return wide, dtype


# ---- sizes and strides ----


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are one."""
    return tuple(a) == tuple(b)


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """The number of a dimension from 0 on.

    Raises:
        IndexError: there is no such dimension.
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    return wrap_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """The numbers of one or several dimensions from 0 on."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Strides of rows one after the other; without `row_major` the last matrix lies by columns."""
    # What a step of each dimension skips: all dimensions behind it.
    rows = tuple(math.prod(max(n, 1) for n in shape[d:]) for d in range(1, len(shape) + 1))
    by_columns = len(shape) > 1 and not row_major
    return (*rows[:-2], 1, max(shape[-2], 1)) if by_columns else rows


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of images or volumes whose channels lie side by side."""
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    order = [0, *range(2, len(shape)), 1]
    dense = make_contiguous_strides_for([shape[d] for d in order])
    return tuple(dense[order.index(d)] for d in range(len(shape)))


def compute_elementwise_output_strides(*tensors: Any) -> tuple[int, ...]:
    """The strides of what an elementwise op makes of operands of one shape."""
    given = [t.detach().to("meta") for t in tensors if isinstance(t, Tensor) and t.dim() > 0]
    if not given:
        return ()
    made = given[0]
    for t in given[1:]:
        made = made.to(t.dtype) + t
    return made.stride() if len(given) > 1 else rushlight.empty_like(made).stride()


def is_contiguous(a: Tensor) -> bool:
    """Whether rows lie one after the other."""
    return a.is_contiguous()


def is_contiguous_or_false(a: Tensor) -> bool:
    """`is_contiguous`; that is known of all tensors."""
    return a.is_contiguous()


def suggest_memory_format(x: Tensor) -> rushlight.memory_format:
    """The format in which a tensor lies."""
    if x.layout is rushlight.strided:
        for dims, made in ((4, rushlight.channels_last), (5, rushlight.channels_last_3d)):
            if x.dim() == dims and x.is_contiguous(memory_format=made) and not x.is_contiguous():
                return made
    return rushlight.contiguous_format


def compare_tensor_meta(
    a: Tensor,
    b: Tensor,
    check_sizes: bool = True,
    check_strides: bool = False,
    *,
    allow_rhs_unbacked: bool = False,
    check_conj: bool = True,
) -> None:
    """Compares sizes, dtypes, devices and conjugation, and strides if asked.

    Raises:
        MetadataMismatchError: they differ.
    """
    for t in (a, b):
        if not isinstance(t, Tensor):
            raise AssertionError(f"expected a Tensor, got {type(t)}")
    if check_sizes and not is_same_shape(a.shape, b.shape):
        raise MetadataMismatchError(f"Shapes {a.shape} and {b.shape} are not equal!")
    for what in ("dtype", "device"):
        if getattr(a, what) != getattr(b, what):
            raise MetadataMismatchError(
                f"{what}s {getattr(a, what)} and {getattr(b, what)} are not equal!"
            )
    if check_conj and a.is_conj() != b.is_conj():
        raise MetadataMismatchError("one of the tensors is conjugated, the other is not!")
    if check_strides and a.numel() > 0:
        pairs = enumerate(zip(a.shape, a.stride(), b.stride(), strict=True))
        wrong = next((d for d, (n, s, t) in pairs if n > 1 and s != t), None)
        if wrong is not None:
            raise MetadataMismatchError(
                f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at "
                f"{wrong})!"
            )


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError if the shapes of tensors differ; numbers have none."""
    shapes = {
        tuple(a.shape)
        for a in args
        if isinstance(a, Tensor)
        and not (allow_cpu_scalar_tensors and a.dim() == 0 and a.device.type == "cpu")
    }
    if len(shapes) > 1:
        raise RuntimeError(f"Shapes {', '.join(map(str, shapes))} are not equal!")


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError if tensors are on several devices."""
    devices = {
        a.device
        for a in args
        if isinstance(a, Tensor)
        and not (allow_cpu_scalar_tensors and a.dim() == 0 and a.device.type == "cpu")
    }
    if len(devices) > 1:
        raise RuntimeError(f"Tensor on device {', '.join(map(str, devices))} is not on one device!")
