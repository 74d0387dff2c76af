"""The generic suite: what must hold of every op, for every sample that its family lists.

Each test is one mode over one op; modes that do not apply to an op are not collected for it.
"""

import operator
import re

import numpy as np
import pytest

import rushlight
from rushlight.autograd import gradcheck, gradgradcheck
from tests.ops import harness
from tests.ops.harness import Makers, array, assert_same, function_of, tensors_of

CASES = harness.cases()
RANDOM = {"random"}  # families whose results differ from call to call


def over(*conditions):
    """Parametrises a test over the ops for which all conditions hold."""
    chosen = [c for c in CASES if c.samples and all(f(c) for f in conditions)]
    return pytest.mark.parametrize("case", chosen, ids=[c.key for c in chosen])


def deterministic(case):
    return case.op.family not in RANDOM


def has_form(form):
    return lambda case: form in case.op.variants


def differentiable(case):
    return isinstance(case.op.grad, dict) or (case.op.kind == "composite" and case.op.grad != "none")


def skip_if_said(case, mode):
    if mode in case.skips:
        pytest.skip(case.skips[mode])


def run(case, dtype, text, layout="contiguous"):
    args, kwargs = Makers(rushlight, dtype, case.key + text, layout=layout).arguments(text)
    return function_of(rushlight, case.op)(*args, **kwargs)


@over(deterministic)
def test_runs_alike_on_any_layout(case):
    skip_if_said(case, "layout")
    for dtype in case.dtypes:
        for text in case.samples:
            expected = run(case, dtype, text)
            for layout in ("strided", "transposed"):
                tolerance = harness.TOLERANCE.get(dtype, 0)
                assert_same(run(case, dtype, text, layout), expected, tolerance)


@over(deterministic)
def test_true_is_any_byte_but_zero(case):
    skip_if_said(case, "layout")
    truth = lambda t: t.detach().view(rushlight.uint8).ne(0) if t.dtype == rushlight.bool else t
    for dtype in {*case.dtypes[:1], "bool"}:
        for text in case.samples:
            if dtype != "bool" and "mask(" not in text:
                continue
            try:
                expected = run(case, dtype, text)
            except (RuntimeError, ValueError, TypeError, IndexError):
                continue  # an op that takes no bools
            actual = run(case, dtype, text, "bytes")
            assert_same([truth(t) for t in tensors_of(actual)], [truth(t) for t in tensors_of(expected)])


@over(deterministic, lambda c: isinstance(c.op.ref, str))
def test_equals_numpy(case):
    skip_if_said(case, "reference")
    reference = operator.attrgetter(case.op.ref.removeprefix("numpy."))(np)
    for dtype in ("float64", "float32"):
        if dtype not in case.dtypes:
            continue
        for text in case.samples:
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            if kwargs or not all(hasattr(a, "numpy") for a in args):
                continue
            with np.errstate(all="ignore"):
                expected = reference(*[array(a) for a in args])
            actual = array(function_of(rushlight, case.op)(*args))
            tolerance = harness.TOLERANCE[dtype]
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(harness.DEVICE == "cpu", reason="compares another device with the CPU")
@over(deterministic)
def test_equals_the_cpu(case):
    skip_if_said(case, "device")
    for dtype in case.dtypes:
        for text in case.samples:
            makers = Makers(rushlight, dtype, case.key + text)
            makers.device = "cpu"
            with rushlight.device("cpu"):
                args, kwargs = makers.arguments(text)
                if not tensors_of(args):  # a factory
                    continue
                expected = function_of(rushlight, case.op)(*args, **kwargs)
            assert_same(run(case, dtype, text), expected, harness.TOLERANCE.get(dtype, 0))


@over(deterministic, has_form("function"), has_form("method"))
def test_method_equals_function(case):
    for text in case.samples:
        args, kwargs = Makers(rushlight, case.dtypes[0], case.key + text).arguments(text)
        receiver = args.pop(case.op.receiver)
        if isinstance(receiver, rushlight.Tensor):
            expected = run(case, case.dtypes[0], text)
            assert_same(getattr(receiver, case.op.name)(*args, **kwargs), expected)


@over(deterministic, has_form("inplace"), has_form("function"), has_form("method"))
def test_inplace_equals_function(case):
    skip_if_said(case, "inplace")
    for dtype in case.dtypes:
        for text in case.samples:
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            expected = run(case, dtype, text)
            target = args[0]
            if not isinstance(target, rushlight.Tensor) or target.shape != expected.shape:
                continue
            if target.dtype != expected.dtype and not rushlight.can_cast(expected.dtype, target.dtype):
                with pytest.raises(RuntimeError, match="can't be cast"):
                    getattr(target, case.op.name + "_")(*args[1:], **kwargs)
                continue
            version, address = target._version, target.data_ptr()
            result = getattr(target, case.op.name + "_")(*args[1:], **kwargs)
            assert result is target and target.data_ptr() == address and target._version > version
            assert_same(target, expected.to(target.dtype))


@over(deterministic, has_form("out"), has_form("function"))
def test_out_equals_function(case):
    skip_if_said(case, "out")
    for text in case.samples:
        args, kwargs = Makers(rushlight, case.dtypes[0], case.key + text).arguments(text)
        expected = run(case, case.dtypes[0], text)
        outs = [rushlight.empty(0, dtype=t.dtype) for t in tensors_of(expected)]
        out = outs[0] if len(outs) == 1 and not isinstance(expected, tuple) else tuple(outs)
        function_of(rushlight, case.op)(*args, **kwargs, out=out)
        assert_same(outs, tensors_of(expected))


@over(deterministic, lambda c: c.op.kernel.kind != "dynamic")
def test_meta_tells_shape_and_dtype(case):
    skip_if_said(case, "meta")
    for dtype in case.dtypes:
        for text in case.samples:
            args, kwargs = Makers(rushlight, dtype, case.key + text).arguments(text)
            if not tensors_of(args):  # a factory: nothing says meta
                continue
            expected = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
            meta = [to_meta(a) for a in args]
            actual = tensors_of(function_of(rushlight, case.op)(*meta, **{k: to_meta(v) for k, v in kwargs.items()}))
            assert [(t.shape, t.dtype) for t in actual] == [(t.shape, t.dtype) for t in expected]
            assert all(t.device.type == "meta" for t in actual)


REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, rushlight.linalg.LinAlgError)


def resized(text):
    """Samples with every number that stands in one replaced by 0, 1 and -1: in all places, then in each alone."""
    number = r"(?<![\w.-])-?\d+(?![\w.])"
    for new in ("0", "1", "-1"):
        for old in sorted(set(re.findall(number, text))):
            yield re.sub(number, lambda m, new=new, old=old: new if m.group() == old else m.group(), text)
        for m in re.finditer(number, text):
            yield text[: m.start()] + new + text[m.end() :]


@over(deterministic)
def test_numbers_may_be_zero_one_and_less(case):
    """Sizes and settings of 0, 1 and -1 are taken or refused properly, and alike on meta."""

    def outcome(args, kwargs):
        try:
            found = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
        except REFUSALS as error:
            return type(error)
        return [(t.shape, t.dtype) for t in found]

    on_meta = case.op.kernel.kind != "dynamic" and "meta" not in case.skips
    for text in dict.fromkeys(changed for sample in case.samples for changed in resized(sample)):
        try:
            args, kwargs = Makers(rushlight, case.dtypes[0], case.key + text).arguments(text)
        except (*REFUSALS, KeyError, np.linalg.LinAlgError):
            continue  # no such inputs can be made
        meta = [to_meta(a) for a in args], {k: to_meta(v) for k, v in kwargs.items()}
        result = outcome(args, kwargs)
        if on_meta and isinstance(result, list) and tensors_of(args):
            assert outcome(*meta) == result, text


def to_meta(value):
    if isinstance(value, rushlight.Tensor):
        return rushlight.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(to_meta(v) for v in value)
    return value


@over(deterministic, differentiable, lambda c: "float64" in c.dtypes)
def test_gradients(case):
    skip_if_said(case, "grad")
    for text in case.samples:
        makers = Makers(rushlight, "float64", case.key + text, requires_grad=True)
        args, kwargs = makers.arguments(text)
        # Differences cost a call per element: larger samples are for the other modes.
        if not makers.inputs or not 0 < sum(t.numel() for t in makers.inputs) <= 60:
            continue
        if any(t.numel() == 0 for t in makers.inputs):
            continue

        def function(*inputs, args=args, kwargs=kwargs):
            # The sample's own tensors are replaced, in order, by what the checker gives.
            given = iter(inputs)
            replace = lambda v: next(given) if isinstance(v, rushlight.Tensor) and v.requires_grad else v
            fresh = [[replace(e) for e in a] if isinstance(a, (list, tuple)) else replace(a) for a in args]
            result = function_of(rushlight, case.op)(*fresh, **{k: replace(v) for k, v in kwargs.items()})
            return tuple(t for t in tensors_of(result) if t.requires_grad)

        if not function(*makers.inputs):
            continue
        assert gradcheck(function, tuple(makers.inputs))
        if "gradgrad" not in case.skips:
            assert gradgradcheck(function, tuple(makers.inputs))


@over(deterministic, lambda c: not any(a.type.base in ("options", "Generator") for a in c.op.args))
def test_boxed_form_equals_function(case):
    skip_if_said(case, "boxed")
    for text in case.samples:
        args, kwargs = Makers(rushlight, case.dtypes[0], case.key + text).arguments(text)
        if kwargs or len(args) != len(case.op.args):
            continue
        if any(a.type.number and not isinstance(v, rushlight.Tensor) for a, v in zip(case.op.args, args, strict=True)):
            continue
        boxed = getattr(getattr(rushlight.ops.aten, case.op.name), case.op.overload or "default")
        assert_same(boxed(*args), run(case, case.dtypes[0], text))


ERRORS = [(c, *e) for c in CASES for e in c.errors]


@pytest.mark.parametrize(("case", "text", "error", "message"), ERRORS, ids=[f"{c.key}({t})" for c, t, *_ in ERRORS])
def test_declared_errors(case, text, error, message):
    with pytest.raises(error, match=message):
        run(case, case.dtypes[0], text)


def test_skips_have_reasons():
    for case in CASES:
        assert all(isinstance(why, str) and len(why) > 10 for why in case.skips.values())
