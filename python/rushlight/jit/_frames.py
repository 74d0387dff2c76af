"""The graphs of a trace: one for what is traced, and one for each call of a submodule within it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import _C, Tensor, nn
from rushlight._C import Graph, Node, Value

__all__ = ["Frame", "State"]


class State:
    """Where the tensors and submodules of the module that is traced lie: paths by id."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        # Tensors are kept: the program may replace one, and ids must stay its own.
        self.tensors: dict[int, tuple[Tensor, list[str]]] = {}
        self.modules: dict[int, list[str]] = {}
        self._calls: dict[str, int] = {}
        for prefix, part in module.named_modules(remove_duplicate=False):
            self.modules.setdefault(id(part), []).append(prefix)
            for place in (part._parameters, part._buffers, vars(part)):
                for name, tensor in place.items():
                    if isinstance(tensor, Tensor):
                        path = f"{prefix}.{name}" if prefix else name
                        self.tensors.setdefault(id(tensor), (tensor, []))[1].append(path)

    def method_name(self, path: str) -> str:
        """The name of the next recorded call of a submodule: forward, forward1 …"""
        number = self._calls.get(path, 0)
        self._calls[path] = number + 1
        return f"forward{number or ''}"


class Frame:
    """The graph of one method, and which value a tensor is in it.

    A tensor from outside comes in as one more argument, one that is used outside goes out as one
    more result. What belongs to the module is read from `self`.

    Args:
        state: of the module that is traced; None of a function.
        path: of the submodule whose method it is.
        parent: the frame that calls it.
    """

    def __init__(self, state: State | None, path: str = "", parent: Frame | None = None) -> None:
        self.graph = Graph()
        self.state, self.path, self.parent = state, path, parent
        self.values: dict[int, Value] = {}
        self.method = ""
        self.node: Node | None = None  # the call, once it is over
        self.children: list[Frame] = []
        self.called: list[Any] = []  # the units of functions that it calls
        self._lifted: list[Value] = []
        self._outputs: list[Value] = []
        self._attributes: dict[str, Value] = {}
        if state is not None:
            self._attributes[""] = self.graph.addInput("self")

    def is_within(self, other: Frame) -> bool:
        """Whether it was called by another frame, directly or not."""
        frame = self.parent
        while frame is not None and frame is not other:
            frame = frame.parent
        return frame is other

    # ---- what belongs to the module ----

    def _below(self, paths: list[str]) -> str | None:
        prefix = f"{self.path}." if self.path else ""
        return next((p[len(prefix) :] for p in paths if p.startswith(prefix) and p != ""), None)

    def path_of(self, tensor: Tensor) -> str | None:
        """Where a tensor lies below the frame's module."""
        _, paths = self.state.tensors.get(id(tensor), (None, [])) if self.state else (None, [])
        return self._below(paths)

    def path_of_module(self, module: nn.Module) -> str | None:
        """Where a submodule lies below the frame's module."""
        return self._below(self.state.modules.get(id(module), [])) if self.state else None

    def attribute(self, path: str) -> Value:
        """The value of what lies at a path below the module."""
        if path not in self._attributes:
            owner, _, name = path.rpartition(".")
            node = self.graph.create("prim::GetAttr", [self.attribute(owner)])
            node.s_("name", name)
            self._attributes[path] = self.graph.appendNode(node).output()
            self._attributes[path].setDebugName(name if name.isidentifier() else f"_{name}")
        return self._attributes[path]

    def set_types(self, program: Any) -> None:
        """Objects are of the types that they have in a program of the module."""
        for path, value in self._attributes.items():
            whole = f"{self.path}.{path}" if self.path and path else self.path or path
            if path == "" or value.type().kind() != "TensorType" or not value.isCompleteTensor():
                value.setType(program.get_submodule(whole)._c.type)

    def define(self, unit: Any, owner: str | None, name: str) -> None:
        """Makes the graph a function of a unit, or a method of one of its classes."""
        _C._jit_pass_dce(self.graph)
        for called in self.called:
            unit.keep(called)
        unit.define_graph(owner, name, self.graph)

    def assign(self, name: str, value: Value) -> None:
        """An attribute of the module becomes a value."""
        node = self.graph.create("prim::SetAttr", [self.attribute(""), value], 0)
        self.graph.appendNode(node.s_("name", name))

    # ---- calls of submodules ----

    def enter(self, path: str) -> Frame:
        """The frame of a call of the submodule at a path below."""
        whole = f"{self.path}.{path}" if self.path else path
        child = Frame(self.state, whole, self)
        self.children.append(child)
        return child

    def leave(self) -> Frame:
        """Puts the call into the frame outside, which goes on."""
        outer, state = self.parent, self.state
        assert outer is not None and state is not None
        self.method = state.method_name(self.path)
        path = self.path[len(outer.path) + 1 :] if outer.path else self.path
        inputs = [outer.attribute(path), *self._lifted]
        self.node = outer.graph.create("prim::CallMethod", inputs, 0)
        self.node.s_("name", self.method)
        outer.graph.appendNode(self.node)
        return outer

    def bring_in(self, outer: Value) -> Value:
        """One more argument: a value of the frame outside."""
        self._lifted.append(outer)
        return self.graph.addInput(f"argument_{len(self._lifted)}").setType(outer.type())

    def bring_out(self, key: int, to: Frame) -> Value:
        """A value of this call, which is over, in a frame further outside."""
        value, outer, node = self.values[key], self.parent, self.node
        assert outer is not None and node is not None
        if value in self._outputs:
            result = node.outputsAt(self._outputs.index(value))
        else:
            self._outputs.append(value)
            result = node.addOutput().setType(value.type())
        if outer is to:
            return result
        outer.values[key] = result
        return outer.bring_out(key, to)

    def methods(self) -> Iterator[Frame]:
        """The frames of all calls within, innermost first, and itself; with what they return."""
        for child in self.children:
            yield from child.methods()
        if self.node is not None:
            self._set_results(self.node)
        yield self

    def _set_results(self, node: Node) -> None:
        graph, results = self.graph, list(node.outputs())
        if len(results) == 1:
            graph.registerOutput(self._outputs[0])
            return
        if not results:
            graph.registerOutput(graph.insertConstant(None))
            node.addOutput().setType(graph.outputs()[0].type())
            return
        made = graph.appendNode(graph.create("prim::TupleConstruct", self._outputs)).output()
        graph.registerOutput(made)
        whole = node.addOutput().setType(made.type())
        unpack = node.owningGraph().create("prim::TupleUnpack", [whole], len(results))
        unpack.insertAfter(node)
        for old, new in zip(results, unpack.outputs(), strict=True):
            old.replaceAllUsesWith(new)
            new.setType(old.type())
        for _ in results:
            node.eraseOutput(0)
