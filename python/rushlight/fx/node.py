"""`Node`: one step of a graph, and functions that map over arguments."""

from __future__ import annotations

import builtins
import inspect
import operator
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C, _ops
from rushlight.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = str | int | float | bool | complex | _C.dtype | _C.TensorBase | _C.device
base_types = (*typing.get_args(BaseArgumentTypes), _C.memory_format, _C.layout)

_KINDS = (
    "placeholder",
    "call_method",
    "call_module",
    "call_function",
    "get_attr",
    "output",
    "root",
)

# Functions that are kept although nobody uses their results.
_side_effectful_functions: set[Callable[..., Any]] = {rushlight._assert, rushlight._assert_async}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep calls of a function even if their results are unused; also a decorator.

    Args:
        fn: the function, which is returned.

    Example:
        >>> @torch.fx.has_side_effect
        ... def log(x):
        ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


# ---- names of functions and types ----

# Where functions of the op table stand publicly, asked in this order.
_PLACES = ("", "nn.functional", "linalg", "fft", "special", "nn.init", "_C._nn", "_C.ops")


def _public_module(func: Callable[..., Any]) -> str | None:
    """The module of ours in which a function of the extension has its own name."""
    for place in _PLACES:
        module = rushlight
        for part in filter(None, place.split(".")):
            module = getattr(module, part)
        name = func.__name__.removeprefix(f"{place}_") if place in ("linalg", "fft") else None
        for candidate in (func.__name__, name):
            if candidate and vars(module).get(candidate) is func:
                return ".".join(filter(None, ["torch", place])) + "." + candidate
    return None


def _as_torch(module: str) -> str:
    """The name of a module as PyTorch's programs write it."""
    root, dot, rest = module.partition(".")
    return "torch" + dot + rest if root == "rushlight" else module


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The dotted name by which code finds a function: "torch.nn.functional.relu"."""
    name = getattr(func, "__name__", None)
    if name is not None and getattr(builtins, name, None) is func:
        return name
    if isinstance(func, _ops.OpOverload):
        return f"torch.ops.{str(func).replace('::', '.')}"
    if isinstance(func, _ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{func}"
    if isinstance(func, _ops.OpOverloadPacket):
        return f"torch.ops.{func._qualified_op_name.replace('::', '.')}"
    method = isinstance(func, types.MethodDescriptorType | types.WrapperDescriptorType)
    if method and issubclass(func.__objclass__, _C.TensorBase):
        return f"torch.Tensor.{name}"
    if name is None:
        raise RuntimeError(f"cannot find a name for {func}")
    if isinstance(func, types.BuiltinFunctionType) or type(func).__name__ == "_Offered":
        public = _public_module(func)
        if public is not None:
            return public
    module = getattr(func, "__module__", None)
    if module is None:
        raise RuntimeError(f"cannot find the module of {func}")
    module = _as_torch(module)
    if name == "<lambda>":
        raise RuntimeError(f"cannot name a lambda of {module}")
    return f"{module}.{getattr(func, '__qualname__', name) if inspect.isclass(func) else name}"


def _type_repr(obj: Any) -> str:
    """A type as an annotation says it."""
    if isinstance(obj, types.GenericAlias) or not isinstance(obj, type | types.FunctionType):
        return "..." if obj is Ellipsis else repr(obj)
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    home = "" if obj.__module__ == "builtins" else f"{_as_torch(obj.__module__)}."
    return home + obj.__qualname__


# ---- walks over arguments ----


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Apply `fn` to everything in a structure of tuples, lists, dicts and slices.

    Lists and dicts become ones that cannot be changed.

    Args:
        a: the structure.
        fn: is called with everything that is no container.

    Example:
        >>> torch.fx.map_aggregate([2, (3, {"a": 4})], lambda n: n * 10)
        [20, (30, {'a': 40})]
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        if hasattr(a, "_fields"):
            return type(a)(*parts)
        return a if all(x is y for x, y in zip(a, parts, strict=True)) else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(part, fn) for part in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(part, fn) for key, part in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Apply `fn` to the nodes in a structure.

    Args:
        a: the structure.
        fn: is called with each node.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.add(x, 1)).graph
        >>> add = list(graph.nodes)[1]
        >>> torch.fx.map_arg(add.args, lambda node: node.name)
        ('x', 1)
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as graphs print it."""
    if isinstance(arg, list | tuple) and not hasattr(arg, "_fields"):
        items = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        if len(arg) > len(items):
            items.append(f"...[total_len={len(arg)}]")
        body = ", ".join(items)
        if isinstance(arg, list):
            return f"[{body}]"
        return f"({body},)" if len(arg) == 1 else f"({body})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# ---- nodes ----


class Node:
    """A step of a graph: an input, a call, the reading of an attribute, or the output.

    `op` says which: "placeholder", "get_attr", "call_function", "call_method", "call_module" or
    "output"; `target` what is called or read; `args` and `kwargs` hold nodes where values of other
    steps go. `users` are the nodes that this one is an argument of.

    Args:
        graph: the graph that it is in.
        name: its name, that of a variable in the code.
        op: the kind, one of those above.
        target: what is called or read: a function, or a name.
        args: arguments by position.
        kwargs: arguments by name.
        return_type: the type of the value, for annotations.

    Example:
        >>> node = list(torch.fx.symbolic_trace(lambda x: torch.neg(x)).graph.nodes)[1]
        >>> node.op, node.target is torch.neg, node.args
        ('call_function', True, (x,))
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _KINDS:
            raise AssertionError(f"{op!r} is no kind of node")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target: Any = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._update_args_kwargs(args, kwargs)

    def __getstate__(self):
        state = self.__dict__.copy()
        # Nodes form rings; a copy of the graph sets these anew.
        for name in ("_prev", "_next"):
            del state[name]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._prev = self._next = self

    @property
    def next(self) -> Node:
        """The next node."""
        return self._next

    @property
    def prev(self) -> Node:
        """The previous node."""
        return self._prev

    def _position(self) -> int:
        for position, node in enumerate(self.graph.nodes):
            if node is self:
                return position
        return -1

    def __lt__(self, other: Node) -> bool:
        return self._position() < other._position()

    def __gt__(self, other: Node) -> bool:
        return self._position() > other._position()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def prepend(self, x: Node) -> None:
        """Move node `x` before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move node `x` after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assign new ones to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments; assign new ones to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The distinct nodes among the arguments."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), use)
        self._kwargs = map_arg(dict(kwargs), use)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Set one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before index `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """The place in the program that made this node, if the tracer recorded it."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "_operator":
            return f"operator.{target.__name__}"
        if getattr(builtins, getattr(target, "__name__", ""), None) is target:
            return f"builtins.{target.__name__}"
        try:
            return _get_qualified_name(target)
        except RuntimeError:
            return repr(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The line for this node in a printed graph.

        Args:
            placeholder_names: None, or a list that names of inputs are appended to; they have no
                line then.
            maybe_return_typename: None, or a list whose one item becomes the output's type.
            include_tensor_metadata: put in sizes and dtype where they are known.
        """
        users = f"[num_users={len(self.users)}]"
        kind = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            text = f"%{self.name} : {kind}{users} = {self.op}[target={self.target}]"
            if placeholder_names is not None:
                placeholder_names.append(text)
                return None
            return text + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        known = self.meta.get("tensor_meta") if include_tensor_metadata else None
        if known is not None and hasattr(known, "shape"):
            kind += f"{known.dtype}{list(known.shape)} "
        call = f"{self.op}[target={self._pretty_print_target(self.target)}]"
        text = f"%{self.name} : {kind}{users} = {call}"
        if self.op == "get_attr":
            return text
        return f"{text}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by another in the arguments of all its users.

        Args:
            replace_with: the node.
            delete_user_cb: of a user whether it is changed; None means all are.
            propagate_meta: move `meta` over, to a node that has none.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("the node that takes over meta must have none")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one node by another among the arguments."""
        hooks = self.graph._replace_hooks
        for hook in hooks:
            hook(old_input, new_input.name, self)

        def change(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self.args, change), map_arg(self.kwargs, change))

    _replace_input_with = replace_input_with

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node has side effects, so that it is kept without users."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return _is_inplace_name(self.target)
        if self.op == "call_function":
            if self.target in _side_effectful_functions or self.kwargs.get("inplace") is True:
                return True
            schema = getattr(self.target, "_schema", None)
            if schema is not None and (getattr(schema, "is_mutable", False) or not schema.returns):
                return True
            if getattr(self.target, "__module__", None) == "_operator":
                return self.target in (operator.setitem, operator.delitem)
            return _is_inplace_name(getattr(self.target, "__name__", ""))
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module is needed to look at a module")
            module = owner.get_submodule(self.target)
            return bool(getattr(module, "is_impure", False))
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments in the order of the target's signature, or None if there is none.

        Args:
            root: the module that modules of the graph are in.
            arg_types: has no effect, since the signature is known.
            kwarg_types: not needed.
            normalize_to_only_use_kwargs: give all by keyword.
        """
        from rushlight.fx.operator_schemas import normalize_function, normalize_module

        call = (self.target, self.args, self.kwargs)
        by_name = normalize_to_only_use_kwargs
        if self.op == "call_module":
            return normalize_module(root, *call, by_name)
        if self.op == "call_function":
            return normalize_function(*call, arg_types, kwarg_types, by_name)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)


def _is_inplace_name(name: str) -> bool:
    """Whether a function changes its input by its name: `add_`, not `__add__`."""
    return name.endswith("_") and not name.endswith("__")
