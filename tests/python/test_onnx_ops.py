"""Lowerings of single ops: the samples of tests/ops, run in onnxruntime."""

import warnings

import numpy as np
import pytest

import rushlight
from gen.registry import overloads_of_form
from rushlight.onnx._registry import lowerings
from rushlight.onnx.errors import UnsupportedOperatorError
from rushlight.utils import _pytree as pytree
from tests.ops.harness import Makers, cases, function_of
from tests.python.onnx_judges import Calls, tensors

DTYPES = ("float32", "int64", "bool")

# Samples that are not compared, by op, and by dtype where that is said: why.
_VALUES = "the shape of the result, or a number, depends on values"
LEFT_OUT = {
    **dict.fromkeys(("masked_select", "nonzero", "argwhere", "narrow.Tensor"), _VALUES),
    **dict.fromkeys(("one_hot", "binary_cross_entropy"), f"{_VALUES}, which is checked"),
    **dict.fromkeys(
        ("embedding_bag.padding_idx", "native_group_norm"), "results for training alone"
    ),
    **dict.fromkeys(("adaptive_max_pool1d", "adaptive_max_pool3d"), "the places of the maxima"),
    ("conv2d", "int64"): "ONNX convolves floating-point numbers alone",
    "lift_fresh": "it is recorded inside factories, and its own call makes no tensor",
}
# ... and by sample.
NOT_THESE = {
    ("index", "mask("): _VALUES,
    ("index_put", "mask("): _VALUES,
    ("conv_transpose2d", "(2, 1), 1, 3"): "onnxruntime refuses output_padding above the stride",
    ("conv_transpose2d", "(0, 1), 1, 2"): "onnxruntime refuses output_padding above the stride",
    **{
        (f"{name}_loss", "x(0, 2)"): "onnxruntime's mean of nothing is 0"
        for name in ("mse", "l1", "smooth_l1", "huber")
    },
    ("embedding_bag", "m.tensor"): "results beside the rows of a bag, which only training needs",
    ("full", "1j"): "a complex number",
}


def overloads(op):
    return {f"aten.{o.name}.{o.overload or 'default'}" for o in overloads_of_form(op, "functional")}


def lowered():
    known = set(lowerings())
    return [
        pytest.param(case, dtype, id=f"{case.key}-{dtype}")
        for case in cases().values()
        if not case.writes
        and case.op.family != "random"
        and case.key not in LEFT_OUT
        and overloads(case.op) & known
        for dtype in DTYPES
        if dtype in case.dtypes and (case.key, dtype) not in LEFT_OUT
    ]


def calls_of(case, dtype):
    """The calls of the samples that this dtype has, each with the tensors of its result."""
    function = function_of(rushlight, case.op)
    found = []
    for sample in case.samples:
        if any(case.key == name and part in sample for name, part in NOT_THESE):
            continue
        args, kwargs = Makers(rushlight, dtype, case.key + sample).arguments(sample)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue
        found.append((sample, args, kwargs))
    return function, found


def compare(function, calls):
    """Exports the calls as one program, and compares its results with theirs."""

    def program(*given):
        rest = iter(given)

        def put(x):
            return next(rest) if isinstance(x, rushlight.Tensor) else x

        return [function(*a, **k) for _, a, k in pytree.tree_map(put, calls)]

    module, given = Calls(program), tensors(calls)
    exported = rushlight.onnx.export(module, tuple(given), optimize=False)
    for ours, expected in zip(exported(*given), tensors(program(*given)), strict=True):
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(ours.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("case", "dtype"), lowered())
def test_samples(case, dtype):
    function, calls = calls_of(case, dtype)
    compared = 0
    try:
        if calls:
            compare(function, calls)
        return
    except UnsupportedOperatorError:
        pass
    # Some of the calls have no form; each of the others has one.
    for call in calls:
        try:
            compare(function, [call])
            compared += 1
        except UnsupportedOperatorError as error:
            assert "no lowering is registered" not in str(error)
    assert compared, "no sample has a form in ONNX"
