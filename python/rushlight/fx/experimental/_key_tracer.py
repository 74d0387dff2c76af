"""The tracer of `make_fx` and `export`: which node stands for which tensor."""

from __future__ import annotations

import operator
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx._symbolic_trace import Tracer
from rushlight.fx.experimental._inner_calls import (
    CallsOfBatches,
    InnerCalls,
    has_batches,
    window_of,
)
from rushlight.fx.experimental._op_forms import exported_form
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.utils._python_dispatch import _disable_current_modes

__all__ = ["PythonKeyTracer", "autocast_state", "fake_of"]


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
    """A tracer whose graph is written by a mode that sees the ops.

    For an example see `fx.experimental.proxy_tensor.make_fx`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root = nn.Module()
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        # By identity and window, and by the window alone: the tensor, which must live on, and the
        # node that stands for it.
        self.known: dict[Any, tuple[Tensor, Node]] = {}
        self._constants: dict[int, tuple[Tensor, str]] = {}
        self.inner_calls = InnerCalls()
        self.batches = CallsOfBatches(self.record)
        self.makes_fakes = False  # whether all fake tensors are of the trace
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

    def known_node(self, tensor: Tensor) -> Node | None:
        """The node of a tensor that an argument or a call of the trace has given."""
        window = window_of(tensor)
        found = self.known.get((id(tensor), window)) or self.known.get(window)
        return None if found is None else found[1]

    def _remember(self, tensor: Tensor, node: Node) -> None:
        window = window_of(tensor)
        self.known[id(tensor), window] = tensor, node
        if window is not None:
            self.known[window] = tensor, node

    def node_of(self, tensor: Tensor) -> Node:
        """The node of a tensor; tensors from elsewhere become attributes of the module."""
        known = self.known_node(tensor)
        if known is not None:
            return known
        call = self.inner_calls.call_of(tensor)
        if call is not None:
            self._write(self._shown(call.func, call.args, call.kwargs), call.results)
            return self.node_of(tensor)
        node = self.node_from_elsewhere(tensor)
        self._remember(tensor, node)
        return node

    def node_from_elsewhere(self, tensor: Tensor) -> Node:
        """A node for a tensor that no call of the trace has given."""
        if _C._functorch.is_batchedtensor(tensor):
            raise RuntimeError(
                "The trace has come to a tensor of a vmap outside of it, which stands for many: "
                "trace a function that calls vmap itself"
            )
        if self.makes_fakes and isinstance(tensor, FakeTensor):
            raise RuntimeError(
                f"The trace has come to a tensor that none of its ops has made ({tensor}), so it "
                "has no values: it comes from something that cannot be traced"
            )
        return self.constant(tensor)

    def track(self, value: Any, node: Node) -> None:
        """Set the node of a tensor, or of each of several, and what the node knows of it."""
        if isinstance(value, Tensor):
            self._remember(value, node)
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

    # ---- calls ----

    def run_op(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What the op of a call gives."""
        return self.inner_calls.run(func, args, kwargs)

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a call of an op and write it into the graph."""
        if has_batches(args, kwargs):
            return self.batches.run(func, args, kwargs)
        shown = self._shown(func, args, kwargs)  # before the call, which may write into them
        result = self.run_op(func, args, kwargs)
        self._write(shown, result)
        return result

    def _shown(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
        """The target, arguments and keywords of the node of a call."""
        target, shown, named = exported_form(func, tuple(args), kwargs)
        known = target._schema.arguments
        pairs = zip(shown, known, strict=False)
        given = tuple(self.create_arg(_as_list(value, a)) for value, a in pairs)
        kinds = {a.name: a for a in known}
        by_name = {k: self.create_arg(_as_list(value, kinds[k])) for k, value in named.items()}
        return target, given, by_name

    def _write(self, shown: tuple[Any, Any, Any], result: Any) -> None:
        """Add a node for a call that has given `result`."""
        target, given, by_name = shown
        name = self.graph._target_to_str(target.overloadpacket.__name__)
        node = self.create_node("call_function", target, given, by_name, name=name)
        self.track(result, node)
