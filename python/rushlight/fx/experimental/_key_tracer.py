"""The tracer of `make_fx` and `export`: which node stands for which tensor."""

from __future__ import annotations

import operator
from typing import Any

import rushlight
from rushlight import Tensor, nn
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.experimental._op_forms import exported_form
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.utils._python_dispatch import _disable_current_modes

__all__ = ["PythonKeyTracer", "autocast_state", "fake_of", "key_of"]


def key_of(tensor: Tensor) -> Any:
    """What is the same for two tensors with the same elements in the same memory.

    What an op gives is another object to those who called it, unless it is a fake one.
    """
    if isinstance(tensor, FakeTensor) or tensor.is_meta or tensor.numel() == 0:
        return id(tensor)
    try:
        return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype
    except RuntimeError:  # a special tensor without memory
        return id(tensor)


def autocast_state() -> Any:
    """What autocast does now: the kinds of devices that it is on for, and their dtypes."""
    kinds = [kind for kind in ("cpu", "cuda") if rushlight.is_autocast_enabled(kind)]
    return [(kind, rushlight.get_autocast_dtype(kind)) for kind in kinds]


def fake_of(mode: FakeTensorMode, tensor: Tensor) -> Any:
    """What a node remembers of its tensor: a fake one outside of the graph of autograd."""
    with _disable_current_modes():
        if isinstance(tensor, FakeTensor):
            leaf = tensor.is_leaf and tensor.requires_grad
            return FakeTensor(tensor.fake_mode, tensor._meta, tensor.fake_device, leaf)
        try:
            fake = mode.from_tensor(tensor.detach())
        except (RuntimeError, NotImplementedError):  # a special tensor of another kind
            return tensor
        return fake.requires_grad_(tensor.is_leaf and tensor.requires_grad)


def _as_list(value: Any, argument: Any) -> Any:
    """A value as PyTorch's graphs have it: lists are lists, with a number for each dimension."""
    if not isinstance(value, list | tuple):
        return value
    return list(value) * (argument.N or 1) if len(value) == 1 else list(value)


class PythonKeyTracer(Tracer):
    """A tracer whose graph is written by a mode that sees the ops."""

    def __init__(self) -> None:
        super().__init__()
        self.root = nn.Module()
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        # By memory and geometry: the tensor, which must live on, and the node that stands for it.
        self.known: dict[Any, tuple[Tensor, Node]] = {}
        self._constants: dict[int, tuple[Tensor, str]] = {}
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=True)

    # ---- constants ----

    def constant(self, a: Tensor) -> Node:
        """A node that reads a tensor from elsewhere, which becomes an attribute of the root."""
        held = self._constants.get(id(a))
        if held is None:
            prefix = "_param_constant" if isinstance(a, nn.Parameter) else "_tensor_constant"
            name = self.get_fresh_qualname(prefix)
            if isinstance(a, nn.Parameter):
                setattr(self.root, name, a)
            else:
                self.root.register_buffer(name, a)
            held = self._constants[id(a)] = (a, name)
        node = self.create_node("get_attr", held[1], (), {})
        node.meta["val"] = fake_of(self.fake_mode, a)
        return node

    def create_arg(self, a: Any) -> Any:
        """Convert an argument; tensors become nodes."""
        if isinstance(a, Tensor):
            return self.node_of(a)
        return a if isinstance(a, Node) else super().create_arg(a)

    # ---- what stands for what ----

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; tensors from elsewhere become attributes of the module."""
        found = self.known.get(key_of(tensor))
        if found is not None:
            return found[1]
        node = self.constant(tensor)
        self.known[key_of(tensor)] = (tensor, node)
        return node

    def track(self, value: Any, node: Node) -> None:
        """Set the node of a tensor, or of each of several, and what the node knows of it."""
        if isinstance(value, Tensor):
            self.known[key_of(value)] = (value, node)
            node.meta["val"] = fake_of(self.fake_mode, value)
            node.meta["tensor_meta"] = _extract_tensor_metadata(node.meta["val"])
        elif isinstance(value, list | tuple):
            for i, part in enumerate(value):
                if isinstance(part, Tensor):
                    item = self.create_node("call_function", operator.getitem, (node, i), {})
                    self.track(part, item)
            parts = (fake_of(self.fake_mode, v) if isinstance(v, Tensor) else v for v in value)
            node.meta["val"] = type(value)(parts) if type(value) in (list, tuple) else tuple(parts)
        else:
            node.meta["val"] = value

    def run_op(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What the op of a call gives."""
        return func(*args, **kwargs)

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a call of an op and write it into the graph."""
        target, shown, named = exported_form(func, tuple(args), kwargs)
        # Before the call, which may write into its arguments.
        known = target._schema.arguments
        pairs = zip(shown, known, strict=False)
        given = tuple(self.create_arg(_as_list(value, a)) for value, a in pairs)
        kinds = {a.name: a for a in known}
        by_name = {k: self.create_arg(_as_list(value, kinds[k])) for k, value in named.items()}
        result = self.run_op(func, args, kwargs)
        name = self.graph._target_to_str(target.overloadpacket.__name__)
        node = self.create_node("call_function", target, given, by_name, name=name)
        self.track(result, node)
        return result
