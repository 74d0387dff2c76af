"""What a program does, as a graph: its calls are seen above autograd, as it wrote them."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._C import Graph, Node, Value
from rushlight._tensor import _DisableTorchFunction
from rushlight._warnings import warn
from rushlight.fx.experimental._inner_calls import (
    CallsOfBatches,
    InnerCall,
    InnerCalls,
    has_batches,
    window_of,
)
from rushlight.fx.experimental._op_forms import exported_form
from rushlight.jit._frames import Frame, State
from rushlight.jit._outplace import has_live_views, out_of_place
from rushlight.jit._script import TracerWarning
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import call_wrapper, wrappers_in

__all__ = ["Call", "TracingState", "is_of_library", "record", "state"]

_running = threading.local()
_INTS = _C._parse_type("List[int]")
_NUMBERS = {"int": "aten::Int.Tensor", "float": "aten::Float.Tensor", "bool": "aten::Bool.Tensor"}
_HERE = os.path.dirname(__file__) + os.sep
_PACKAGE = os.path.dirname(rushlight.__file__) + os.sep
_CONSTANT = "the trace holds its present value, so it may be wrong for other inputs"


def state() -> TracingState | None:
    """The trace that is being taken on this thread, or None."""
    return getattr(_running, "state", None)


def _calling_frame() -> Any:
    """The frame that called the op, or None."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def _program_line() -> tuple[str, int, str]:
    """File, number and text of the line that called the op."""
    frame = _calling_frame()
    if frame is None:
        return "", 0, ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    return file, line, linecache.getline(file, line).rstrip()


def is_of_library() -> bool:
    """Whether the library itself does what is being recorded, not the program."""
    frame = _calling_frame()
    return frame is not None and frame.f_code.co_filename.startswith(_PACKAGE)


def _set_name(value: Value, tensor: Tensor) -> None:
    """A value is called what the program calls its tensor."""
    frame = _calling_frame() if value.debugName().isdigit() else None
    for name, thing in frame.f_locals.items() if frame is not None else ():
        if thing is tensor and name.isidentifier():
            value.setDebugName(name)
            return


def _window_of(tensor: Tensor) -> Any:
    """The window of a tensor; None where it has no memory of its own."""
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.layout is rushlight.strided
    return window_of(tensor) if plain and not tensor.is_meta else None


def _has_tensors(thing: Any) -> bool:
    return any(isinstance(t, Tensor) for t in _pytree.tree_leaves(thing))


class Call:
    """A call as the program wrote it, in which some numbers are tensors of the trace."""

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.used: set[int] = set()  # ids of the tensors that a node has taken

    def arguments(self, op: Any, things: list[Any]) -> list[Any]:
        """What an op was given, with the tensors that its numbers came from in their places."""
        return [
            self._argument(place, argument.name, thing)
            for place, (argument, thing) in enumerate(
                zip(op._schema.arguments, things, strict=True)
            )
        ]

    def _argument(self, place: int, name: str, thing: Any) -> Any:
        if name in self.kwargs:
            written = self.kwargs[name]
        elif place < len(self.args):
            written = self.args[place]
        else:
            return thing
        if isinstance(thing, list) and not isinstance(written, list | tuple):
            # view(2, 3), or one number for all dimensions
            spread = len(thing) > 1 and name not in self.kwargs
            written = self.args[place:] if spread else [written] * len(thing)
        if not isinstance(thing, list):
            return self.same(thing, written)
        if not isinstance(written, list | tuple) or len(written) != len(thing):
            return thing
        return [self.same(n, w) for n, w in zip(thing, written, strict=True)]

    def same(self, number: Any, written: Any) -> Any:
        """The number that an op was given, or the tensor that was written for it."""
        if isinstance(number, Tensor):
            self.used.add(id(number))
        elif isinstance(written, Tensor) and _C._unwatched(written.item) == number:
            self.used.add(id(written))
            return written
        return number


class TracingState:
    """A trace under way: the graphs so far, and which value a tensor is in each of them.

    Args:
        module: whose parameters, buffers and submodules are attributes of what is recorded; a
            submodule that is called is recorded as a method of its own. None of a function.
        tells: warn of what makes the trace wrong for other inputs.
        outplace: record ops in place as those that give new tensors.
    """

    def __init__(
        self, module: State | None = None, tells: bool = True, outplace: bool = False
    ) -> None:
        self._tells, self._outplace = tells, outplace
        self._scopes: list[str] = []
        self.root = self._frame = Frame(module)
        # A tensor is kept as long as its id stands for it.
        self._kept: dict[int, Tensor] = {}
        self._maker: dict[int, Frame] = {}
        self._variable: set[int] = set()  # ids of what depends on arguments
        self._sizes: set[int] = set()  # and of those what depends on their sizes alone
        self._windows: dict[Any, Tensor] = {}  # by the memory that they show
        for tensor, _ in [] if module is None else module.tensors.values():
            self._windows.setdefault(_window_of(tensor), tensor)
        self._windows.pop(None, None)
        self.call: Call | None = None  # that is under way
        self._inner_calls = InnerCalls()
        self.batches = CallsOfBatches(self)

    def graph(self) -> Graph:
        """The graph so far."""
        return self._frame.graph

    def push_scope(self, name: str) -> None:
        """Nodes are in this scope, too, until it is left."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Leaves the innermost scope."""
        if not self._scopes:
            raise RuntimeError("pop_scope(): no scope was entered")
        self._scopes.pop()

    def current_scope(self) -> str:
        """The names of the scopes, from outside in, with / between."""
        return "/".join(self._scopes)

    # ---- what leaves the trace ----

    def warn(self, what: str, instead: str = "") -> None:
        """Warn the program of what makes its trace wrong for other inputs."""
        if self._tells:
            warn(f"{what}: {_CONSTANT}{instead and '; '}{instead}", TracerWarning)

    def iterates(self, tensor: Tensor) -> None:
        """The program goes through the rows of a tensor (src/python/trace.h)."""
        if self.varies(tensor) and not is_of_library():
            self.warn("Iterating over a tensor", "the number of rows is fixed")

    # ---- which value a tensor is ----

    def make(self, tensor: Tensor, value: Value) -> None:
        """From now on the tensor is this value of the innermost graph."""
        self._kept[id(tensor)] = tensor
        self._maker[id(tensor)] = self._frame
        self._frame.values[id(tensor)] = value
        window = _window_of(tensor)
        if window is not None:
            self._windows[window] = tensor

    def varies(self, tensor: Tensor) -> bool:
        """Whether the tensor depends on arguments, so that another run may give it other sizes."""
        return id(tensor) in self._variable

    def may_vary(self, tensor: Tensor) -> bool:
        """Whether another run may give it other elements: those of the module may change, too."""
        return self.varies(tensor) or self.root.path_of(tensor) is not None

    def is_size(self, tensor: Tensor) -> bool:
        """Whether it depends on the sizes of arguments alone."""
        return id(tensor) in self._sizes

    def make_size(self, tensor: Tensor, value: Value) -> None:
        """A 0-d tensor that is a size."""
        self.spread(value, tensor)
        self._sizes.add(id(tensor))

    def set_varying(self, tensor: Tensor) -> None:
        """It depends on arguments, as does what it is a view of."""
        self._variable.add(id(tensor))
        base = tensor._base
        if base is not None and id(base) in self._kept:
            self._variable.add(id(base))

    def take(self, tensor: Tensor, name: str = "") -> None:
        """One more input of the graph; the same tensor comes in once."""
        if id(tensor) not in self._frame.values:
            value = self._frame.graph.addInput(name)
            value.inferTypeFrom(tensor)
            self.make(tensor, value)

    def _known(self, frame: Frame, tensor: Tensor) -> Value | None:
        """The value of a tensor in a frame, where it may have to be brought; None: it has none."""
        key = id(tensor)
        found = frame.values.get(key)
        if found is not None:
            return found
        maker, path = self._maker.get(key), frame.path_of(tensor)
        if maker is not None and maker.is_within(frame):
            found = maker.bring_out(key, frame)
        elif maker is None and path is not None:
            found = frame.attribute(path)
            found.inferTypeFrom(tensor)
        elif frame.parent is not None:
            outer = self._known(frame.parent, tensor)
            found = None if outer is None else frame.bring_in(outer)
        if found is not None:
            self._kept[key] = tensor
            frame.values[key] = found
        return found

    def value(self, thing: Any) -> Value:
        """The value of anything that ops take."""
        if isinstance(thing, Tensor):
            known = self._known(self._frame, thing)
            value = self._captured(thing) if known is None else known
            if state() is self:  # the frame is that of the program
                _set_name(value, thing)
            return value
        if isinstance(thing, list | tuple):
            value = self.node("prim::ListConstruct", [self.value(i) for i in thing]).output()
            return value if thing else value.setType(_INTS)
        if isinstance(thing, rushlight.Generator):
            self.warn("A Generator is no part of a trace", "the default one is drawn from")
            thing = None
        return self._constant(thing)

    def _captured(self, tensor: Tensor) -> Value:
        """The value of a tensor that no op has given: a constant, unless it is another's memory."""
        window = _window_of(tensor)
        call = None if window in self._windows else self._inner_calls.call_of(tensor)
        if call is not None:
            self._record_inner(call)
        same = self._windows.get(window)
        if same is not None:
            value = self.value(same)
            self.make(tensor, value)
            self.set_varying(tensor)
            return value
        if tensor.requires_grad:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant: make it a parameter of "
                "the module that is traced, or an argument, or detach it. It has shape "
                f"{list(tensor.shape)} and dtype {tensor.dtype}"
            )
        self._kept[id(tensor)] = tensor
        self._frame.values[id(tensor)] = value = self._constant(tensor)
        return value

    # ---- nodes ----

    def _set_origin(self, node: Node) -> None:
        """A node knows its scope, and the line of the program that it comes from."""
        node.setScope(self.current_scope())
        file, line, text = _program_line()
        if file:
            node._set_place(file, line, text)

    def put(self, node: Node) -> Node:
        """Puts a node at the end of the innermost graph."""
        self._set_origin(node)
        return self._frame.graph.appendNode(node)

    def node(self, kind: str, inputs: list[Value], outputs: int = 1) -> Node:
        """A new node at the end of the innermost graph."""
        return self.put(self._frame.graph.create(kind, inputs, outputs))

    def op(self, name: str, inputs: list[Value], returns: int = 1) -> Node:
        """A call of the overload of that name."""
        return self.put(self._frame.graph._create_op(name, inputs, returns))

    def _constant(self, thing: Any) -> Value:
        value = self._frame.graph.insertConstant(thing)
        self._set_origin(value.node())
        if isinstance(thing, Tensor):
            value.inferTypeFrom(thing)
        return value

    def _output(self, value: Value, result: Any) -> None:
        if isinstance(result, Tensor):
            value.inferTypeFrom(result)
            self.make(result, value)

    def _outputs_of(self, node: Node, returns: int, results: Any) -> None:
        all_results = results if returns > 1 else (results,) * returns
        for value, result in zip(node.outputs(), all_results, strict=False):
            if isinstance(result, list | tuple):
                unpacked = self.node("prim::ListUnpack", [value], len(result))
                for part_value, part in zip(unpacked.outputs(), result, strict=True):
                    self._output(part_value, part)
            else:
                self._output(value, result)

    def _argument(self, kind: str, thing: Any) -> Value:
        """The value of an argument of a type; numbers that the program has computed stay so."""
        if "Tensor" in kind:
            return self.value(thing)
        if isinstance(thing, Tensor):
            name = next((n for k, n in _NUMBERS.items() if k in kind), "aten::ScalarImplicit")
            return self.op(name, [self.value(thing)]).output()
        if isinstance(thing, list) and any(isinstance(one, Tensor) for one in thing):
            numbers = [self._argument(kind, one) for one in thing]
            return self.node("prim::ListConstruct", numbers).output()
        return self.value(thing)

    def __call__(self, op: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a call of an op and records it, with all arguments of its schema."""
        if has_batches(args, kwargs):
            return self.batches.run(op, args, kwargs)
        wrappers = wrappers_in(_pytree.tree_leaves((args, kwargs)))
        if wrappers:
            return _C._watch_ops(self, lambda: call_wrapper(op, args, kwargs, wrappers))
        node, things = self._node_of_call(op, args, kwargs)
        results = self._inner_calls.run(op, args, kwargs)
        self._give(node, things, results)
        return results

    def _node_of_call(self, op: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Node, list[Any]]:
        """A node for a call of an op, and what stands for its arguments."""
        # What is one op here and another one in archives is shown as that.
        is_own = op.namespace == "rushlight"
        shown = exported_form(op, args, kwargs) if is_own else (op, args, kwargs)
        schema, args_shown, kwargs_shown = shown[0]._schema, shown[1], shown[2]
        given = dict(zip((a.name for a in schema.arguments), args_shown, strict=False))
        given |= kwargs_shown
        things = []
        for argument in schema.arguments:
            thing = given.get(argument.name, argument.default_value)
            if isinstance(thing, list | tuple):
                # One number may stand for each dimension.
                repeated = len(thing) == 1 and argument.N
                thing = list(thing) * argument.N if repeated else list(thing)
            things.append(thing)
        if self.call is not None:
            things = self.call.arguments(shown[0], things)
        inputs = [
            self._argument(str(argument.type), thing)
            for argument, thing in zip(schema.arguments, things, strict=True)
        ]
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        instead = out_of_place(shown[0], things) if self._outplace else None
        if instead is not None:
            name, inputs = instead[0], [self.value(thing) for thing in instead[1]]
            if has_live_views(args[0], self._kept.values(), 2):
                self.warn(
                    "A write in place to memory that other tensors show may cause the trace "
                    "to be incorrect"
                )
        return self.op(name, inputs, len(schema.returns)), things

    def _give(self, node: Node, things: list[Any], results: Any) -> None:
        """What a call has given is the outputs of its node."""
        self._outputs_of(node, len(list(node.outputs())), results)
        tensors = [t for t in _pytree.tree_leaves(things) if isinstance(t, Tensor)]
        varying = [t for t in tensors if self.may_vary(t)]
        if varying:
            _pytree.tree_map_only(Tensor, self.set_varying, results)
        if varying and all(map(self.is_size, varying)):
            _pytree.tree_map_only(Tensor, lambda t: self._sizes.add(id(t)), results)

    def _record_inner(self, call: InnerCall) -> None:
        """Records a call that an op has made on the way."""
        before, self.call = self.call, None
        node, things = self._node_of_call(call.func, call.args, call.kwargs)
        self.call = before
        self._give(node, things, call.results)

    # ---- programs, whose branches and loops stay ----

    def _program_argument(self, thing: Any) -> Any:
        """What a program takes, as a value where tensors are in it."""
        if isinstance(thing, Tensor):
            return self.value(thing)
        if not _has_tensors(thing):
            return thing
        if isinstance(thing, dict):
            flat = [self._program_argument(part) for pair in thing.items() for part in pair]
            flat = [v if isinstance(v, Value) else self._constant(v) for v in flat]
            kinds = ", ".join(v.type().annotation_str for v in flat[:2])
            made = self.node("prim::DictConstruct", flat).output()
            return made.setType(_C._parse_type(f"Dict[{kinds}]"))
        kind = "prim::TupleConstruct" if isinstance(thing, tuple) else "prim::ListConstruct"
        parts = [self._program_argument(part) for part in thing]
        parts = [v if isinstance(v, Value) else self._constant(v) for v in parts]
        return self.node(kind, parts).output()

    def call_program(
        self, owner: Any, name: str, module: Any, args: tuple, kwargs: dict, run: Callable[[], Any]
    ) -> Any:
        """Runs a call of a program and records it as one.

        Args:
            owner: the unit of the function, or the object of the method.
            name: of the function in its unit, or of the method.
            module: whose method it is, or None.
            args: the arguments.
            kwargs: those by name.
            run: makes the call.
        """
        receiver = None
        if module is None:
            self._frame.called.append(owner)
        else:
            path = self._frame.path_of_module(module)
            if path is None:
                raise RuntimeError(
                    f"Tried to trace a call of a {module.original_name} that is no part of what is "
                    "traced: it must be a submodule of the module"
                )
            receiver = self._frame.attribute(path)
        values = tuple(self._program_argument(a) for a in args)
        by_name = {key: self._program_argument(a) for key, a in kwargs.items()}
        graph = self._frame.graph
        node = self.put(_C._call_node(graph, owner, name, receiver, values, by_name))
        result = _C._unwatched(run)
        self.spread(node.output(), result)
        return result

    def spread(self, value: Value, thing: Any) -> None:
        """The tensors in a container are values of the graph, taken out of its value."""
        if isinstance(thing, Tensor):
            value.inferTypeFrom(thing)
            self.make(thing, value)
            self.set_varying(thing)
        elif isinstance(thing, dict):
            for key, item in thing.items():
                taken = self._frame.graph.create("aten::__getitem__", [value, self.value(key)])
                self.spread(self.put(taken).output(), item)
        elif isinstance(thing, tuple | list) and _has_tensors(thing):
            kind = "prim::TupleUnpack" if isinstance(thing, tuple) else "prim::ListUnpack"
            parts = self.node(kind, [value], len(thing)).outputs()
            for part, item in zip(parts, thing, strict=True):
                self.spread(part, item)

    # ---- submodules ----

    def call_module(self, module: nn.Module, run: Callable[[], Any]) -> Any:
        """Runs a call of a module, as a method of its own where it is a submodule."""
        path = self._frame.path_of_module(module)
        if path is None:
            return run()
        self._frame = self._frame.enter(path)
        self.push_scope(f"__module.{self._frame.path}")
        try:
            return self.with_buffers(module, run)
        finally:
            self.pop_scope()
            self._frame = self._frame.leave()

    def with_buffers(self, module: nn.Module, run: Callable[[], Any]) -> Any:
        """Runs a method of the frame's module, which may put other tensors in place of buffers."""
        before = dict(module._buffers)
        result = run()
        with _DisableTorchFunction():
            for name, tensor in module._buffers.items():
                if tensor is not None and before.get(name, tensor) is not tensor:
                    self._frame.assign(name, self.value(tensor))
        return result


def record(trace: TracingState, f: Callable[[], Any], is_trace: bool = True) -> Any:
    """What `f()` gives, while a trace is taken of it on this thread."""
    if state() is not None:
        raise RuntimeError("a trace is being taken already")
    _running.state = trace
    try:
        with trace.batches:
            return _C._watch_ops(trace, f, is_trace)
    finally:
        _running.state = None
