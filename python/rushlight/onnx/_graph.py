"""`exported_graph`: the ops of a program as an fx graph, with what comes in and goes out."""

from __future__ import annotations

import contextlib
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.utils import _pytree as pytree

__all__ = ["ExportedGraph", "exported_graph"]


@dataclass
class ExportedGraph:
    """A program as a graph.

    Attributes:
        graph: nodes of overloads; `meta["val"]` has the shapes and dtypes of results, on meta.
        inputs: the placeholders of tensors that the caller gives, in order of the flat arguments.
        constants: by placeholder, the name and the tensor of a parameter, buffer or constant.
        parameters: which of those names are parameters or buffers of the module.
        outputs: nodes or Python values, in order of the flat result.
        input_names: the names of the inputs, from the arguments of the program.
    """

    graph: Graph
    inputs: list[Node] = field(default_factory=list)
    constants: dict[Node, tuple[str, Tensor]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    outputs: list[Any] = field(default_factory=list)
    input_names: list[str] = field(default_factory=list)


def _line() -> str:
    """The line of the program that runs an op: the innermost outside this package."""
    frame = sys._getframe(1)
    package = rushlight.__path__[0]
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'


def _on_meta(thing: Any) -> Any:
    if isinstance(thing, Tensor):
        return rushlight.empty_strided(
            thing.shape, thing.stride(), dtype=thing.dtype, device="meta"
        )
    return thing


class _Recorder:
    """Writes the ops of a program into a graph as they run."""

    def __init__(self) -> None:
        self.found = ExportedGraph(Graph())
        # By id: a tensor, which must live on, and its node.
        self._nodes: dict[int, tuple[Tensor, Node]] = {}

    def _placeholder(self, name: str, tensor: Tensor) -> Node:
        graph = self.found.graph
        first = next(iter(graph.nodes), None)
        with graph.inserting_before(first) if first is not None else contextlib.nullcontext():
            node = graph.placeholder(name.replace(".", "_"))
        node.meta["val"] = _on_meta(tensor)
        self._nodes[id(tensor)] = tensor, node
        return node

    def take(self, name: str, tensor: Tensor) -> None:
        """One more tensor that the caller gives."""
        self.found.inputs.append(self._placeholder(name, tensor))
        self.found.input_names.append(name)

    def constant(self, name: str, tensor: Tensor, value: Tensor) -> Node:
        """A placeholder for a tensor of which the value is known."""
        node = self._placeholder(name, tensor)
        self.found.constants[node] = name, value
        return node

    def node_of(self, thing: Any) -> Any:
        """What stands for a tensor in the graph; tensors from elsewhere are constants."""
        if not isinstance(thing, Tensor):
            return thing
        known = self._nodes.get(id(thing))
        if known is not None:
            return known[1]
        # What the program does to it later must not change the constant.
        return self.constant(f"tensor_{len(self.found.constants)}", thing, thing.detach().clone())

    def __call__(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        nodes = pytree.tree_map(self.node_of, (list(args), kwargs))
        result = op(*args, **kwargs)
        node = self.found.graph.call_function(op, tuple(nodes[0]), nodes[1])
        node.meta["val"] = pytree.tree_map(_on_meta, result)
        node.meta["stack_trace"] = _line()
        if isinstance(result, Tensor):
            self._nodes[id(result)] = result, node
        elif isinstance(result, list | tuple):
            for i, part in enumerate(result):
                item = self.found.graph.call_function(operator.getitem, (node, i))
                item.meta.update(val=_on_meta(part), stack_trace=node.meta["stack_trace"])
                self._nodes[id(part)] = part, item
        return result


def _names(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the tensors among the arguments, after those of the program's parameters."""
    forward = model.forward if isinstance(model, nn.Module) else model
    bound = inspect.signature(forward).bind(*args, **kwargs)
    return [
        "_".join([name, *(str(getattr(k, "key", getattr(k, "idx", k))) for k in path)])
        for name, thing in bound.arguments.items()
        for path, leaf in pytree.tree_flatten_with_path(thing)[0]
        if isinstance(leaf, Tensor)
    ]


@contextlib.contextmanager
def _restored(model: Any) -> Iterator[None]:
    """Inside, the program may write into buffers; afterwards they are what they were."""
    buffers = list(model.buffers()) if isinstance(model, nn.Module) else []
    before = [b.detach().clone() for b in buffers]
    try:
        yield
    finally:
        for buffer, value in zip(buffers, before, strict=True):
            buffer.detach().copy_(value)


def exported_graph(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExportedGraph:
    """The graph of a module or function that runs on these arguments.

    Raises:
        TypeError: the arguments do not fit the program.
    """
    recorder = _Recorder()
    found = recorder.found
    if isinstance(model, nn.Module):
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            found.parameters.add(name)
            recorder.constant(name, tensor, tensor.detach().clone())
    names = iter(_names(model, args, kwargs))

    def taken(thing: Any) -> Any:
        if isinstance(thing, Tensor):
            thing = thing.detach().clone()
            recorder.take(next(names), thing)
        return thing

    args, kwargs = pytree.tree_map(taken, (args, kwargs))
    with rushlight.no_grad(), _restored(model):
        result = _C._watch_ops(recorder, lambda: model(*args, **kwargs))
    found.outputs = [recorder.node_of(leaf) for leaf in pytree.tree_leaves(result)]
    return found
