"""`Tracer`: runs a program on proxies, and keeps what it did as a graph."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, _assert, nn
from rushlight._C import ScriptObject
from rushlight._warnings import warn
from rushlight.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx._compatibility import compatibility  # noqa: F401
from rushlight.fx._lazy_graph_module import _LazyGraphModule, _make_graph_module
from rushlight.fx._patches import (
    _autowrap_check,
    _create_wrapped_func,
    _create_wrapped_method,
    _Patcher,
    _proxies,
    _public_functions,
    is_fx_tracing,
)
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, base_types
from rushlight.fx.proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase
from rushlight.utils import _pytree as pytree

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

is_fx_symbolic_tracing = is_fx_tracing


class PHBase:
    """Stands for a value that is an input, in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """The same with attributes for the node that it becomes."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


PH = PHBase()


class ProxyableClassMeta(type):
    """A class of this kind can be made from proxies: to make one becomes a call in the graph.

    Example:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, first, second):
        ...         self.first, self.second = first, second
        >>> traced = torch.fx.symbolic_trace(lambda x: Pair(x, x + 1).second)
        >>> traced(torch.tensor([4]))
        tensor([5])
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance: Any = cls.__new__(cls)  # type: ignore[call-overload]
        tracers = {p.tracer for p in _proxies((args, kwargs))}
        if not tracers:
            cls.__init__(instance, *args, **kwargs)
            return instance
        if len(tracers) > 1:
            raise AssertionError("arguments of one call are of several tracers")
        return tracers.pop().create_proxy("call_function", cls, args, kwargs)


# ---- functions that are recorded whole ----

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Lets calls of a global function of the module that this stands in be recorded as calls.

    For an example see `fx.Tracer`, whose `autowrap_functions` does the same for one trace.

    Args:
        fn_or_name: the function, or its name where it is imported or built in; also a decorator.

    Example:
        >>> from rushlight.fx import wrap
    """
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    if not isinstance(name, str):
        kind = type(fn_or_name).__name__
        raise RuntimeError(f"Unsupported type for global function: a callable or string, no {kind}")
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


# What subclasses of `Tracer` that trace in their own way call inside of their replacements.
_orig_module_call: Callable[..., Any] = nn.Module.__call__
_orig_module_getattr: Callable[..., Any] = nn.Module.__getattr__


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), space in list(_wrapped_fns_to_patch.items()):
        known = vars(builtins) | space
        patcher.patch(space, name, _create_wrapped_func(known[name]))
    for method in _wrapped_methods_to_patch:
        patcher.patch_method(*method, _create_wrapped_method(*method))


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


# ---- the tracer ----


def _name_of(value: Any, named: Iterable[tuple[str, Any]]) -> str | None:
    return next((name for name, one in named if one is value), None)


class Tracer(TracerBase):
    """Runs a module or a function on proxies; subclasses choose what is recorded whole.

    Args:
        autowrap_modules: Python modules whose functions become single nodes when they are called
            with proxies.
        autowrap_functions: functions for which the same holds.
        param_shapes_constant: sizes of parameters are numbers instead of steps of the graph.

    Example:
        >>> graph = torch.fx.Tracer().trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_module', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self.param_shapes_constant = param_shapes_constant
        self._autowrap_search: list[types.ModuleType] = [*autowrap_modules]
        self._autowrap_function_ids = {id(function) for function in autowrap_functions}
        for module in autowrap_modules:
            self._autowrap_function_ids |= {id(f) for _, f in _public_functions(vars(module))}
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[Tensor | ScriptObject, str] = {}

    def create_arg(self, a: Any) -> Any:
        """From a value to an argument of a node; tensors become attributes that are read."""
        path = self._path_of_value(a)
        return super().create_arg(a) if path is None else self.create_node("get_attr", path, (), {})

    def _path_of_value(self, a: Any) -> str | None:
        """The root's name of a value that graphs read from it; None for all others."""
        if isinstance(a, nn.Parameter):
            path = _name_of(a, self.root.named_parameters())
            if path is None:
                raise NameError("parameter is not a member of this module")
            return path
        if isinstance(a, Tensor | ScriptObject):
            path = _name_of(a, self.root.named_buffers()) or self.tensor_attrs.get(a)
            if path is None:
                path = self.tensor_attrs[a] = self._keep(a, "_tensor_constant")
            return path
        if isinstance(type(a), ProxyableClassMeta):
            return self._keep(a, f"_{type(a).__name__}_constant_")
        return None

    def _keep(self, value: Any, prefix: str) -> str:
        """Makes a value an attribute of the root."""
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with a number that the root has no attribute of."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one call in the graph: the layers of `torch.nn` are."""
        home = type(m).__module__
        ours = any(home == base or home.startswith(f"{base}.") for base in _LAYERS)
        return ours and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The dotted name of a submodule of the root."""
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is not None:
                return path
        name = _name_of(mod, self.root.named_modules())
        if name is None:
            raise NameError("module is not installed as a submodule")
        return name

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Called for each call of a module; records it, or runs it on proxies.

        Args:
            m: the module.
            forward: calls it.
            args: positional arguments.
            kwargs: keyword arguments.
        """
        name = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(name, type(m))) as scope:
            count = self.num_calls.get(name, 0)
            self.num_calls[name] = count + 1
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self.module_stack[key] = (name, type(m))
            try:
                if self.is_leaf_module(m, name):
                    return self.create_proxy("call_module", name, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called where a module's parameter, buffer or submodule is read; what is given instead.

        Args:
            attr: its name in that module.
            attr_val: the value.
            parameter_proxy_cache: the proxies of this trace by dotted names.
        """

        def find(collection: Any) -> Any:
            for name, value in collection:
                if attr_val is value:
                    if name not in parameter_proxy_cache:
                        made: dict[str, Any] = {}  # not every tracer's own create_proxy takes it
                        if self.param_shapes_constant:
                            factory = functools.partial(self._parameter_proxy, name, attr_val)
                            made["proxy_factory_fn"] = factory
                        proxy = self.create_proxy("get_attr", name, (), {}, **made)
                        parameter_proxy_cache[name] = proxy
                    return parameter_proxy_cache[name]
            return None

        if isinstance(attr_val, nn.Parameter):
            found = find(self.root.named_parameters())
            return attr_val if found is None else found
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = find(self.root.named_buffers())
            return attr_val if found is None else found
        return attr_val

    def _parameter_proxy(self, name: str, value: Any, node: Node) -> ParameterProxy:
        return ParameterProxy(self, node, name, value)

    # ---- inputs ----

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function that is traced, and a proxy or a given value for each argument."""
        fn = inspect.unwrap(root_fn)
        code = fn.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = [self.root] if is_module else []
        if is_module and total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        first = len(args)
        signature = inspect.signature(fn)
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != total - first:
                raise RuntimeError(
                    f"Tracing expected {total - first} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(names[first:total], concrete_args, strict=True))
        for name in names[first:total]:
            args.append(self._placeholder(name, concrete_args, signature, fn))
        has_stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if code.co_kwonlyargcount or has_stars:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder("*" + next(rest), concrete_args, signature, fn))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder("**" + next(rest), concrete_args, signature, fn))
            root_fn = _with_plain_arguments(fn, len(args))
        if concrete_args is None:
            return root_fn, args
        return self._with_containers(root_fn, args, names[:total])

    def _with_containers(
        self, root_fn: Callable[..., Any], args: list[Any], names: list[str]
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The same where arguments are containers of proxies: the graph has their leaves."""
        leaves, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        inputs = in_spec.children()[1:] if args[0] is self.root else in_spec.children()
        spec = pytree.tree_structure(
            tuple(pytree.tree_unflatten([0] * child.num_leaves, child) for child in inputs)
        )
        self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, spec, None)))

        def flatten_fn(*flat):
            result = root_fn(*pytree.tree_unflatten(list(flat), in_spec))
            values, out_spec = pytree.tree_flatten(result)
            codegen: Any = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return values

        return flatten_fn, leaves

    def _placeholder(
        self, name: str, concrete_args: Any, signature: inspect.Signature, fn: Any
    ) -> Any:
        """The proxy of an input; of one with a given value, the value."""
        parameter = signature.parameters.get(name)
        default: tuple[Any, ...] = ()
        if parameter is not None and parameter.default is not inspect.Parameter.empty:
            default = (parameter.default,)
        annotation = fn.__annotations__.get(name, None) if name[0] != "*" else None
        annotation = None if isinstance(annotation, str) else annotation  # not evaluated
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        count = 0

        def replace(value: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                for key, attribute in vars(value).items():
                    setattr(out.node, key, attribute)
                return out
            message = f"{name} has been specialized to have value {value} but got another value"
            if value is None:
                self.create_proxy("call_function", _assert_is_none, (out, message), {})
            elif isinstance(value, base_types) and not isinstance(value, Tensor):
                _assert(out == value, message)
            else:
                warn(
                    f"Was not able to add assertion for {name}, whose values are not compared: "
                    "callers have to pass what it was traced with",
                )
            return value

        return pytree.tree_map(replace, concrete_args[name])

    # ---- the run ----

    def trace(
        self,
        root: nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """Runs a module or a function on proxies.

        Args:
            root: the module or function.
            concrete_args: values by name of arguments that are not inputs of the graph; inside of
                containers `PH` marks inputs.
        """
        _LazyGraphModule.force_recompile(root)
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = nn.Module()
            fn = root
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls = {}
        self.tensor_attrs = dict(_tensor_attributes(self.root, ""))
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"a function is traced, not {type(fn)}")
        space = fn.__globals__
        fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
        with _Patcher() as patcher:
            self._patch_modules(patcher)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, space, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            result = self.create_arg(fn(*args))
        returns = getattr(fn, "__annotations__", {}).get("return")
        returns = None if isinstance(returns, str) else returns
        self.create_node("output", "output", (result,), {}, type_expr=returns)
        return self.graph

    def _patch_modules(self, patcher: _Patcher) -> None:
        """Lets this tracer see calls of modules, and reads of what they own."""
        call: Any = nn.Module.__call__
        read: Any = nn.Module.__getattr__
        cache: dict[str, Any] = {}
        busy = False

        @functools.wraps(call)
        def module_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            space = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, space, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        def module_read(mod: Any, name: str) -> Any:
            nonlocal busy
            value = read(mod, name)
            # The tracer's own reads are plain.
            if busy or not isinstance(value, Tensor | nn.Module):
                return value
            busy = True
            try:
                return self.getattr(name, value, cache)
            finally:
                busy = False

        patcher.patch_method(nn.Module, "__call__", module_call, deduplicate=False)
        patcher.patch_method(nn.Module, "__getattr__", module_read, deduplicate=False)


# Where the layers are; classes tell PyTorch's names under the alias.
_LAYERS = ("rushlight.nn", "torch.nn")


def _tensor_attributes(module: nn.Module, prefix: str) -> Iterator[tuple[Any, str]]:
    """The tensors and objects of classes in C++ that are plain attributes of modules."""
    for name, value in vars(module).items():
        if isinstance(value, Tensor | ScriptObject):
            yield value, prefix + name
    for name, child in module.named_children():
        yield from _tensor_attributes(child, f"{prefix}{name}.")


def _with_plain_arguments(fn: Any, count: int) -> Callable[..., Any]:
    """The function with `*args`, `**kwargs` and what is by keyword alone as plain arguments."""
    code = fn.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    plain = code.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~stars,
    )
    made = FunctionType(plain, fn.__globals__, fn.__name__, None, fn.__closure__)
    made.__annotations__ = dict(fn.__annotations__)
    return made


def symbolic_trace(
    root: nn.Module | Callable[..., Any],
    concrete_args: dict[str, Any] | None = None,
) -> GraphModule:
    """The GraphModule of a module or a function; see `Tracer.trace`.

    Args:
        root: a module or a function.
        concrete_args: values of arguments that become constants, by name.

    Returns:
        A GraphModule, which is called as `root` is.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: (x + 1).relu())
        >>> print(traced.code.strip())
        def forward(self, x):
            add = x + 1;  x = None
            relu = add.relu();  add = None
            return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)
