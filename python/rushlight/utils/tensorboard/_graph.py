"""What a model computes, as the graph that TensorBoard draws: ops that ran, by modules."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.fx.experimental._inner_calls import window_of
from rushlight.utils import _pytree as pytree
from rushlight.utils.tensorboard._events import message


def _key_of(tensor: Tensor) -> Any:
    return window_of(tensor) or id(tensor)


class _Recorder:
    """Notes every op with what it is given, under the name of the module that is running."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, str, list[str], list[Tensor]]] = []
        self.scopes: list[str] = []  # the modules that are running, as paths
        self.names: dict[Any, str] = {}
        self.kept: list[Tensor] = []  # so that no memory is used a second time
        self._used: dict[str, int] = {}

    def add(self, name: str, op: str, inputs: list[str], outputs: list[Tensor]) -> str:
        """A node, under a name that no other has."""
        count = self._used[name] = self._used.get(name, -1) + 1
        name = f"{name}_{count}" if count else name
        self.nodes.append((name, op, inputs, outputs))
        for tensor in outputs:
            self.kept.append(tensor)
            self.names[_key_of(tensor)] = name
        return name

    def inputs_of(self, values: Any) -> list[str]:
        """The nodes that tensors come from; constants become nodes."""
        names = []
        for tensor in (v for v in pytree.tree_leaves(values) if isinstance(v, Tensor)):
            if _key_of(tensor) not in self.names:
                self.add(f"{self.scopes[-1]}/Constant", "prim::Constant", [], [tensor])
            names.append(self.names[_key_of(tensor)])
        return names

    def __call__(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An op, as the program wrote it."""
        result = func(*args, **kwargs)
        inputs = self.inputs_of((args, kwargs))
        outputs = [v for v in pytree.tree_leaves(result) if isinstance(v, Tensor)]
        op = str(func).partition(".")[2].partition(".")[0]
        self.add(f"{self.scopes[-1]}/{op}", f"aten::{op}", inputs, outputs)
        return result


def _node(name: str, op: str, inputs: list[str], outputs: list[Tensor]) -> bytes:
    shapes = [message(*((2, "bytes", message((1, "int", n))) for n in t.shape)) for t in outputs]
    listed = message((1, "bytes", message(*((7, "bytes", shape) for shape in shapes))))
    attribute = message((1, "bytes", "_output_shapes"), (2, "bytes", listed))
    return message(
        (1, "bytes", name),
        (2, "bytes", op),
        *((3, "bytes", i) for i in inputs),
        (5, "bytes", attribute),
    )


def graph(model: nn.Module, input_to_model: Any) -> tuple[bytes, str]:
    """Runs a model and gives what ran as TensorFlow's GraphDef, and as text.

    Args:
        model: the model to run.
        input_to_model: its argument, or a tuple of them.
    """
    arguments = input_to_model if isinstance(input_to_model, tuple) else (input_to_model,)
    recorder = _Recorder()
    for i, tensor in enumerate(v for v in pytree.tree_leaves(arguments) if isinstance(v, Tensor)):
        recorder.add(f"input/input.{i + 1}", "IO Node", [], [tensor])
    paths: dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        above, _, own = name.rpartition(".")
        kind = type(module).__name__
        paths[module] = f"{paths[model.get_submodule(above)]}/{kind}[{own}]" if name else kind
        for own, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is not None:
                recorder.add(f"{paths[module]}/{own}", "Parameter", [], [tensor])
    handles = []

    def enter(module: nn.Module, args: Any) -> None:
        recorder.scopes.append(paths[module])

    def leave(module: nn.Module, args: Any, result: Any) -> None:
        recorder.scopes.pop()

    try:
        for module in paths:
            handles.append(module.register_forward_pre_hook(enter, prepend=True))
            handles.append(module.register_forward_hook(leave, always_call=True))
        with rushlight.no_grad():
            result = _C._watch_ops(recorder, lambda: model(*arguments))
    finally:
        for handle in handles:
            handle.remove()
    outputs = [v for v in pytree.tree_leaves(result) if isinstance(v, Tensor)]
    recorder.scopes.append("output")
    for i, name in enumerate(recorder.inputs_of(outputs)):
        recorder.nodes.append((f"output/output.{i + 1}", "IO Node", [name], [outputs[i]]))
    nodes = [(1, "bytes", _node(*node)) for node in recorder.nodes]
    listing = "\n".join(f"{name} = {op}({', '.join(i)})" for name, op, i, _ in recorder.nodes)
    return message(*nodes, (4, "bytes", message((1, "int", 22)))), listing
