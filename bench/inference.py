"""`python -m bench.inference`: layers of integers beside onnxruntime's and PyTorch's.

Linear layers whose weight is int8 or int4 and whose input is rounded at the call, on one thread.
All run in turns on the same inputs, and the least processor times are printed, in ms; `--size` says
which features go in and out. `RUSHLIGHT_CPU=v3` measures what a processor without AVX-512 has.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight

Calls = dict[str, Callable[[], Any]]


def inference(module: Any, net: Any, x: Any) -> Callable[[], Any]:
    """A call of a network without gradients."""

    def run() -> Any:
        with module.inference_mode():
            return net(x)

    return run


def float_layer(module: Any, weight: np.ndarray) -> Any:
    """A network of one linear layer of rushlight or PyTorch."""
    module.set_num_threads(1)
    layer = module.nn.Linear(weight.shape[1], weight.shape[0]).eval()
    with module.no_grad():
        layer.weight.copy_(module.from_numpy(weight))
    return module.nn.Sequential(layer)


def of_module(module: Any, weight: np.ndarray, x: np.ndarray) -> Calls:
    """The float layer and the quantised one of rushlight or PyTorch."""
    net, given = float_layer(module, weight), module.from_numpy(x)
    whole = module.ao.quantization.quantize_dynamic(net)
    return {
        f"{module.__name__} float32": inference(module, net, given),
        f"{module.__name__} int8": inference(module, whole, given),
    }


def of_blocks(weight: np.ndarray, x: np.ndarray, block: int) -> Calls:
    """Weights in blocks of 4 and 8 bits."""
    calls = {}
    for name, config in (
        ("int4", rushlight.ao.Int4WeightOnlyConfig(block)),
        ("int8", rushlight.ao.Int8WeightOnlyConfig(block)),
    ):
        net = float_layer(rushlight, weight)
        rushlight.ao.quantize_(net, config)
        calls[f"rushlight {name}/{block}"] = inference(rushlight, net, rushlight.from_numpy(x))
    return calls


def session(nodes: list[Any], held: dict[str, np.ndarray], inputs: int, outputs: int) -> Any:
    """A graph of onnxruntime from x to y, on one thread."""
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    about = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, size])
        for name, size in (("x", inputs), ("y", outputs))
    ]
    values = [numpy_helper.from_array(np.asarray(v), k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "linear", about[:1], about[1:], values)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def of_onnxruntime(weight: np.ndarray, x: np.ndarray) -> Calls:
    """A graph of the ops of dynamic quantisation, which onnxruntime fuses."""
    from onnx import TensorProto, helper

    scale = abs(weight).max() / 127
    held = {
        "codes": np.rint(weight.T / scale).astype(np.int8),
        "scale": np.float32(scale),
        "zero": np.int8(0),
        "bias": np.zeros(weight.shape[0], np.float32),
    }
    node = helper.make_node
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        node("MatMulInteger", ["xq", "codes", "xz", "zero"], ["sums"]),
        node("Cast", ["sums"], ["numbers"], to=TensorProto.FLOAT),
        node("Mul", ["xs", "scale"], ["step"]),
        node("Mul", ["numbers", "step"], ["product"]),
        node("Add", ["product", "bias"], ["y"]),
    ]
    run = session(nodes, held, weight.shape[1], weight.shape[0])
    return {"onnxruntime int8": lambda: run.run(None, {"x": x})}


def of_onnxruntime_blocks(weight: np.ndarray, x: np.ndarray, block: int) -> Calls:
    """4 bits in blocks, whose products are of 8-bit integers as ours (accuracy level 4)."""
    from onnx import helper

    outputs, inputs = weight.shape
    rng = np.random.default_rng(1)
    held = {
        "codes": rng.integers(0, 256, (outputs, inputs // block, block // 2)).astype(np.uint8),
        "scales": np.full(outputs * inputs // block, 0.01, np.float32),
    }
    about: dict[str, Any] = {"K": inputs, "N": outputs, "bits": 4, "block_size": block}
    nodes = [
        helper.make_node(
            *("MatMulNBits", ["x", *held], ["y"]),
            domain="com.microsoft",
            accuracy_level=4,
            **about,
        )
    ]
    run = session(nodes, held, inputs, outputs)
    return {f"onnxruntime int4/{block}": lambda: run.run(None, {"x": x})}


def least_times(calls: Calls, rounds: int) -> dict[str, float]:
    """The least processor time of each in ms, of runs in turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            times = timeit.repeat(call, timer=time.thread_time, number=1, repeat=3)
            found[name] = min(found[name], *times)
    return {name: 1000 * time for name, time in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=2, default=(4096, 4096), metavar=("IN", "OUT"))
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 128])
    parser.add_argument("--block", type=int, default=32, help="inputs that share a scale")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    inputs, outputs = args.size
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((outputs, inputs)) / inputs**0.5).astype(np.float32)
    for rows in args.rows:
        x = rng.standard_normal((rows, inputs)).astype(np.float32)
        calls = of_module(rushlight, weight, x)
        if importlib.util.find_spec("torch"):
            import torch

            calls |= of_module(torch, weight, x)
        calls |= of_blocks(weight, x, args.block)
        if importlib.util.find_spec("onnxruntime"):
            calls |= of_onnxruntime(weight, x)
            calls |= of_onnxruntime_blocks(weight, x, args.block)
        times = least_times(calls, args.rounds)
        print(f"{inputs} x {outputs}, {rows} rows:", end="")
        print("".join(f"  {name} {time:.3f}" for name, time in times.items()), flush=True)


if __name__ == "__main__":
    main()
