"""`Proxy`: stands for a value that is not computed yet, and records what is done with it."""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import enum
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C, Tensor, _ops, overrides
from rushlight.fx._codegen import magic_methods, reflectable_magic_methods
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, Target, base_types, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The error of a program that needs the value of a proxy.

    Example:
        >>> torch.fx.symbolic_trace(lambda x: x if x > 0 else -x)
        Traceback (most recent call last):
            ...
        rushlight.fx.proxy.TraceError: symbolically traced variables cannot be used ...
    """


class Scope:
    """The module that is running: its dotted name and its class.

    Args:
        module_path: its dotted name.
        module_type: its class.

    For an example see `fx.Tracer`.
    """

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """A context manager that sets another scope.

    Args:
        scope: the scope that is changed.
        current_scope: what it becomes.

    For an example see `fx.Tracer`.
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: Any) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


def _no_nodes(arg: Any) -> Any:
    if isinstance(arg, Node):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument are plain values: {arg} depends on a Node"
        )
    return arg


class TracerBase:
    """Makes nodes from operations on proxies.

    For an example see `fx.Tracer`.
    """

    graph: Graph
    # Whether nodes know the stack of the program.
    record_stack_traces: bool = False
    # Whether ops that change their inputs are refused.
    check_mutable_operations: bool = False
    # Whether `assert` of a proxy is recorded.
    trace_asserts: bool = False
    # Whether buffers that are read become proxies at once.
    proxy_buffer_attributes: bool = False
    # The method that is traced.
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a node into the graph; all nodes of a tracer come from here."""
        if kind == "call_function" and self.check_mutable_operations:
            schema = getattr(target, "_schema", None)
            if getattr(schema, "is_mutable", False):
                raise RuntimeError(f"Tried to trace mutable operation {schema}")
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces:
            frames = [f for f in traceback.extract_stack() if not _is_own_file(f.filename)]
            node.stack_trace = "".join(traceback.format_list(frames))
        return node

    def proxy(self, node: Node) -> Proxy:
        """Make the proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Make a node whose arguments may be proxies, and return its proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(given, tuple) or not isinstance(named, dict):
            raise AssertionError("arguments of a call are a tuple and a dict")
        node = self.create_node(kind, target, given, named, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Convert a value that a program passes to an argument of a node.

        Raises:
            NotImplementedError: a graph cannot hold it.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(part) for part in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(part) for part in a]
        if isinstance(a, dict):
            result = {}
            for key, value in a.items():
                result[map_aggregate(self.create_arg(key), _no_nodes)] = self.create_arg(value)
            return result
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, _ops.OpOverload | _ops.OpOverloadPacket):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is Ellipsis:
            return a
        if inspect.isfunction(a) or isinstance(a, type):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called if a program branches on a proxy; a subclass may return a value."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called if a program iterates over a proxy; a subclass may return an iterator."""
        raise TraceError(
            "Proxy object cannot be iterated. A loop over it, or passing it as *args or **kwargs, "
            "depends on a length that is not known while a program is traced"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called if a program asks a proxy for its keys, as `**proxy` does."""
        return Attribute(obj, "keys")()


def _is_own_file(name: str) -> bool:
    return name.startswith(__file__.rpartition("proxy.py")[0])


class GraphAppendingTracer(TracerBase):
    """Appends operations on proxies of a graph's nodes to that graph.

    Args:
        graph: the graph.

    For an example see `fx.Tracer`.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """The function that graphs call for `assert`."""
    if not x:
        raise AssertionError


class Proxy:
    """Stands for the value of a node; operations on it become nodes.

    Args:
        node: the node.
        tracer: what records; by default the graph of the node is appended to.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> (x * 3).node.args
        (x, 3)
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # Python asks for these where it copies and pickles.
        if k in ("__getstate__", "__fx_create_arg__") or k in ("tracer", "node"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        # The copy stands for the same value.
        return Proxy(self.node, self.tracer)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instruction = _instruction(sys._getframe(1))
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
            this: Any = self
            return (this[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _in_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. It is recorded where "
            "torch.fx.wrap('len') stands at module scope"
        )

    def keys(self) -> Any:
        """Called by `**proxy`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = {} if kwargs is None else kwargs
        tracers: dict[Any, None] = {}

        def find(value: Any) -> None:
            if isinstance(value, cls):
                tracers[value.tracer] = None

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) != 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} in {orig_method}")
        (tracer,) = tracers
        if overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(getattr(orig_method, "__name__", str(orig_method)))
        args, kwargs = _as_declared(orig_method, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _as_declared(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a function written in Python as graphs hold them.

    Those without a default are positional, all others keywords, also where they were left out.
    """
    if not (isinstance(function, _C._Offered) and inspect.isfunction(function.__wrapped__)):
        return args, kwargs
    signature = inspect.signature(function.__wrapped__)
    parameters = signature.parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    others = {name: value for name, value in given.items() if name not in required}
    return tuple(given[name] for name in required), others


def _instruction(frame: Any) -> dis.Instruction | None:
    """The instruction that a frame is at."""
    return next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)


def _in_assert(frame: Any) -> bool:
    """Whether a frame decides whether an `assert` fails."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next(i for i, one in enumerate(instructions) if one.offset == frame.f_lasti)
    # A conversion to bool may stand before the jump.
    jump = next((i for i in range(at, len(instructions)) if "JUMP" in instructions[i].opname), None)
    if jump is None or "IF_TRUE" not in instructions[jump].opname or jump - at > 2:
        return False
    behind = instructions[jump + 1]
    return behind.opname == "LOAD_ASSERTION_ERROR" or (
        behind.opname == "LOAD_COMMON_CONSTANT" and behind.argval is AssertionError
    )


class Attribute(Proxy):
    """An attribute of a proxy. Reading it makes a node; calling it records a method call.

    Args:
        root: the proxy.
        attr: the attribute's name.

    For an example see `fx.Proxy`.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node, made when it is first needed, because most attributes are called."""
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose sizes are known; it answers questions about them.

    Args:
        tracer: who makes nodes.
        node: the node that gets the parameter.
        name: the parameter's name.
        param: the parameter.

    For an example see `fx.Proxy`.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        """The sizes of the parameter."""
        return self.param.shape

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.param.ndim

    def size(self, *args: Any) -> Any:
        """All sizes, or one of them."""
        return self.param.size(*args)

    def dim(self) -> int:
        """The number of dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """The number of elements."""
        return self.param.numel()

    nelement = numel


def _define(name: str) -> None:
    target = getattr(operator, name)

    def method(*args: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, {})

    method.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


def _define_reflected(name: str) -> None:
    target = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


for _name in magic_methods:
    if hasattr(operator, _name):
        _define(_name)
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        _define_reflected(_name)
Proxy.__hash__ = object.__hash__  # `__eq__` is recorded; a proxy is itself alone
