"""`assert_close`: values as equal as their dtype can be; messages say where they differ."""

from __future__ import annotations

import cmath
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from typing import Any

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES = {
    rushlight.float16: (1e-3, 1e-5),
    rushlight.bfloat16: (1.6e-2, 1e-5),
    rushlight.float32: (1.3e-6, 1e-5),
    rushlight.float64: (1e-7, 1e-7),
    rushlight.complex32: (1e-3, 1e-5),
    rushlight.complex64: (1.3e-6, 1e-5),
    rushlight.complex128: (1e-7, 1e-7),
}

# Of `assert_allclose`, as PyTorch documented them; other dtypes are compared exactly.
_OLD_TOLERANCES = {
    rushlight.float16: (1e-3, 1e-3),
    rushlight.float32: (1e-4, 1e-5),
    rushlight.float64: (1e-5, 1e-8),
}


def default_tolerances(*values, of_dtypes=_TOLERANCES):
    """The largest (rtol, atol) of the dtypes of tensors, or of dtypes."""
    dtypes = [v if isinstance(v, rushlight.dtype) else v.dtype for v in values]
    pairs = [of_dtypes.get(d, (0.0, 0.0)) for d in dtypes]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise unless `actual` is close to `expected`: |a - e| <= atol + rtol |e| for all elements.

    Tensors, arrays, numbers and booleans are compared, and sequences and mappings of such, item
    by item. Tolerances follow from the dtype (float32: rtol 1.3e-6, atol 1e-5; exact for
    integers) and must be given both or not at all.

    Args:
        equal_nan: two NaNs are close.
        check_device, check_dtype, check_layout, check_stride: these must be equal, too.
        msg: the error's message, or a function of the message to it.
        actual: what came.
        expected: what it is compared with.
        allow_subclasses: whether the two may be of different classes of tensors.
        rtol: the tolerance relative to `expected`; None: by the dtype.
        atol: the tolerance beside it; None: by the dtype.

    Raises:
        AssertionError: they are not close.
        ValueError: only one of the tolerances is given.
        TypeError: they are of types that cannot be compared.

    Example:
        >>> torch.testing.assert_close(torch.tensor([0.5]), torch.tensor([0.5000001]))
        >>> torch.testing.assert_close(torch.tensor([4]), torch.tensor([5]))
        Traceback (most recent call last):
            ...
        AssertionError: Tensor-likes are not equal!
        <BLANKLINE>
        Mismatched elements: 1 / 1 (100.0%)
        Greatest absolute difference: 1 at index (0,)
        Greatest relative difference: 0.2 at index (0,)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or left out; here they are {rtol} "
            f"and {atol}."
        )
    checker = _Checker(
        allow_subclasses,
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    error = checker.compare(actual, expected, "")
    if error is not None:
        if msg is not None:
            error = msg(error) if callable(msg) else msg
        raise AssertionError(error)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` under its old name, with wider tolerances and no check of the dtype.

    Args:
        actual: what came.
        expected: what it is compared with.
        rtol: the tolerance relative to `expected`; None: by the dtype.
        atol: the tolerance beside it; None: by the dtype.
        equal_nan: whether two NaNs are close.
        msg: the error's message.

    Example:
        >>> torch.testing.assert_allclose(torch.tensor([0.5]), torch.tensor([0.500001]))
    """
    actual = _tensor_of(actual)
    expected = _tensor_of(expected, actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, of_dtypes=_OLD_TOLERANCES)
    options = {"equal_nan": equal_nan, "check_dtype": False, "msg": msg or None}
    assert_close(actual, expected, rtol=rtol, atol=atol, **options)


def _tensor_of(value, dtype=None):
    return value if isinstance(value, Tensor) else rushlight.tensor(value, dtype=dtype)


def _is_array(value):
    return hasattr(value, "__array_interface__") and not isinstance(value, Tensor)


def _is_list(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class _Checker:
    def __init__(
        self, allow_subclasses, rtol, atol, equal_nan, device, dtype, layout, stride
    ) -> None:
        self.allow_subclasses = allow_subclasses
        self.rtol, self.atol = rtol, atol
        self.equal_nan = equal_nan
        self.device, self.dtype, self.layout, self.stride = device, dtype, layout, stride

    def compare(self, actual, expected, where):
        """The message of the first difference, or None."""
        if _is_list(actual) and _is_list(expected):
            return self.sequences(actual, expected, where)
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self.mappings(actual, expected, where)
        if actual is None and expected is None:
            return None
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if isinstance(actual, bool) and isinstance(expected, bool):
            if actual is not expected:
                return f"Booleans mismatch: {actual} is not {expected}{_position_text(where)}"
            return None
        both_numbers = isinstance(actual, numbers.Number) and isinstance(expected, numbers.Number)
        if both_numbers and not _is_array(actual) and not _is_array(expected):
            return self.numbers(actual, expected, where)
        both = [_as_tensor(v) for v in (actual, expected)]
        if any(t is None for t in both) or not (related or both_numbers):
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and "
                f"{type(expected)}.{_position_text(where)}"
            )
        if not self.allow_subclasses and type(actual) is not type(expected):
            raise TypeError(
                f"Types of the values to be compared differ: {type(actual)} and {type(expected)}"
            )
        left, right = both
        return self.tensors(left, right, where)

    def sequences(self, actual, expected, where):
        if len(actual) != len(expected):
            return (
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
                f"{_position_text(where)}"
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            if (error := self.compare(a, e, f"{where}[{i}]")) is not None:
                return error
        return None

    def mappings(self, actual, expected, where):
        if set(actual) != set(expected):
            missing = sorted(map(repr, set(expected) - set(actual)))
            more = sorted(map(repr, set(actual) - set(expected)))
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys: [{', '.join(missing)}]\n"
                f"Additional keys: [{', '.join(more)}]{_position_text(where)}"
            )
        for key in actual:
            if (error := self.compare(actual[key], expected[key], f"{where}[{key!r}]")) is not None:
                return error
        return None

    def numbers(self, actual, expected, where):
        if self.dtype and type(actual) is not type(expected):
            types = f"{type(actual)} != {type(expected)}"
            return f"The (d)types do not match: {types}.{_position_text(where)}"
        rtol, atol = self.rtol, self.atol
        if rtol is None:
            kinds = {int: rushlight.int64, float: rushlight.float64, complex: rushlight.complex128}
            rtol, atol = default_tolerances(
                *(kinds.get(type(v), rushlight.float64) for v in (actual, expected))
            )
        if actual == expected:
            return None
        if self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return None
        absolute = abs(actual - expected)
        if cmath.isfinite(absolute) and absolute <= atol + rtol * abs(expected):
            return None
        return _describe_numbers(actual, expected, rtol, atol) + _position_text(where)

    def tensors(self, actual, expected, where):
        if (error := self.attributes(actual, expected)) is not None:
            return error + _position_text(where)
        if actual.is_meta or expected.is_meta:
            return None
        rtol, atol = self.rtol, self.atol
        if rtol is None:
            rtol, atol = default_tolerances(actual, expected)
        a, e = actual.detach(), expected.detach()
        if a.device != e.device:
            a, e = a.cpu(), e.cpu()
        if a.dtype != e.dtype:
            common = rushlight.promote_types(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        close = rushlight.isclose(a, e, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(close.all()):
            return None
        return _describe(a, e, close, rtol, atol) + _position_text(where)

    def attributes(self, actual, expected):
        if actual.shape != expected.shape:
            return (
                "The values for attribute 'shape' do not match: "
                f"{actual.shape} != {expected.shape}."
            )
        checks = [
            (self.layout, "layout", actual.layout, expected.layout),
            (self.device, "device", actual.device, expected.device),
            (self.dtype, "dtype", actual.dtype, expected.dtype),
        ]
        if self.stride:
            checks.append((True, "stride()", actual.stride(), expected.stride()))
        for wanted, name, a, e in checks:
            if wanted and a != e:
                return f"The values for attribute '{name}' do not match: {a} != {e}."
        return None


def _as_tensor(value):
    if isinstance(value, Tensor):
        return value
    if _is_array(value) or isinstance(value, numbers.Number):
        return rushlight.as_tensor(value)
    return None


def _position_text(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _limit_text(limit: float, rtol: float, atol: float) -> str:
    return "" if rtol == atol == 0 else f" (up to {limit} allowed)"


def _wanted_text(rtol: float, atol: float) -> str:
    return "equal" if rtol == atol == 0 else "close"


def _describe_numbers(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected else float("inf")
    return (
        f"Scalars are not {_wanted_text(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {absolute}{_limit_text(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{_limit_text(rtol, rtol, atol)}"
    )


def _describe(actual, expected, close, rtol, atol):
    """How many elements differ, and the largest differences with their places."""
    if actual.dim() == 0:
        return _describe_numbers(actual.item(), expected.item(), rtol, atol)
    wide = rushlight.complex128 if actual.is_complex() else rushlight.float64
    if not actual.is_floating_point() and not actual.is_complex():
        wide = rushlight.int64
    a, e = actual.to(wide), expected.to(wide)
    off = ~close
    difference = (a - e).abs()
    # What is close is not to be found; NaN, which compares with nothing, is.
    difference = rushlight.where(off, difference, rushlight.zeros_like(difference))
    magnitude = e.abs()
    relative = difference.to(rushlight.float64) / magnitude.to(rushlight.float64)
    relative = rushlight.where(off, relative, rushlight.zeros_like(relative))
    count, total = int(off.sum()), actual.numel()
    return (
        f"Tensor-likes are not {_wanted_text(rtol, atol)}!\n\n"
        f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)\n"
        f"Greatest absolute difference: {_largest(difference)}{_limit_text(atol, rtol, atol)}\n"
        f"Greatest relative difference: {_largest(relative)}{_limit_text(rtol, rtol, atol)}"
    )


def _largest(values: Tensor) -> str:
    place = int(values.reshape(-1).argmax())
    index: list[int] = []
    for size in reversed(values.shape):
        index.append(place % size)
        place //= size
    found = tuple(reversed(index))
    return f"{values[found].item()} at index {found}"
