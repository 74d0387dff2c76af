"""The generic suite: what must hold of every op, for every sample that its family lists.

Each test is one mode over one op; modes that do not apply to an op are not collected for it, and a test that compared
nothing fails (`harness.over`). `case.skips` are the modes that an op is excused from, with the reason.
"""

import re

import numpy as np
import pytest

import rushlight
from gen.registry import overloads_of_form
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map
from tests.ops import harness
from tests.ops.harness import (
    Makers,
    array,
    assert_close,
    assert_same,
    boxed_of,
    count,
    function_of,
    over,
    tensors_of,
)
from tests.ops.references import expected_of
from tests.ops.rules import call

CASES = harness.repeatable()


def has_form(form):
    return lambda case: form in case.op.variants


def has_shape_function(case):
    return case.op.kernel.kind != "dynamic"


def takes_tensors(case):
    return bool(case.op.tensors)


def gives_tensors(case):
    return any(r.type.base == "Tensor" for r in case.op.results)


# The wider dtype of each.
WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


def takes_floats(case):
    return takes_tensors(case) and any(dtype in WIDER for dtype in case.dtypes)


def takes_complex(case):
    return harness.accepts(rushlight, case, "complex128")


def takes_bools(case):
    return any("mask(" in text for text in case.samples) or harness.accepts(rushlight, case, "bool")


def differentiable(case):
    if case.op.kind == "composite":
        return case.op.grad != "none" and takes_tensors(case) and case.gradient
    return isinstance(case.op.grad, dict) and not case.refuses


def inputs_of(case, dtype, text, **how):
    return Makers(rushlight, dtype, case.key + text, **how).arguments(text)


def run(case, dtype, text, op=None, **how):
    args, kwargs = inputs_of(case, dtype, text, **how)
    return function_of(rushlight, op or case.op)(*args, **kwargs)


# ---- values ----


@over(takes_tensors, mode="layout")
def test_runs_alike_on_any_layout(case):
    for dtype in case.dtypes:
        for text in case.samples:
            expected = run(case, dtype, text)
            for layout in ("strided", "transposed", "channels_last"):
                assert_same(run(case, dtype, text, layout=layout), expected, harness.TOLERANCE.get(dtype, 0))


REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, rushlight.linalg.LinAlgError)


@over(takes_tensors, takes_bools, mode="layout")
def test_true_is_any_byte_but_zero(case):
    truth = lambda t: t.detach().view(rushlight.uint8).ne(0) if t.dtype == rushlight.bool else t
    for dtype in {*case.dtypes[:1], "bool"}:
        for text in case.samples:
            if dtype != "bool" and "mask(" not in text:
                continue
            try:
                expected = run(case, dtype, text)
            except REFUSALS:
                assert dtype not in case.dtypes, text
                continue
            actual = run(case, dtype, text, layout="bytes")
            if isinstance(expected, int):  # or a bool
                assert_same(actual, expected)
            assert_same([truth(t) for t in tensors_of(actual)], [truth(t) for t in tensors_of(expected)])


def tolerance_of(case, dtype, result):
    """Of a result: that of its dtype, or of the inputs' if they are rougher."""
    return case.looser * max(harness.TOLERANCE.get(name, 0) for name in (dtype, harness.name_of(result.dtype)))


# Families whose elements stand for themselves or are reduced; sums of products with infinities depend on their order.
WITH_SPECIAL = {"activation", "arrange", "comparison", "complex", "creation", "index", "pad", "pointwise", "reduce", "scan", "shape", "softmax", "sort", "special", "statistics"}


def assert_equals_reference(case, dtype, text, **how):
    args, kwargs = inputs_of(case, dtype, text, **how)
    with np.errstate(all="ignore"):
        expected = expected_of(case, dtype, args, kwargs)
    result = function_of(rushlight, case.op)(*args, **kwargs)
    if isinstance(result, bool):
        assert [result] == expected
        count()
        return
    result = tensors_of(result)
    assert len(result) == len(expected)
    for ours, theirs in zip(result, expected, strict=True):
        if theirs is not None:
            actual = array(ours)
            if (actual.dtype.kind == "c") == (theirs.dtype.kind == "c"):
                with np.errstate(all="ignore"):  # wraps round and overflows as the result does
                    theirs = theirs.astype(actual.dtype)
            assert_close(actual, theirs, tolerance_of(case, dtype, ours))


def has_reference(case):
    return case.reference is not None


@over(has_reference, mode="reference")
def test_equals_reference(case):
    for dtype in case.dtypes:
        for text in case.samples:
            assert_equals_reference(case, dtype, text)


def takes_special_values(case):
    return case.op.family in WITH_SPECIAL and takes_tensors(case) and "float64" in case.dtypes


@over(has_reference, takes_special_values, mode="special")
def test_special_values_equal_the_reference(case):
    """Zeros of both signs, ones, infinities and NaN."""
    for dtype in {"float64", "float32"} & set(case.dtypes):
        for text in case.samples:
            assert_equals_reference(case, dtype, text, special=True)


@over(takes_floats, lambda case: not has_reference(case), mode="precision")
def test_float64_agrees(case):
    """What has no reference is at least what the same op gives of the same numbers in float64."""
    for dtype in set(case.dtypes) & set(WIDER):
        for text in case.samples:
            args, kwargs = inputs_of(case, dtype, text)
            wide = lambda v, dtype=dtype: widened(v, dtype)
            expected = tensors_of(function_of(rushlight, case.op)(*map(wide, args), **{k: wide(v) for k, v in kwargs.items()}))
            actual = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
            for ours, theirs in zip(actual, expected, strict=True):
                assert_close(array(ours), array(theirs).astype(array(ours).dtype), tolerance_of(case, dtype, ours))


def widened(value, dtype):
    if isinstance(value, (list, tuple)):
        return type(value)(widened(v, dtype) for v in value)
    if isinstance(value, rushlight.Tensor) and harness.name_of(value.dtype) == dtype:
        return value.to(getattr(rushlight, WIDER[dtype]))
    return getattr(rushlight, WIDER[dtype]) if value == getattr(rushlight, dtype) else value


if harness.DEVICE != "cpu":

    @over(takes_tensors, mode="device")
    def test_equals_the_cpu(case):
        for dtype in case.dtypes:
            for text in case.samples:
                makers = Makers(rushlight, dtype, case.key + text)
                makers.device = "cpu"
                with rushlight.device("cpu"):
                    args, kwargs = makers.arguments(text)
                    expected = function_of(rushlight, case.op)(*args, **kwargs)
                assert_same(run(case, dtype, text), expected, harness.TOLERANCE.get(dtype, 0))


# ---- forms ----


@over(has_form("function"), has_form("method"))
def test_method_equals_function(case):
    for text in case.samples:
        args, kwargs = inputs_of(case, case.dtypes[0], text)
        receiver = args.pop(case.op.receiver)
        if isinstance(receiver, rushlight.Tensor):
            assert_same(getattr(receiver, case.op.name)(*args, **kwargs), run(case, case.dtypes[0], text))


@over(has_form("inplace"), has_form("function"), has_form("method"), mode="inplace")
def test_inplace_equals_function(case):
    for dtype in case.dtypes:
        for text in case.samples:
            assert_in_place(case, dtype, text, run(case, dtype, text))


@over(has_form("method"), among=lambda case: case.base is not None, mode="inplace")
def test_inplace_name_equals_function(case):
    for text in case.samples:
        expected = run(case, case.dtypes[0], text, case.base)
        if case.op.family != "shape":
            assert_in_place(case, case.dtypes[0], text, expected)
            continue
        (target, *args), kwargs = inputs_of(case, case.dtypes[0], text)  # other sizes and strides, the same memory
        assert getattr(target, case.op.name)(*args, **kwargs) is target
        assert_same(target, expected)


def assert_in_place(case, dtype, text, expected):
    args, kwargs = inputs_of(case, dtype, text)
    target, *args = args
    if not isinstance(target, rushlight.Tensor) or target.shape != expected.shape:
        return
    if target.is_complex() and case.op.kernel.promote == "real":
        with pytest.raises(RuntimeError, match="complex"):
            getattr(target, case.op.inplace_name)(*args, **kwargs)
        return
    method = getattr(target, case.op.inplace_name)
    if not rushlight.can_cast(expected.dtype, target.dtype):
        with pytest.raises(RuntimeError, match="can't be cast"):
            method(*args, **kwargs)
        return
    version, address = target._version, target.data_ptr()
    result = method(*args, **kwargs)
    assert result is target and target.data_ptr() == address and target._version > version
    assert_same(target, expected.to(target.dtype))


@over(lambda case: "out" in case.op.forms, mode="out")
def test_out_equals_function(case):
    """Python's function where it takes `out`, else the registry's overload."""
    for text in case.samples:
        args, kwargs = inputs_of(case, case.dtypes[0], text)
        expected = run(case, case.dtypes[0], text)
        outs = [rushlight.empty(0, dtype=t.dtype) for t in tensors_of(expected)]
        if case.op.python_out and has_form("function")(case):
            out = outs[0] if len(outs) == 1 and not isinstance(expected, tuple) else tuple(outs)
            function_of(rushlight, case.op)(*args, **kwargs, out=out)
        else:
            expected = boxed_of(rushlight, case.op)(*args, **kwargs)
            outs = [rushlight.empty(0, dtype=t.dtype) for t in tensors_of(expected)]
            for option in ("dtype", "device", "layout", "pin_memory"):
                kwargs.pop(option, None)
            names = [a.name for a in overloads_of_form(case.op, "out")[0].args if "!" in a.type.alias]
            given = dict(zip(names, outs, strict=True))
            boxed_of(rushlight, case.op, "out")(*args, **kwargs, **given)
        assert_same(outs, tensors_of(expected))


def is_unpromoted(case):
    kernel = case.op.kernel
    return kernel.kind == "pointwise" and kernel.promote in ("same", "real") and len(case.op.tensors) == 1


@over(is_unpromoted, lambda case: case.op.python_out and "float32" in case.dtypes)
def test_out_of_another_dtype(case):
    for text in case.samples:
        args, kwargs = inputs_of(case, "float32", text)
        out = rushlight.empty(0, dtype=rushlight.float64)
        count(1)
        if "any_dtype" in case.op.out:
            function_of(rushlight, case.op)(*args, **kwargs, out=out)
            continue
        with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
            function_of(rushlight, case.op)(*args, **kwargs, out=out)


@over(mode="boxed")
def test_boxed_form_equals_function(case):
    for text in case.samples:
        args, kwargs = inputs_of(case, case.dtypes[0], text)
        assert_same(boxed_of(rushlight, case.op)(*args, **kwargs), run(case, case.dtypes[0], text))


# ---- shapes ----


@over(has_shape_function, takes_tensors, gives_tensors, mode="meta")
def test_meta_tells_shape_and_dtype(case):
    for dtype in case.dtypes:
        for text in case.samples:
            args, kwargs = inputs_of(case, dtype, text)
            expected = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
            if not tensors_of([*args, *kwargs.values()]):
                continue
            meta = [to_meta(a) for a in args]
            actual = tensors_of(function_of(rushlight, case.op)(*meta, **{k: to_meta(v) for k, v in kwargs.items()}))
            assert [(t.shape, t.dtype) for t in actual] == [(t.shape, t.dtype) for t in expected]
            assert all(t.device.type == "meta" for t in actual)
            count(len(expected))


FAKE = FakeTensorMode(allow_non_fake_inputs=True)


def to_fake(value):
    return tree_map(lambda t: FAKE.from_tensor(t) if isinstance(t, rushlight.Tensor) else t, value)


@over(takes_tensors, gives_tensors, mode="fake")
def test_fakes_tell_shape_dtype_and_device(case):
    """Composites, too: an op that wants to see values says so, and reads nothing that is not there."""
    for dtype in case.dtypes[:1]:
        for text in case.samples:
            args, kwargs = inputs_of(case, dtype, text)
            fakes, named = to_fake(args), to_fake(kwargs)
            expected = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
            try:
                with FAKE:
                    actual = tensors_of(function_of(rushlight, case.op)(*fakes, **named))
            except (DataDependentOutputException, DynamicOutputShapeException):
                count(1)
                continue
            facts = [(t.shape, t.dtype, t.device) for t in actual]
            assert facts == [(t.shape, t.dtype, t.device) for t in expected]
            count(1)


def resized(text):
    """Samples with every number that stands in one replaced by 0, 1 and -1: in all places, then in each alone."""
    number = r"(?<![\w.-])-?\d+(?![\w.])"
    for new in ("0", "1", "-1"):
        for old in sorted(set(re.findall(number, text))):
            yield re.sub(number, lambda m, new=new, old=old: new if m.group() == old else m.group(), text)
        for m in re.finditer(number, text):
            yield text[: m.start()] + new + text[m.end() :]


@over(lambda case: any(list(resized(text)) for text in case.samples))
def test_numbers_may_be_zero_one_and_less(case):
    """Sizes and settings of 0, 1 and -1 are taken or refused properly, and alike on meta."""

    def outcome(args, kwargs):
        try:
            found = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
        except (*REFUSALS, AssertionError) as error:
            return type(error)
        return [(t.shape, t.dtype) for t in found]

    on_meta = has_shape_function(case) and "meta" not in case.skips
    for text in dict.fromkeys(changed for sample in case.samples for changed in resized(sample)):
        try:
            args, kwargs = inputs_of(case, case.dtypes[0], text)
        except (*REFUSALS, KeyError, np.linalg.LinAlgError):
            continue  # no such inputs can be made
        meta = [to_meta(a) for a in args], {k: to_meta(v) for k, v in kwargs.items()}
        result = outcome(args, kwargs)
        count()
        if on_meta and isinstance(result, list) and tensors_of(args):
            assert outcome(*meta) == result, text


def to_meta(value):
    if isinstance(value, rushlight.Tensor):
        return rushlight.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(to_meta(v) for v in value)
    return value


# ---- gradients ----


def call_of_inputs(case, args, kwargs):
    """The op as a function of the tensors of a sample that require a gradient, in order."""

    def function(*inputs):
        given = iter(inputs)
        replace = lambda v: next(given) if isinstance(v, rushlight.Tensor) and v.requires_grad else v
        fresh = [[replace(e) for e in a] if isinstance(a, (list, tuple)) else replace(a) for a in args]
        result = function_of(rushlight, case.op)(*fresh, **{k: replace(v) for k, v in kwargs.items()})
        return tuple(t for t in tensors_of(result) if t.requires_grad)

    return function


# Differences cost a call per element: larger samples are for the other modes.
MOST_ELEMENTS = 60


def check_gradients(case, dtype, text, change=lambda case, args, kwargs: (args, kwargs), **how):
    makers = Makers(rushlight, dtype, case.key + text, requires_grad=True, **how)
    try:
        function = call_of_inputs(case, *change(case, *makers.arguments(text)))
        elements = sum(t.numel() for t in makers.inputs)
        if not makers.inputs or min(t.numel() for t in makers.inputs) == 0 or elements > MOST_ELEMENTS:
            return
        results = function(*makers.inputs)
    except REFUSALS:
        assert "complex" in dtype, text  # an order, a window, or an extreme of complex numbers
        return
    if not results:
        return
    assert gradcheck(function, tuple(makers.inputs))
    count(elements)
    if "gradgrad" not in case.skips:
        assert gradgradcheck(function, tuple(makers.inputs))


@over(differentiable, lambda case: "float64" in case.dtypes, mode="grad")
def test_gradients(case):
    for text in case.samples:
        check_gradients(case, "float64", text)
        if "ints(" in text:
            check_gradients(case, "float64", text, repeated=True)


@over(differentiable, takes_complex, among=lambda case: not case.writes and "grad" not in case.skips, mode="complex grad")
def test_complex_gradients(case):
    for text in case.samples:
        check_gradients(case, "complex128", text)


def numbers_of(case):
    """Arguments of an op that are numbers: alpha, beta, value …"""
    return [a for a in case.op.args if a.type.base == "Scalar" or a.type.number]


def with_complex_numbers(case, args, kwargs):
    """A call whose numbers have imaginary parts."""
    args, given = list(args), harness.bound(case.op, args, kwargs)
    for place, arg in enumerate(case.op.args):
        value = given[arg.name]
        if arg not in numbers_of(case) or not isinstance(value, (int, float)):
            continue
        value = value * (0.8 - 0.6j) or 0.8 - 0.6j
        if place < len(args):
            args[place] = value
        else:
            kwargs[arg.name] = value
    return args, kwargs


@over(differentiable, takes_complex, numbers_of, among=lambda case: not case.writes and "grad" not in case.skips, mode="complex numbers")
def test_gradients_with_complex_numbers(case):
    for text in case.samples:
        check_gradients(case, "complex128", text, with_complex_numbers)


@over(lambda case: case.refuses, lambda case: "float64" in case.dtypes, mode="refused")
def test_refused_gradients(case):
    """What depends on its inputs without a known derivative belongs to the graph, and says so when it is asked."""
    for text in case.samples:
        makers = Makers(rushlight, "float64", case.key + text, requires_grad=True)
        args, kwargs = makers.arguments(text)
        for result in tensors_of(function_of(rushlight, case.op)(*args, **kwargs)):
            if makers.inputs and result.requires_grad:
                count()
                with pytest.raises(NotImplementedError, match=f"derivative for {case.op.name}"):
                    result.sum().backward()


@over(takes_tensors, gives_tensors, lambda case: not differentiable(case) and not case.refuses)
def test_without_gradient(case):
    for text in case.samples:
        makers = Makers(rushlight, case.dtypes[0], case.key + text, requires_grad=True)
        args, kwargs = makers.arguments(text)
        results = tensors_of(function_of(rushlight, case.op)(*args, **kwargs))
        assert not any(t.requires_grad for t in results)
        count(1 + len(results))


# ---- errors ----


def dimensions_of(op):
    return [arg.name for arg in op.args if arg.type.meaning == "Dim"]


@over(lambda case: bool(dimensions_of(case.op)))
def test_dimensions_that_are_not_there_are_refused(case):
    """What the type Dim of an argument promises, however the argument is called."""
    for text in case.samples:
        args, kwargs = inputs_of(case, case.dtypes[0], text)
        values = harness.bound(case.op, args, kwargs)
        for name in dimensions_of(case.op):
            given = values.get(name)
            if given is not None and given not in ([], ()):
                first = [1000, *given[1:]] if isinstance(given, (list, tuple)) else 1000
                count(1)
                with pytest.raises(IndexError, match="imension out of range"):
                    call(case.op, values | {name: first})


class Answering(TorchDispatchMode):
    """Gives one answer to every op, none of which is run or checks anything."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.answer


def wrong_lists(case):
    """Each call of the samples with one list of numbers of another length, or of numbers out of all bounds."""
    dtype = next((d for d in ("float32", "complex64") if d in case.dtypes), case.dtypes[0])
    for text in case.samples:
        args, kwargs = inputs_of(case, dtype, text, requires_grad=True)
        values = harness.bound(case.op, args, kwargs)
        for arg in case.op.args:
            given = values.get(arg.name)
            if arg.type.base == "int" and isinstance(given, (list, tuple)) and given:
                given = list(given)
                for other in ([], given[:-1], given * 2, [1 << 40] * len(given), [-5] * len(given)):
                    yield values, arg.name, other


def has_lists(case):
    return differentiable(case) and not case.writes and any(True for _ in wrong_lists(case))


@over(has_lists)
def test_gradients_check_lists_that_a_mode_has_let_by(case):
    """A mode that answers an op leaves out its checks: backward reads no list beyond its end (RL_CHECK_BOUNDS)."""
    for values, name, other in wrong_lists(case):
        answer = call(case.op, values)
        answer = tree_map(lambda t: t.detach() if isinstance(t, rushlight.Tensor) else t, answer)
        inputs = [t for t in tensors_of([*values.values()]) if t.requires_grad]
        count(1)
        try:
            with Answering(answer):
                outputs = [t for t in tensors_of(call(case.op, values | {name: other})) if t.requires_grad]
            rushlight.autograd.grad([t.sum() for t in outputs], inputs, allow_unused=True)
        except REFUSALS:
            continue


ERRORS = [(c, *e) for c in CASES for e in c.errors]


@pytest.mark.parametrize(("case", "text", "error", "message"), ERRORS, ids=[f"{c.key}({t})" for c, t, *_ in ERRORS])
def test_declared_errors(case, text, error, message):
    with pytest.raises(error, match=message):
        run(case, case.dtypes[0], text)


def test_skips_have_reasons():
    # tests/parity/test_ops.py, test_bits.py, other devices, check_gradients, test_gradients.py, test_rules.py
    elsewhere = {"parity", "backward", "device", "gradgrad", "differences", "second", "jvp", "batch", "float32 grad"}
    for case in CASES:
        assert all(isinstance(why, str) and len(why) > 10 for why in case.skips.values())
        assert case.skips.keys() <= harness.MODES | elsewhere
