"""Ops of one's own under a name: `custom_op`, then `ops.NAMESPACE.NAME`.

A custom op is a Python function that autograd and meta tensors take as a whole. It may have a
function for each device type, one for the meta device, and a backward.
"""

from __future__ import annotations

import inspect
import threading
import typing
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._ops import ops
from rushlight.utils import _pytree

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

_definitions: dict[str, CustomOpDef] = {}

_SCHEMA_TYPES = {
    rushlight.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    rushlight.dtype: "ScalarType",
    rushlight.device: "Device",
}


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema that a function's annotations say: "(Tensor x, float y) -> Tensor".

    Raises:
        ValueError: an argument or the result has no annotation, or one that schemas lack.
    """
    hints = typing.get_type_hints(prototype_function)
    parts: list[str] = []
    for i, p in enumerate(inspect.signature(prototype_function).parameters.values()):
        if p.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {p.name} must have a type annotation. Got func "
                f"with signature {inspect.signature(prototype_function)}"
            )
        kind = _schema_type(hints[p.name])
        if kind.startswith("Tensor") and (mutates_args == "unknown" or p.name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = "" if p.default is p.empty else f"={p.default}"
        star = "*, " if p.kind is p.KEYWORD_ONLY and "*, " not in "".join(parts) else ""
        parts.append(f"{star}{kind} {p.name}{default}")
    result = hints.get("return", None)
    if "return" not in hints:
        raise ValueError("infer_schema(func): the result must have a type annotation")
    results = "()" if result in (None, type(None)) else _schema_type(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {results}"


def _schema_type(hint):
    if hint in _SCHEMA_TYPES:
        return _SCHEMA_TYPES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if type(None) in arguments and len(arguments) == 2:
        return _schema_type(next(a for a in arguments if a is not type(None))) + "?"
    if origin is tuple and arguments and Ellipsis not in arguments:
        return f"({', '.join(map(_schema_type, arguments))})"
    if origin is not None and arguments and origin is not typing.Union:
        return _schema_type(arguments[0]) + "[]"
    if set(arguments) == {int, float, bool} or hint is complex:
        return "Scalar"
    raise ValueError(f"infer_schema(func): the type {hint} is none of those that schemas have")


class CustomOpDef:
    """A custom op: call it, or register what it does elsewhere."""

    def __init__(self, namespace, name: str, schema, fn=None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname = f"{namespace}::{name}"
        # What it does, by device type; None for all others.
        self._kernels: dict[typing.Any, typing.Any] = {} if fn is None else {None: fn}
        self._fake = None
        self._composite: Any = None  # made of other ops, which record themselves
        self._autograd = None  # called first, with recording
        self._vmap = None
        self.__name__ = name
        _definitions[self._qualname] = self
        ops._add(namespace, name, self)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def default(self):
        """Itself: it has one overload."""
        return self

    def overloads(self):
        """The names of the overloads."""
        return ["default"]

    def register_fake(self, fn: Callable[..., Any]):
        """Decorates the function for meta tensors: it makes results of the right sizes."""
        self._fake = fn
        return fn

    def register_kernel(self, device_types, func=None):
        """Decorates the function for one or several device types; None for all."""

        def register(function):
            for device in (
                (device_types,) if isinstance(device_types, (str, type(None))) else device_types
            ):
                self._kernels[device] = function
            return function

        return register if func is None else register(func)

    def register_autograd(self, backward, /, *, setup_context=None):
        """Give the backward: `backward(ctx, *grads)`, one gradient for each argument.

        `setup_context(ctx, inputs, output)` keeps what it needs.
        """
        op = self

        class _Function(rushlight.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                output = op._run(inputs)
                if setup_context is not None:
                    setup_context(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx, *grads):
                return backward(ctx, *grads)

        _Function.__name__ = self._name
        self._autograd = _Function.apply

    def register_vmap(self, func=None):
        """Decorates the rule of vmap: `rule(info, in_dims, *args)` returns (output, out_dims)."""

        def register(function):
            self._vmap = function
            return function

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """Accepted: dispatch modes see what the op is made of."""
        return fn if fn is not None else lambda function: function

    def _has_kernel(self, args):
        """Whether some function is there for the devices of these arguments alone."""
        if None in self._kernels:
            return True
        devices = _devices(args)
        return ("meta" in devices and self._fake is not None) or not devices.isdisjoint(
            self._kernels
        )

    def _run(self, args):
        devices = _devices(args)
        if "meta" in devices:
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._qualname}: there is no fake implementation for meta tensors; use "
                    "register_fake"
                )
            return self._fake(*args)
        for device in (*devices, None):
            if device in self._kernels:
                return self._kernels[device](*args)
        raise NotImplementedError(
            f"{self._qualname}: there is no implementation for {', '.join(devices) or 'no tensor'}"
        )

    def __call__(self, *args, **kwargs):
        function = next(iter(self._kernels.values()), self._composite or self._fake)
        if function is not None and (kwargs or self._has_defaults(function)):
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            args = (*bound.args, *bound.kwargs.values())
        if self._vmap is not None and _C._current_level():
            from rushlight import _vmap

            if _vmap.level_among(args):
                return _vmap.by_rule(self._vmap, args, self._qualname)
        if self._autograd is not None and not _AutoDispatchBelowAutograd._inside():
            return self._autograd(*args)
        if self._composite is not None and not self._has_kernel(args):
            return self._composite(*args)
        tensors = [t for t in _pytree.tree_iter(list(args)) if isinstance(t, _C.TensorBase)]
        if any(map(_C._forward_level_of, tensors)):
            raise NotImplementedError(
                f"Trying to use forward AD with {self._qualname} that does not support it because "
                "it has not been implemented yet."
            )
        with rushlight.no_grad():
            result = self._run(args)
        if not _C.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return result
        message = (
            f"Trying to backward through {self._qualname}.default but no autograd formula was "
            "registered. Please use register_autograd to add one."
        )

        def guard(t):
            differentiable = t.is_floating_point() or t.is_complex()
            return (
                _C._with_backward_error(t.detach().requires_grad_(), message)
                if differentiable
                else t
            )

        return _pytree.tree_map_only(_C.TensorBase, guard, result)

    @staticmethod
    def _has_defaults(function):
        return any(
            p.default is not p.empty for p in inspect.signature(function).parameters.values()
        )


def _devices(args):
    return {t.device.type for t in _pytree.tree_iter(list(args)) if isinstance(t, _C.TensorBase)}


class _AutoDispatchBelowAutograd:
    """Within it nothing is recorded, and ops of one's own skip their function for autograd.

    Such a function calls the op itself in it, to get at what the op does on the device.
    """

    _thread = threading.local()

    def __init__(self) -> None:
        self._no_grad = rushlight.no_grad()

    @classmethod
    def _inside(cls):
        return getattr(cls._thread, "depth", 0) > 0

    def __enter__(self):
        self._thread.depth = getattr(self._thread, "depth", 0) + 1
        self._no_grad.__enter__()
        return self

    def __exit__(self, *error):
        self._no_grad.__exit__(*error)
        self._thread.depth -= 1


_C._AutoDispatchBelowAutograd = _AutoDispatchBelowAutograd


def _parts(qualname):
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name:
        raise ValueError(
            f"Expected qualname to be of the form 'namespace::name', but got {qualname}"
        )
    return namespace, name.removesuffix(".default")


def _defined(op):
    if isinstance(op, CustomOpDef):
        return op
    namespace, name = _parts(op)
    found = _definitions.get(f"{namespace}::{name}")
    if found is None:
        raise RuntimeError(f"the operator {op} does not exist")
    return found


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a function an op, `ops.NAMESPACE.NAME`; without `fn` a decorator.

    Args:
        name: "namespace::name".
        mutates_args: the names of the arguments that it writes.
        device_types: for which devices the function is; None for all.
        schema: by default what the annotations say.
    """

    def define_op(function):
        said = schema or infer_schema(function, mutates_args=mutates_args)
        namespace, short = _parts(name)
        op = CustomOpDef(namespace, short, said)
        op.register_kernel(device_types, function)
        return op

    return define_op if fn is None else define_op(fn)


def define(qualname, schema, alias_analysis: str = "", *, lib=None, tags=()):
    """Name an op, "namespace::name", with its schema; `impl` gives what it does.

    With a `Library` instead of a name, a decorator of what the op does on all devices.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis)
        return impl(qualname, name, "CompositeImplicitAutograd")
    namespace, name = _parts(qualname)
    CustomOpDef(namespace, name, schema)
    return None


def impl(qualname, types, func=None, *, lib=None):
    """Decorates what a named op does on devices: "cpu", "cuda", "default" or several of them.

    With a `Library`, the name of its op and a dispatch key, a decorator for `Library.impl`.
    """
    if isinstance(qualname, Library):

        def register(function):
            qualname.impl(types, function, func or "")
            return function

        return register
    kinds = (types,) if isinstance(types, str) else tuple(types)
    devices = [None if t.lower() in ("default", "compositeexplicitautograd") else t for t in kinds]
    return _defined(qualname).register_kernel([d and d.lower() for d in devices], func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Decorates what an op does on devices."""
    return _defined(op).register_kernel(device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override: bool = False):
    """Decorates what an op makes of meta tensors."""
    definition = _defined(op)
    return definition.register_fake if func is None else definition.register_fake(func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Give the backward of an op."""
    _defined(op).register_autograd(backward, setup_context=setup_context)


def get_ctx():
    """RuntimeError: sizes that depend on values are not made up here."""
    raise RuntimeError("get_ctx() can only be called inside of a fake impl of a compiler")


def fallthrough_kernel():
    """NotImplementedError: it only stands for a kernel."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A namespace to define ops in: `define` names them, `impl` says what they do.

    Raises:
        NotImplementedError: for the ops of the table ("aten"), which are not to be replaced.
    """

    def __init__(self, ns, kind, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "aten":
            raise NotImplementedError("the ops of 'aten' cannot be replaced")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema, alias_analysis: str = "", *, tags=()):
        """Name an op by its schema, "name(Tensor x) -> Tensor"; returns the name."""
        name = schema.partition("(")[0].strip()
        CustomOpDef(self.ns, name, schema.removeprefix(name))
        return name

    def impl(
        self,
        op_name,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ):
        """Say what an op does.

        Args:
            dispatch_key: a device ("CPU", "CUDA", "Meta"); "CompositeExplicitAutograd" for all of
                them; "CompositeImplicitAutograd" (the default) for a function made of other ops,
                whose gradients follow from theirs; "Autograd" for what is called first, while
                gradients are recorded: as a rule `apply` of an `autograd.Function`.

        Raises:
            RuntimeError: another dispatch key.
        """
        if with_keyset:
            raise NotImplementedError("there are no sets of dispatch keys to pass on")
        name = op_name if isinstance(op_name, str) else op_name._name
        definition = _defined(f"{self.ns}::{name.rpartition('::')[2]}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if key == "CompositeImplicitAutograd":
            definition._composite = fn
        elif key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            definition._autograd = fn
        elif key == "Meta":
            definition.register_fake(fn)
        elif key == "CompositeExplicitAutograd":
            definition.register_kernel(None, fn)
        elif key in ("CPU", "CUDA"):
            definition.register_kernel(key.lower(), fn)
        else:
            raise RuntimeError(f"could not parse dispatch key: {key}")

    def _destroy(self):
        """Accepted: names stay."""
