"""Ops of one's own under a name: `custom_op`, then `ops.NAMESPACE.NAME`.

A custom op is a Python function that autograd, meta and fake tensors take as a whole. It may have a
function for each device type, one for fake tensors, a backward, a rule of vmap and of autocast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._library import gradients, registry, simple_registry
from rushlight._library import schema as schemas
from rushlight._library.custom_ops import CustomOpDef, custom_op, devices_of
from rushlight._library.infer_schema import infer_schema
from rushlight._library.opcheck import opcheck
from rushlight._library.tags import listed

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
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

_C._AutoDispatchBelowAutograd = registry.Below


def _found(op) -> registry.CustomOverload:
    """The overload of one's own that a name, an overload or a `CustomOpDef` stands for."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, registry.CustomOverload):
        return op
    name = op if isinstance(op, str) else op.name() if hasattr(op, "name") else str(op)
    found = registry.find(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def define(qualname, schema, alias_analysis: str = "", *, lib=None, tags=()):
    """Name an op, "namespace::name", with its schema; `impl` gives what it does.

    With a `Library` instead of a name, a decorator of what the op does on all devices.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis, tags=tags)
        return impl(qualname, name, "CompositeImplicitAutograd")
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be str, got {qualname!r}")
    name = schemas.name_of(qualname)
    if not schema.lstrip().startswith("("):
        raise ValueError(
            "define(qualname, schema, ...): expected schema to look like "
            f'"(...) -> ...", got {schema!r}'
        )
    library = lib or _library_of(name.space)
    library.define(qualname.partition("::")[2] + schema, alias_analysis, tags=tags)
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
    op = _found(qualname)
    keys = set()
    for kind in (types,) if isinstance(types, str) else tuple(types):
        if kind in _KEYS or kind == "CompositeImplicitAutograd":
            keys.add(kind)
        else:
            (device,) = devices_of(kind)
            keys.add("CompositeExplicitAutograd" if device is None else device.upper())

    def register_all(function):
        library = lib or _library_of(op.namespace)
        for key in keys:
            library.impl(op, function, key)
        return function

    return register_all if func is None else register_all(func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Decorates what an op does on devices."""
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    if device_types is None:
        device_types = "CompositeExplicitAutograd"
    return impl(op if isinstance(op, str) else op.name(), device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override: bool = False):
    """Decorates what an op makes of meta and fake tensors."""
    definition = _found(op)

    def register(function):
        (lib or _library_of(definition.namespace))._register_fake(definition, function)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """`register_fake`, by its old name."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Give the backward of an op, as `CustomOpDef.register_autograd` does."""
    found = _found(op)
    found.autograd = gradients.function_of(found, backward, setup_context)
    _taken_back(lib, lambda: setattr(found, "autograd", None))


def _taken_back(lib, undo):
    """What the end of a library takes back."""
    if lib is not None:
        lib._undo.append(undo)


def register_vmap(op, func=None, /, *, lib=None):
    """Decorates the rule of vmap of an op, as `CustomOpDef.register_vmap` does."""
    found = _found(op)

    def register(function):
        found.vmap = function
        _taken_back(lib, lambda: setattr(found, "vmap", None))
        return function

    return register if func is None else register(func)


def register_autocast(op, device_type: str, cast_inputs, /, *, lib=None):
    """Under autocast of a device, floating-point tensors are cast to this dtype before the op."""
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")
    found = _found(op)
    found.autocast[device_type] = cast_inputs
    _taken_back(lib, lambda: found.autocast.pop(device_type, None))


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Decorates what a class of modes or tensors does with an op."""
    found = _found(op)

    def register(function):
        found.dispatch_rules[torch_dispatch_class] = function
        _taken_back(lib, lambda: found.dispatch_rules.pop(torch_dispatch_class, None))
        return function

    return register if func is None else register(func)


def get_ctx():
    """RuntimeError: sizes that depend on values are not made up here."""
    raise RuntimeError("get_ctx() can only be called inside of a fake impl of a compiler")


def fallthrough_kernel():
    """NotImplementedError: it only stands for a kernel."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


# Dispatch keys, but for CompositeImplicitAutograd, and where a function for them is kept.
_KEYS = frozenset(
    [
        "CPU",
        "CUDA",
        "Meta",
        "XPU",
        "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional",
        "Autograd",
        "AutogradCPU",
        "AutogradCUDA",
    ]
)


class Library:
    """A namespace to define ops in: `define` names them, `impl` says what they do.

    Raises:
        NotImplementedError: for the ops of the table ("aten"), which are not to be replaced.
    """

    def __init__(self, ns, kind, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if ns == "aten":
            raise NotImplementedError("the ops of 'aten' cannot be replaced")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], Any]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis: str = "", *, tags=()):
        """Name an op by its schema, "name(Tensor x) -> Tensor"; returns the name.

        Raises:
            RuntimeError: it is no schema, or the op is there already.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        parsed = schemas.parse(schema, self.ns)
        op = registry.define(parsed, listed(tags))
        self._undo.append(lambda: registry.forget(op))
        return schema.partition("(")[0].strip()

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
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if isinstance(op_name, str):
            op = _found(f"{self.ns}::{op_name.rpartition('::')[2]}")
        else:
            op = _found(op_name)
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if key == "CompositeImplicitAutograd":
            op.composite = fn
            self._undo.append(lambda: setattr(op, "composite", None))
        elif key.startswith("Autograd") and key in _KEYS:
            op.autograd, op.autograd_key = fn, key
            self._undo.append(lambda: setattr(op, "autograd", None))
        elif key in _KEYS or key.lower() == rushlight._C._get_privateuse1_backend_name():
            device = None if key.startswith("Composite") else key.lower()
            op.kernels[device] = fn
            self._undo.append(lambda: op.kernels.pop(device, None))
        else:
            raise RuntimeError(f"could not parse dispatch key: {key}")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        op = _found(f"{self.ns}::{op_name}" if isinstance(op_name, str) else op_name)
        if op.composite is not None:
            raise RuntimeError(
                f"{op.qualname} is made of other ops (CompositeImplicitAutograd), which have their "
                "own functions for fake tensors: it needs none, and may have none"
            )
        simple_registry.register_fake(op, fn)
        self._undo.append(lambda: op.kernels.pop("meta", None))

    def _destroy(self):
        """Takes away what was defined and registered by this object."""
        while self._undo:
            self._undo.pop()()


_libraries: dict[str, Library] = {}


def _library_of(namespace) -> Library:
    """The library for what is registered without one; its registrations last."""
    if namespace not in _libraries:
        _libraries[namespace] = Library(namespace, "FRAGMENT")
    return _libraries[namespace]


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A `Library` that is destroyed at the end of the block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()
