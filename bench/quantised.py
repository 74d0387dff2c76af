"""`python -m bench.quantised`: whole networks of 8-bit layers beside onnxruntime's and OpenVINO's.

BERT-base (128 words, `quantize_dynamic`) and ResNet-50 (one image of 224², `quantize_fx`), random
weights, on one thread. The ONNX files are the float networks of `onnx.export`, quantised by
onnxruntime. All run in turns on the same inputs, and the least processor times are printed, in ms,
with the largest difference from the float network's result, as a part of its largest number.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import tempfile
import time
import timeit
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rushlight
from bench.inference import inference
from bench.networks.images import resnet50
from bench.networks.sequences import bert
from rushlight.ao import quantization

Calls = dict[str, Callable[[], Any]]


class Batches:
    """A few inputs for calibration, as onnxruntime asks for them."""

    def __init__(self, name: str, inputs: list[Any]) -> None:
        self._name, self._inputs = name, iter(inputs)

    def get_next(self) -> dict[str, Any] | None:
        x = next(self._inputs, None)
        return None if x is None else {self._name: x.numpy()}


def of_onnx(path: Path, inputs: list[Any]) -> Calls:
    """onnxruntime and OpenVINO on a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    run = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {i.name: x.numpy() for i, x in zip(run.get_inputs(), inputs, strict=True)}
    calls: Calls = {f"onnxruntime {path.stem}": lambda: run.run(None, given)[0]}
    if importlib.util.find_spec("openvino"):
        import openvino

        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})
        compiled = core.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        calls[f"OpenVINO {path.stem}"] = lambda: compiled(given)[0]
    return calls


def of_bert(folder: Path) -> Calls:
    """BERT-base, whose linear layers round their inputs at each call."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    net = bert(rushlight, words=1000, width=768, depth=12, heads=12).eval()
    inputs = [rushlight.randint(0, 1000, (1, 128)), rushlight.tensor([128])]
    whole, codes = folder / "float32.onnx", folder / "int8.onnx"
    rushlight.onnx.export(net, tuple(inputs), whole, dynamo=True, external_data=False)
    quantize_dynamic(whole, codes, weight_type=QuantType.QInt8)
    small = quantization.quantize_dynamic(net)
    return {
        "rushlight float32": inference(rushlight, lambda _: net(*inputs), None),
        "rushlight int8": inference(rushlight, lambda _: small(*inputs), None),
        **of_onnx(whole, inputs),
        **of_onnx(codes, inputs),
    }


def of_resnet(folder: Path) -> Calls:
    """ResNet-50, calibrated on two images."""
    from onnxruntime.quantization import QuantType, quantize_static

    net = resnet50(rushlight).eval()
    images = [rushlight.randn(1, 3, 224, 224) for _ in range(2)]
    mapping = quantization.get_default_qconfig_mapping("onednn")
    prepared = quantization.quantize_fx.prepare_fx(net, mapping, (images[0],))
    for x in images:
        prepared(x)
    small = quantization.quantize_fx.convert_fx(prepared)
    whole, codes = folder / "float32.onnx", folder / "int8.onnx"
    rushlight.onnx.export(
        net, (images[0],), whole, input_names=["x"], dynamo=True, external_data=False
    )
    kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(whole, codes, Batches("x", images), per_channel=True, **kinds)
    return {
        "rushlight float32": inference(rushlight, net, images[0]),
        "rushlight int8": inference(rushlight, small, images[0]),
        **of_onnx(whole, images[:1]),
        **of_onnx(codes, images[:1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rushlight.set_num_threads(1)
    rushlight.manual_seed(0)
    for make in (of_bert, of_resnet):
        with tempfile.TemporaryDirectory() as folder:
            calls = make(Path(folder))
        expected = np.asarray(calls["rushlight float32"]())
        times = dict.fromkeys(calls, float("inf"))
        for _ in range(args.rounds):
            for name, call in calls.items():
                spent = timeit.repeat(call, timer=time.process_time, number=1, repeat=2)
                times[name] = min(times[name], *spent)
        print(make.__name__[3:] + ":")
        for name, call in calls.items():
            off = abs(np.asarray(call()) - expected).max() / abs(expected).max()
            print(f"  {name:22} {1000 * times[name]:8.1f}   {off:.3f}", flush=True)


if __name__ == "__main__":
    main()
