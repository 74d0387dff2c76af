"""torch.onnx: the signatures are PyTorch's."""

import inspect

import pytest

import rushlight

torch = pytest.importorskip("torch")


def parameters(function):
    """Name, kind and default of each parameter; enumerations by their values."""
    return [
        (p.name, p.kind, getattr(p.default, "name", p.default) if p.default is not p.empty else "")
        for p in inspect.signature(function).parameters.values()
    ]


# Whose default is None here, where PyTorch's is a member of an enumeration or a function.
LATE = {"training", "operator_export_type", "initializer"}
SAME = [
    *(
        "export",
        "ops.symbolic",
        "ops.symbolic_multi_out",
        "ops.attention",
        "ops.rotary_embedding",
        "ops.aten_decompositions",
    ),
    *("testing.assert_onnx_program", "verification.verify_onnx_program", "is_in_onnx_export"),
    *(
        f"ONNXProgram.{name}"
        for name in ("save", "apply_weights", "initialize_inference_session", "release", "optimize")
    ),
    *(
        f"ONNXProgram.{name}"
        for name in ("__call__", "call_reference", "compute_values", "rename_axes")
    ),
]


def named(package, path):
    found = package
    for name in path.split("."):
        if not hasattr(found, name):
            __import__(f"{package.__name__}.{name}")
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("path", SAME)
def test_signatures(path):
    import torch.onnx.testing
    import torch.onnx.verification

    ours = parameters(named(rushlight.onnx, path))
    theirs = parameters(named(torch.onnx, path))
    assert [p[:2] for p in ours] == [p[:2] for p in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other or mine[0] in LATE


def test_names():
    assert set(torch.onnx.__all__) <= set(rushlight.onnx.__all__)
    assert set(torch.onnx.ops.__all__) == set(rushlight.onnx.ops.__all__)


def test_errors():
    for name in ("OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"):
        ours, theirs = getattr(rushlight.onnx.errors, name), getattr(torch.onnx.errors, name)
        assert [c.__name__ for c in ours.__mro__ if c is not object] == [
            c.__name__ for c in theirs.__mro__ if c is not object
        ]


def test_attention():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 4) for n in (3, 5, 5))
    mask = torch.randn(3, 5)
    for how in ({}, {"softcap": 1.5}, {"scale": 0.3, "is_causal": False}):
        for mode in range(4):
            theirs = torch.onnx.ops.attention(q, k, v, mask, qk_matmul_output_mode=mode, **how)
            given = [rushlight.from_numpy(t.numpy()) for t in (q, k, v, mask)]
            ours = rushlight.onnx.ops.attention(*given, qk_matmul_output_mode=mode, **how)
            for a, b in zip(ours, theirs, strict=True):
                torch.testing.assert_close(torch.from_numpy(a.numpy()), b, rtol=1e-5, atol=1e-5)
