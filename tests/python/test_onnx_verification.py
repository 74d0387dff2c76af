"""torch.onnx.verification and torch.onnx.testing."""

import pytest

import rushlight as torch
from rushlight import nn
from tests.python.onnx_judges import Calls

assert_onnx_program = torch.onnx.testing.assert_onnx_program
verify = torch.onnx.verification.verify_onnx_program


def test_what_agrees():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    program = torch.onnx.export(model, (torch.randn(2, 3),))
    (info,) = verify(program)
    assert info.name == "linear_1"
    assert info.max_abs_diff < 1e-5
    assert info.expected_dtype == info.actual_dtype == torch.float32
    counts, edges = info.abs_diff_hist
    assert counts.sum() == 4 and len(counts) == len(edges)
    names = [i.name for i in verify(program, (torch.randn(2, 3),), compare_intermediates=True)]
    assert names == ["linear", "relu", "linear_1"]
    for backend in ("onnxruntime", "reference"):
        assert_onnx_program(program, backend=backend)
    assert_onnx_program(program, args=(torch.randn(2, 3),), rtol=1e-3, atol=1e-4)


def test_what_differs():
    table = {torch.ops.aten.relu.default: lambda g, self: g.Neg(self)}
    model = Calls(lambda x: torch.relu(x) * 2)
    program = torch.onnx.export(
        model, (torch.tensor([1.0, -3.0, 0.0]),), custom_translation_table=table
    )
    relu, mul = verify(program, compare_intermediates=True)
    assert (relu.max_abs_diff, mul.max_abs_diff) == (3.0, 6.0)
    assert relu.max_rel_diff == 2.0
    assert relu.abs_diff_hist[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 2, 0]
    with pytest.raises(AssertionError):
        assert_onnx_program(program)


def test_what_is_refused():
    program = torch.onnx.export(nn.ReLU(), (torch.ones(2),))
    with pytest.raises(ValueError, match="backend must be"):
        assert_onnx_program(program, backend="cuda")
    with pytest.raises(ValueError, match="there is no 'Other'"):
        assert_onnx_program(program, strategy="Other")
    with pytest.raises(ValueError, match="expected the shape"):
        torch.onnx.verification.VerificationInfo.from_tensors("a", torch.ones(2), torch.ones(3))
    alone = torch.onnx.ONNXProgram(program.model)
    for function in (verify, assert_onnx_program):
        with pytest.raises(ValueError, match="no exported_program"):
            function(alone)
