"""Assertions as functions and as ops of aten (`ops.aten._assert_scalar`)."""

from __future__ import annotations

from rushlight import _C
from rushlight._tensor import Tensor


def _assert(condition, message):
    """`assert` that stays with `python -O` and takes a tensor as the condition."""
    if type(condition) is not Tensor and _C._has_torch_function(condition):
        return _C._offer_torch_function(_assert, (condition,), (condition, message), {})
    if not condition:  # of a tensor: whether its one element is
        raise AssertionError(message)
    return None


def _assert_async(input, assert_msg="Expected Tensor with single nonzero value, but got zero"):
    """RuntimeError where the one element of a tensor is 0."""
    if not input:
        raise RuntimeError(assert_msg)


def _assert_scalar(self, assert_msg):
    """RuntimeError where a number is 0."""
    if not self:
        raise RuntimeError(assert_msg or "Assertion is failed")


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, device=None, layout=None):
    """RuntimeError where a tensor is not as is said; what is None is not asked."""
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


def _functional_assert_async(input, assert_msg, dep_token):
    """`_assert_async` that gives the token on, so that a graph keeps the order."""
    _assert_async(input, assert_msg)
    return dep_token.clone()


def _functional_assert_scalar(self, assert_msg, dep_token):
    """`_assert_scalar` that gives the token on, so that a graph keeps the order."""
    _assert_scalar(self, assert_msg)
    return dep_token.clone()


# The ops; each schema names its function.
SCHEMAS = (
    "aten::_assert_async(Tensor self) -> ()",
    "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()",
    "aten::_assert_scalar(Scalar self, str assert_msg) -> ()",
    "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
    "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
    "aten::_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
    "aten::_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor",
)
