"""What the tests of torch.onnx share: models are checked by `onnx` and run in onnxruntime and OpenVINO."""

import functools
import importlib

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import _pytree as pytree

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(4)


class Calls(nn.Module):
    """A module out of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def tensors(thing):
    """All tensors in containers, in order."""
    return [x for x in pytree.tree_leaves(thing) if isinstance(x, torch.Tensor)]


def kinds(program):
    """The kinds of the nodes of a model, in order."""
    return [node.op_type for node in program.model_proto.graph.node]


@functools.cache
def openvino():
    """OpenVINO, or None: it is large, and only some machines have it."""
    try:
        return importlib.import_module("openvino")
    except ImportError:
        return None


def in_openvino(program, args, kwargs):
    """The outputs of a model as OpenVINO computes them."""
    core = openvino().Core()
    model = core.read_model(program.model_proto.SerializeToString())
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [np.array(value) for value in compiled(program._feed(args, kwargs)).values()]


def agreed(model, *args, tolerance=1e-4, runtimes=("onnxruntime",), others=(), **how):
    """Exports a module or function, and compares what the model computes with what it computes itself.

    `others`: more arguments that the model is run on.
    """
    kwargs = how.get("kwargs") or {}
    model = model if isinstance(model, nn.Module) else Calls(model)
    program = torch.onnx.export(model, args, **how)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for given in (args, *others):
        with torch.no_grad():
            expected = tensors(model(*given, **kwargs))
        found = {"onnxruntime": [t.numpy() for t in program(*given, **kwargs)]}
        if "openvino" in runtimes and openvino() is not None:
            found["openvino"] = in_openvino(program, given, kwargs)
        for outputs in found.values():
            assert len(outputs) == len(expected)
            for ours, wanted in zip(outputs, expected, strict=True):
                wanted = wanted.numpy()
                assert ours.shape == wanted.shape
                assert ours.dtype == wanted.dtype
                scale = max(1.0, np.abs(wanted.astype(np.float64)).max(initial=0.0))
                np.testing.assert_allclose(ours, wanted, rtol=tolerance, atol=tolerance * scale)
    return program
