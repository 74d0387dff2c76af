"""torch.onnx.export: arguments, names, files, writes in place, errors."""

import io
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from tests.python.onnx_judges import Calls, agreed, kinds, onnx, onnxruntime

F = nn.functional


class Named(nn.Module):
    """Containers, keywords, a buffer that is written, a constant, and results that are no tensors."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.register_buffer("n", torch.zeros(3))

    def forward(self, x, more, *, scale=None):
        y = self.lin(x)
        self.n.add_(1)
        z = torch.relu(y) * more["by"]
        return {"z": z, "rest": (y + self.n, None, torch.tensor([1.0, 2.0]), x)}


def named():
    return Named(), (torch.randn(2, 4), {"by": torch.tensor(2.0)})


def test_names_and_order():
    model, args = named()
    program = torch.onnx.export(model, args)
    graph = program.model_proto.graph
    assert [i.name for i in graph.input] == ["x", "more_by"]
    assert [o.name for o in graph.output][:2] == ["mul", "add"]
    assert {"lin.weight", "lin.bias"} <= {i.name for i in graph.initializer}
    assert not model.n.any()  # the program's own buffers are as before
    z, y, constant, x = program(*args)
    assert torch.equal(constant, torch.tensor([1.0, 2.0]))
    assert torch.equal(x, args[0])
    np.testing.assert_allclose(y.numpy(), (model.lin(args[0]) + 1).detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(z.numpy(), model(*args)["z"].detach().numpy(), rtol=1e-5)


def test_given_names():
    model, args = named()
    program = torch.onnx.export(model, args, input_names=["a"], output_names=["p", "q"])
    graph = program.model_proto.graph
    assert [i.name for i in graph.input] == ["a", "more_by"]
    assert [o.name for o in graph.output][:2] == ["p", "q"]
    with pytest.raises(ValueError, match="input_names has 3 names, but the program has 2"):
        torch.onnx.export(model, args, input_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="'lin.bias' is the name of an input or a weight"):
        torch.onnx.export(model, args, output_names=["lin.bias"])
    # A name that an inner value has already.
    twice = torch.onnx.export(
        Calls(lambda x: torch.relu(x).neg()), (torch.ones(2),), output_names=["relu"]
    )
    assert [o.name for o in twice.model_proto.graph.output] == ["relu"]
    assert torch.equal(twice(torch.ones(2))[0], -torch.ones(2))


def test_outputs_that_are_one_value():
    def same(x):
        y = x + 1
        return y, y, x, x, 3

    program = torch.onnx.export(Calls(same), (torch.ones(2),))
    found = program(torch.ones(2))
    assert len({o.name for o in program.model_proto.graph.output}) == 5
    assert [t.tolist() for t in found] == [[2, 2], [2, 2], [1, 1], [1, 1], 3]


# ---- versions ----


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_versions(opset):
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.GroupNorm(2, 4),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 2),
    )
    program = agreed(model, torch.randn(2, 1, 8, 8), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    assert ("Gelu" in kinds(program)) == (opset >= 20)
    assert ("GroupNormalization" in kinds(program)) == (opset >= 21)


def test_versions_that_are_not_written():
    model = nn.Linear(1, 1)
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="opset_version=11"):
        program = torch.onnx.export(model, (torch.ones(1, 1),), opset_version=11)
    assert program.model_proto.opset_import[0].version == 18
    with pytest.raises(ValueError, match="the newest that is written is 23"):
        torch.onnx.export(model, (torch.ones(1, 1),), opset_version=99)


def test_the_model_says_who_made_it():
    proto = torch.onnx.export(nn.Linear(1, 1), (torch.ones(1, 1),)).model_proto
    assert (proto.producer_name, proto.producer_version) == ("rushlight", torch.__version__)
    assert proto.opset_import[0].version == 20


# ---- files ----


def test_files(tmp_path):
    model, path = nn.Linear(32, 64), tmp_path / "m.onnx"
    x = torch.randn(1, 32)
    program = torch.onnx.export(model, (x,), path)
    assert program is not None
    data = tmp_path / "m.onnx.data"
    assert data.stat().st_size >= 32 * 64 * 4
    assert path.stat().st_size < 4096
    found = onnxruntime.InferenceSession(path).run(None, {"input": x.numpy()})[0]
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)

    data.unlink()
    torch.onnx.export(model, (x,), str(path), external_data=False)
    assert not data.exists()
    assert path.stat().st_size > 32 * 64 * 4
    file = io.BytesIO()
    torch.onnx.export(model, (x,), file)
    assert file.getvalue() == path.read_bytes()


def test_external_data_lies_at_pages(tmp_path):
    model = nn.Sequential(*(nn.Linear(40, 40) for _ in range(3)))
    torch.onnx.export(model, (torch.randn(1, 40),)).save(tmp_path / "m.onnx", external_data=True)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    places = [
        {e.key: e.value for e in t.external_data}
        for t in proto.graph.initializer
        if t.external_data
    ]
    assert len(places) == 3  # biases are small, and stay in the model
    assert all(int(p["offset"]) % 4096 == 0 and int(p["length"]) == 6400 for p in places)
    onnx.checker.check_model(str(tmp_path / "m.onnx"))


def test_weights_as_inputs():
    model, x = nn.Linear(2, 3), torch.randn(4, 2)
    file = io.BytesIO()
    torch.onnx.export(model, (x,), file, export_params=False)
    proto = onnx.load_from_string(file.getvalue())
    assert [i.name for i in proto.graph.input] == ["input", "weight", "bias"]
    assert not proto.graph.initializer
    feed = {"input": x, "weight": model.weight, "bias": model.bias}
    session = onnxruntime.InferenceSession(file.getvalue())
    found = session.run(None, {k: v.detach().numpy() for k, v in feed.items()})[0]
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-6)

    file = io.BytesIO()
    torch.onnx.export(model, (x,), file, keep_initializers_as_inputs=True)
    proto = onnx.load_from_string(file.getvalue())
    assert [i.name for i in proto.graph.input] == ["input", "weight", "bias"]
    assert [i.name for i in proto.graph.initializer] == ["weight", "bias"]


def test_large_models_need_a_file():
    program = torch.onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    program.model.initializers["weight"] = torch.empty(2**29).expand(2, 2**29)
    with pytest.raises(ValueError, match="a ModelProto holds 2 GB"):
        _ = program.model_proto


def test_the_signature_of_before(tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).train()
    path = str(tmp_path / "old.onnx")
    assert (
        torch.onnx.export(
            model, torch.ones(1, 2), path, dynamo=False, input_names=["in"], output_names=["out"]
        )
        is None
    )
    assert model.training and model[1].training
    proto = onnx.load(path)
    assert [n.op_type for n in proto.graph.node] == ["Gemm"]
    assert not (tmp_path / "old.onnx.data").exists()
    torch.onnx.export(
        model, torch.ones(1, 2), path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING
    )
    assert [n.op_type for n in onnx.load(path).graph.node] == ["Gemm", "Dropout"]
    with pytest.raises(TypeError, match="needs f"):
        torch.onnx.export(model, torch.ones(1, 2), dynamo=False)

    keyword = Calls(lambda x: x)
    keyword.forward = lambda x, *, y: x + y
    torch.onnx.export(keyword, (torch.ones(2), {"y": torch.ones(2)}), path, dynamo=False)
    assert [i.name for i in onnx.load(path).graph.input] == ["x", "y"]


# ---- ONNXProgram ----


def test_programs():
    model, x = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.randn(1, 2)
    program = torch.onnx.export(model, (x,), verify=True)
    assert isinstance(program, torch.onnx.ONNXProgram)
    assert "inputs: input: torch.float32[1, 2]" in repr(program)
    assert torch.allclose(program.call_reference(x)[0], program(x)[0], atol=1e-6)
    linear = program.compute_values(["linear"], (x,))[0]
    assert torch.allclose(linear, model[0](x), atol=1e-6)

    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    program.apply_weights(other.state_dict())
    assert torch.allclose(program(x)[0], other(x), atol=1e-6)
    with pytest.raises(ValueError, match="no parameter or buffer 'q'"):
        program.apply_weights({"q": x})
    with pytest.raises(ValueError, match="0.weight is torch.float32"):
        program.apply_weights({"0.weight": x})
    with pytest.raises(ValueError, match="but got 2 tensors"):
        program(x, x)

    made = []
    program.initialize_inference_session(
        lambda model: made.append(type(model)) or onnxruntime.InferenceSession(model)
    )
    program(x)
    program.release()
    assert made == [bytes]


def test_exported_programs_are_taken():
    model, x = nn.Linear(2, 3), torch.randn(1, 2)
    exported = torch.export.export(model, (x,))
    program = torch.onnx.export(exported)
    assert torch.allclose(program(x)[0], model(x), atol=1e-6)
    assert program.exported_program is exported


def test_report(tmp_path):
    torch.onnx.export(nn.Linear(2, 3), (torch.ones(1, 2),), report=True, artifacts_dir=tmp_path)
    text = (tmp_path / "onnx_export_report.md").read_text()
    assert "| Gemm | 1 |" in text
    assert "`input`" in text


def test_the_exported_program_is_kept(tmp_path):
    torch.onnx.export(
        nn.Linear(2, 3), (torch.ones(1, 2),), dump_exported_program=True, artifacts_dir=tmp_path
    )
    kept = torch.export.load(tmp_path / "onnx_export_program.pt2")
    assert kept.module()(torch.ones(1, 2)).shape == (1, 3)


def test_verification_fails():
    table = {torch.ops.aten.relu.default: lambda g, self: g.Neg(self)}
    with pytest.raises(torch.onnx.OnnxExporterError, match="differs from that of the program"):
        torch.onnx.export(nn.ReLU(), (torch.ones(2),), verify=True, custom_translation_table=table)


# ---- constants ----


def test_constants_are_computed_once():
    def program(x):
        steps = torch.arange(4) * 2 + torch.ones(4, dtype=torch.int64)
        return x * steps.float().reshape(2, 2).t()

    optimized = agreed(program, torch.randn(2, 2))
    assert kinds(optimized) == ["Mul"]
    assert len(kinds(agreed(program, torch.randn(2, 2), do_constant_folding=False))) > 1
    assert len(kinds(agreed(program, torch.randn(2, 2), optimize=False))) > 1


def test_what_is_large_is_not_computed():
    program = agreed(lambda x: x + torch.zeros(300, 300), torch.randn(300, 300))
    assert sum(t.numel() for t in program.model.initializers.values()) < 1000


# ---- writes in place ----


def writes():
    def views(x):
        x = x.clone()
        rows = x[1:]
        column = rows[:, 0]
        column.fill_(7.0)
        x.t()[2].mul_(3)
        y = rows + 1
        x.view(-1)[::5].sub_(1)
        return x, y, rows, column

    def parts(x):
        x = x * 1
        a, b = x.chunk(2, 1)
        a.add_(1)
        b.relu_()
        x[0, 1:3] = torch.tensor([5.0, 6.0])
        first, *_ = x.unbind(0)
        first.neg_()
        return x, a, b, first

    def shapes(x):
        y = (x + 1).unsqueeze_(0).transpose_(0, 1)
        y.squeeze_(1).add_(x)
        z = x.clone().permute(1, 0).reshape(-1)  # a copy: its write does not reach back
        z.zero_()
        w = x.clone()
        w.flatten()[0:2] = -1
        return y, z, w

    def masks(x):
        x = x.clone()
        x.masked_fill_(x > 0, 0.0)
        x.clamp_(min=-0.5)
        x[[0, 1], [1, 2]] = 9.0
        x[:, torch.tensor([3, 0])] += 1
        return x

    def values(x):
        x = x.clone()
        mask = x > 0
        x[mask] = 2.0
        x[~mask[:, 0]] = torch.ones(4)
        return x

    def dtypes(x):
        count = torch.zeros(4, dtype=torch.int64)
        count += 2
        count.index_add_(0, torch.tensor([0, 0, 3]), torch.tensor([1, 1, 5]))
        flags = x > 0
        flags.logical_not_()
        flags ^= x > 1
        half = x.half()
        half.add_(x)
        return count, flags, half

    def arguments(x):
        x.mul_(2)
        return x + 1

    return [views, parts, shapes, masks, values, dtypes, arguments]


@pytest.mark.parametrize("program", writes(), ids=lambda f: f.__name__)
def test_writes(program):
    x = torch.randn(3, 4)
    before = x.clone()
    exported = torch.onnx.export(Calls(program), (x,))
    assert torch.equal(x, before)
    found = exported(x)
    expected = program(x)
    for ours, wanted in zip(
        found, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        tolerance = 2e-3 if wanted.dtype == torch.float16 else 1e-5
        np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=tolerance, atol=tolerance)


def test_writes_of_several_values_by_a_mask():
    def program(x, mask, values):
        x = x.clone()
        x[mask] = values
        return x

    mask = torch.tensor([[True, False], [True, True]])
    agreed(program, torch.zeros(2, 2, 3), mask, torch.arange(9.0).view(3, 3))


def test_buffers_of_training():
    model = nn.BatchNorm1d(3).train()
    program = torch.onnx.export(model, (torch.randn(4, 3),))
    assert len(program.model.outputs) == 1
    x = torch.randn(4, 3)
    np.testing.assert_allclose(program(x)[0].numpy(), model(x).detach().numpy(), atol=1e-5)


# ---- dtypes ----


def test_dtypes():
    agreed(
        lambda a, b: (a + b, a * 2.5, a // 2, a / 2, b > a, (a > 1) & (b > 0)),
        torch.tensor([1, 2, -3]),
        torch.tensor([0.5, 2.0, 3.0]),
    )
    agreed(
        lambda a: (a.sum(), a.float().mean(), a.any(), a.int() - 1, a & ~a),
        torch.tensor([True, False]),
    )
    agreed(lambda a: a.double().exp().to(torch.int32), torch.randn(3))
    agreed(
        lambda a: (a.to(torch.uint8), a.bool(), a.half().float()), torch.tensor([0.0, 2.5, 200.0])
    )


def test_scalars_and_types_of_numbers():
    agreed(
        lambda a, i: (a + 1, a - 1, 2**i, i % 3, 1 / a, a.clamp(0, 1), torch.where(a > 0, a, 0)),
        torch.randn(3),
        torch.tensor([1, 2, 3]),
    )


# ---- errors ----


def test_all_ops_that_cannot_go_are_named(tmp_path):
    def program(x):
        a = torch.linalg.svdvals(x)
        b = torch.special.i0e(x)
        return torch.fft.fft(x).real.sum() + a.sum() + b

    path = tmp_path / "never.onnx"
    with pytest.raises(torch.onnx.OnnxExporterError) as error:
        torch.onnx.export(Calls(program), (torch.eye(3),), path)
    text = str(error.value)
    for name in ("aten.linalg_svdvals.default", "aten.special_i0e.default", "complex64"):
        assert name in text
    assert text.count("test_onnx.py") >= 3
    assert isinstance(error.value, torch.onnx.errors.UnsupportedOperatorError)
    assert not path.exists()


def test_arguments_that_are_refused():
    model, args = nn.Linear(1, 1), (torch.ones(1, 1),)
    for name, value in {
        "profile": True,
        "export_modules_as_functions": True,
        "autograd_inlining": False,
        "operator_export_type": torch.onnx.OperatorExportTypes.ONNX_ATEN,
    }.items():
        with pytest.raises(NotImplementedError, match=name):
            torch.onnx.export(model, args, **{name: value})
    with pytest.raises(TypeError, match="an nn.Module or an ExportedProgram"):
        torch.onnx.export(lambda x: x, args)
    with pytest.raises(ValueError, match="custom_opsets"):
        torch.onnx.export(model, args, custom_opsets={"": 3})


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        torch.onnx.export(nn.Linear(1, 1), (torch.ones(1, 1),))


def test_errors_of_the_old_exporter():
    errors = torch.onnx.errors
    assert "from 20 on" in str(errors.UnsupportedOperatorError("aten::gelu", 18, 20))
    assert "has no form in version 18" in str(
        errors.UnsupportedOperatorError("aten::svd", 18, None)
    )
    assert issubclass(errors.SymbolicValueError, torch.onnx.OnnxExporterError)


# ---- lowerings of one's own ----


def test_custom_lowerings():
    op = torch.ops.aten.special_i0e.default
    model, x = Calls(lambda x: torch.special.i0e(x) + 1), torch.ones(2)
    program = torch.onnx.export(
        model, (x,), custom_translation_table={op: lambda g, x: g.Add(x, x)}
    )
    assert program(x)[0].tolist() == [3, 3]

    table = {op: lambda g, x: g.op("ScaledBessel", x, domain="mine")}
    program = torch.onnx.export(
        model, (x,), custom_translation_table=table, custom_opsets={"mine": 2}
    )
    assert {o.domain: o.version for o in program.model_proto.opset_import} == {"": 20, "mine": 2}


# ---- what programs can ask ----


def test_programs_can_ask():
    assert not torch.onnx.is_in_onnx_export()
    seen = []
    torch.onnx.export(
        Calls(lambda x: (seen.append(torch.onnx.is_in_onnx_export()), x + 1)[1]), (torch.ones(1),)
    )
    assert seen == [True]
    assert not torch.onnx.is_in_onnx_export()


def test_nothing_is_loaded_before_it_is_used():
    program = "import sys, rushlight.onnx; print([m for m in sys.modules if m == 'onnx' or m.startswith('rushlight.export')])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_one_bound_leaves_infinity_as_it_is():
    class Bounded(nn.Module):
        def forward(self, x):
            return x.clamp(min=0), x.clamp(max=0), x.clamp(-1, 1), F.relu(x)

    x = torch.tensor([float("inf"), -float("inf"), 1.0])
    program = torch.onnx.export(Bounded(), (x,))
    for found, expected in zip(program(x), Bounded()(x), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("factor", [1.7, 0.6])
def test_images_are_resampled_by_the_factor(factor):
    class Resized(nn.Module):
        def forward(self, x):
            return [
                F.interpolate(x, scale_factor=factor, mode=m)
                for m in ("nearest", "bilinear", "nearest-exact")
            ]

    x = torch.randn(1, 2, 5, 7)
    for found, expected in zip(torch.onnx.export(Resized(), (x,))(x), Resized()(x), strict=True):
        assert torch.allclose(found, expected, atol=1e-5)
