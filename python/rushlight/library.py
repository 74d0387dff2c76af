"""Custom ops: `custom_op`, then `ops.NAMESPACE.NAME`.

A custom op is a Python function that autograd, meta and fake tensors take as a whole. It may have a
function for each device type, one for fake tensors, a backward, a rule of vmap and of autocast.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight._library import gradients, keys, registry, simple_registry
from rushlight._library import schema as schemas
from rushlight._library.custom_ops import CustomOpDef, custom_op, devices_of
from rushlight._library.infer_schema import infer_schema
from rushlight._library.opcheck import opcheck
from rushlight._library.tags import listed
from rushlight._ops import OpOverload

if TYPE_CHECKING:
    pass

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
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
    "triton_op",
    "wrap_triton",
]

_C._AutoDispatchBelowAutograd = registry.Below
_C.DispatchKey, _C.DispatchKeySet = keys.DispatchKey, keys.DispatchKeySet
_C._dispatch_keys = keys.of
_C._after_autograd_keyset = _C._after_ADInplaceOrView_keyset = keys.AFTER_AUTOGRAD


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


def define(
    qualname: Any,
    schema: str,
    alias_analysis: str = "",
    *,
    lib: Any = None,
    tags: Any = (),
) -> Callable[..., Any] | None:
    """Define an op, "namespace::name", with its schema; `impl` registers its implementation.

    With a `Library` instead of a name, a decorator of what the op does on all devices.

    Args:
        qualname: "namespace::name", or a `Library`.
        schema: arguments and results in the language of PyTorch, "(Tensor x) -> Tensor".
        alias_analysis: with a `Library`: "CONSERVATIVE" or "FROM_SCHEMA".
        lib: a `Library` that the op goes with.
        tags: words of `torch.Tag`.

    Example:
        >>> torch.library.define("docs_define::halve", "(Tensor x) -> Tensor")
        >>> _ = torch.library.impl("docs_define::halve", "default", lambda x: x / 2)
        >>> torch.ops.docs_define.halve(torch.tensor([8.0, 3.0]))
        tensor([4.0000, 1.5000])
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


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """A decorator that registers the implementation of an op for devices: "cpu", "cuda", "default"
    or several.

    With a `Library`, the name of its op and a dispatch key, a decorator for `Library.impl`.

    Args:
        qualname: the op, or a `Library`.
        types: kinds of devices, or with a `Library` the name of its op.
        func: the function; None: a decorator.
        lib: a `Library` that the registration goes with.

    Example:
        >>> torch.library.define("docs_impl::halve", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs_impl::halve", "cpu")
        ... def halve(x):
        ...     return x / 2
        >>> torch.ops.docs_impl.halve(torch.tensor([8.0, 3.0]))
        tensor([4.0000, 1.5000])
    """
    if isinstance(qualname, Library):

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(types, function, func or "")
            return function

        return register
    space = schemas.name_of(qualname if isinstance(qualname, str) else qualname.name()).space
    wanted = set()
    for kind in (types,) if isinstance(types, str) else tuple(types):
        if kind in _KEYS:
            wanted.add(kind)
        else:
            (device,) = devices_of(kind)
            wanted.add("CompositeExplicitAutograd" if device is None else device.upper())

    def register_all(function: Callable[..., Any]) -> Callable[..., Any]:
        library = lib or _library_of(space)
        for key in wanted:
            library.impl(qualname, function, key)
        return function

    return register_all if func is None else register_all(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """A decorator that registers the implementation of an op for devices.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        device_types: kinds of devices: "cpu", "cuda", several in a list, or None for all.
        func: the function; None: a decorator.
        lib: a `Library` that the registration goes with.

    Example:
        >>> @torch.library.custom_op("docs_kernel::halve", mutates_args=(), device_types="cuda")
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> @torch.library.register_kernel("docs_kernel::halve", "cpu")
        ... def halve_on_cpu(x):
        ...     return x * 0.5
        >>> halve(torch.tensor([8.0, 3.0]))
        tensor([4.0000, 1.5000])
    """
    if isinstance(op, CustomOpDef):
        return op.register_kernel(device_types, func)
    if device_types is None:
        device_types = "CompositeExplicitAutograd"
    return impl(op if isinstance(op, str) else op.name(), device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """A decorator that registers the results of an op for meta and fake tensors.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        func: makes results of the right shape and dtype; None: a decorator.
        lib: a `Library` that the registration goes with.
        allow_override: whether another function may be there.

    Example:
        >>> @torch.library.custom_op("docs_fake::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> @torch.library.register_fake("docs_fake::halve")
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> halve(torch.empty(2, 3, device="meta")).shape
        torch.Size([2, 3])
    """
    definition = _found(op)

    def register(function):
        (lib or _library_of(definition.namespace))._register_fake(definition, function)
        return function

    return register if func is None else register(func)


def impl_abstract(
    qualname: str, func: Callable[..., Any] | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """Deprecated name of `register_fake`.

    For an example see `library.register_fake`.

    Args:
        qualname: "namespace::name".
        func: makes results of the right shape and dtype; None: a decorator.
        lib: a `Library` that the registration goes with.
    """
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Register the backward of an op, as `CustomOpDef.register_autograd` does.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        backward: gets a context and the gradients of the results; returns those of the arguments.
        setup_context: gets the context, the arguments and the result, and keeps what backward
            needs.
        lib: a `Library` that the registration goes with.

    Example:
        >>> @torch.library.custom_op("docs_autograd::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> torch.library.register_autograd("docs_autograd::halve", lambda context, grad: grad / 2)
        >>> x = torch.tensor([8.0], requires_grad=True)
        >>> halve(x).backward()
        >>> x.grad
        tensor([0.5000])
    """
    found = _found(op)
    function = gradients.function_of(found, backward, setup_context)
    _take_back_with(lib, found.implement("Autograd", function))


def _take_back_with(lib, number):
    """Lets the end of a library take back a function."""
    if lib is not None:
        lib._undo.append(lambda: _C._library_take_back(number))


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """A decorator that registers an op's function for vmap, as `CustomOpDef.register_vmap` does.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        func: gets what is known of the batch, the batch dimension of each argument, and the
            arguments; returns the result and its batch dimension. None: a decorator.
        lib: a `Library` that the registration goes with.

    Example:
        >>> @torch.library.custom_op("docs_vmap::total", mutates_args=())
        ... def total(x: torch.Tensor) -> torch.Tensor:
        ...     return x.sum()
        >>> @torch.library.register_vmap("docs_vmap::total")
        ... def _(info, dims, x):
        ...     return x.movedim(dims[0], 0).flatten(1).sum(1), 0
        >>> torch.vmap(total)(torch.ones(3, 4))
        tensor([4., 4., 4.])
    """
    found = _found(op)

    def register(function):
        number = found.implement("FuncTorchBatched", registry.vmap_function(found, function))
        _take_back_with(lib, number)
        return function

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Register a dtype to which autocast on a device casts floating-point tensors before the op.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        device_type: the kind of device: "cpu" or "cuda".
        cast_inputs: the dtype.
        lib: a `Library` that the registration goes with.

    Example:
        >>> @torch.library.custom_op("docs_autocast::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> torch.library.register_autocast("docs_autocast::halve", "cpu", torch.bfloat16)
        >>> with torch.autocast("cpu"):
        ...     print(halve(torch.ones(2)).dtype)
        torch.bfloat16
    """
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")
    found = _found(op)
    function = registry.autocast_function(found, device_type, cast_inputs)
    key = f"Autocast{registry.key_of(device_type)}"
    _take_back_with(lib, found.implement(key, function))


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """A decorator that registers what a class of modes or tensors does with an op.

    For an example see `library.register_kernel`, which registers in the same way.

    Args:
        op: "namespace::name", or what `custom_op` returned.
        torch_dispatch_class: a class with `__torch_dispatch__`: a mode, or of tensors.
        func: gets the mode or class, the op, the types, the arguments; None: a decorator.
        lib: a `Library` that the registration goes with.
    """
    found = _found(op)

    def register(function):
        found.dispatch_rules[torch_dispatch_class] = function
        if lib is not None:
            lib._undo.append(lambda: found.dispatch_rules.pop(torch_dispatch_class, None))
        return function

    return register if func is None else register(func)


def get_ctx():
    """Raises RuntimeError: there are no symbolic sizes that depend on values.

    Example:
        >>> torch.library.get_ctx()
        Traceback (most recent call last):
            ...
        RuntimeError: get_ctx() can only be called inside of a fake impl of a compiler
    """
    raise RuntimeError("get_ctx() can only be called inside of a fake impl of a compiler")


def fallthrough_kernel():
    """Raises NotImplementedError: it is only a marker for a kernel.

    Example:
        >>> torch.library.fallthrough_kernel()
        Traceback (most recent call last):
            ...
        NotImplementedError: fallthrough_kernel() should never be called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


_KEYS = frozenset(keys.DispatchKey.__members__)


class Library:
    """A namespace of ops: `define` declares them, `impl` implements them.

    Of "aten", whose ops are the table's, `Library("aten", "IMPL")` puts functions in their place.
    What it registers goes when it goes.

    Args:
        kind: "DEF", "FRAGMENT" to add to a namespace that is there, "IMPL" to implement alone; the
            namespace "_" stands for all, and takes `fallback`.
        dispatch_key: that of `impl` where it is given none.
        ns: the namespace.

    Example:
        >>> library = torch.library.Library("docs_library", "DEF")
        >>> name = library.define("halve(Tensor x) -> Tensor")
        >>> library.impl("halve", lambda x: x / 2, "CPU")
        >>> torch.ops.docs_library.halve(torch.tensor([8.0, 3.0]))
        tensor([4.0000, 1.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim":
            raise ValueError(f"{ns} is a reserved namespace: a library takes a name of its own")
        if ns == "aten" and kind == "DEF":
            raise RuntimeError(
                "Only a single TORCH_LIBRARY can be used to register the namespace aten; use the "
                "kind 'FRAGMENT' to add to it, or 'IMPL' to override its ops"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], Any]] = []
        self._end = weakref.finalize(self, _take_back, self._undo)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> Any:
        """Define an op by its schema, "name(Tensor x) -> Tensor"; returns the name.

        Raises:
            RuntimeError: it is no schema, or the op is there already.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block'
            )
        parsed = schemas.parse(schema, self.ns)
        op = registry.define(parsed, listed(tags))
        self._undo.append(lambda: registry.forget(op))
        return schema.partition("(")[0].strip()

    def _key(self, dispatch_key: str) -> str:
        """The dispatch key of a registration."""
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(
                f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the "
                "dispatch key of the enclosing TORCH_LIBRARY_IMPL block"
            )
        return dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"

    def _name(self, op_name) -> str:
        """The whole name of an op of this namespace, given by name or as an overload."""
        if isinstance(op_name, str):
            space, _, short = op_name.rpartition("::")
            name = f"{space or self.ns}::{short}"
        elif isinstance(op_name, (OpOverload, CustomOpDef)):
            op = op_name._opoverload if isinstance(op_name, CustomOpDef) else op_name
            name = op.name()
        else:
            raise RuntimeError(
                "impl takes either a name or an OpOverload of the namespace, but got "
                f"{type(op_name)}"
            )
        space = name.partition("::")[0]
        if space != self.ns:
            raise RuntimeError(
                f'impl("{name}", ...): Explicitly provided namespace ({space}) in operator name '
                f"does not match namespace of enclosing TORCH_LIBRARY_IMPL block ({self.ns})."
            )
        return name

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: Any = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> Any:
        """Register the implementation of an op.

        Args:
            op_name: "name" or "name.overload", or the overload itself.
            dispatch_key: a device ("CPU", "CUDA", "Meta"); "CompositeExplicitAutograd" for all of
                them; "CompositeImplicitAutograd" (the default) for a function made of other ops,
                whose gradients follow from theirs; "Autograd" for what is called first, while
                gradients are recorded: usually `apply` of an `autograd.Function`.
            with_keyset: the function's first argument is the `DispatchKeySet` of the call;
                `op.redispatch` takes it.
            allow_override: whether a function that is there for this key is replaced.

        A function for a device, in the place of an op of the table, is differentiated as that op
        is, where the op is not made of others. The function of an op that nobody has defined yet
        waits until it is.

        Raises:
            RuntimeError: another dispatch key, or a name of another namespace.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = self._key(dispatch_key)
        if key not in _KEYS and key.lower() == _C._get_privateuse1_backend_name():
            key = "PrivateUse1"
        keys.named(key)
        name = self._name(op_name)
        if self.ns == "aten":
            registry.overload_of(name)  # there is one
        name = str(schemas.name_of(name))
        place = (name, key)
        if not allow_override and place in _implemented:
            raise RuntimeError(
                f"{place[0]} has already a kernel registered from python for {key} and {self.ns}: "
                "allow_override=True replaces it"
            )
        function = None if fn is fallthrough_kernel else fn
        number = _C._library_implement(name, key, function, with_keyset, False)
        self._undo.append(lambda: _C._library_take_back(number))
        _implemented[place] = _implemented.get(place, 0) + 1
        self._undo.append(lambda: _forget_place(place))

    def fallback(self, fn, dispatch_key: str = "", *, with_keyset: bool = False):
        """Register a function, `fn(op, *args)`, for ops that have none for a dispatch key.

        Raises:
            RuntimeError: the namespace is not "_", or there is no key.
        """
        if self.ns != "_":
            raise RuntimeError(
                "a fallback is of all namespaces: the Library has to be a fragment of the global "
                f'namespace "_", but is one of {self.ns}'
            )
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key
        if not key:
            raise RuntimeError("fallback() needs a dispatch key")
        keys.named(key)
        number = _C._library_implement("_", key, fn, with_keyset, True)
        self._undo.append(lambda: _C._library_take_back(number))

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        op = _found(f"{self.ns}::{op_name}" if isinstance(op_name, str) else op_name)
        if op.composite is not None:
            raise RuntimeError(
                f"{op.qualname} is made of other ops (CompositeImplicitAutograd), which have their "
                "own functions for fake tensors: it needs none, and may have none"
            )
        number = simple_registry.register_fake(op, fn)
        self._undo.append(lambda: _C._library_take_back(number))

    def _destroy(self) -> None:
        """Takes away what was defined and registered by this object."""
        _take_back(self._undo)


def _take_back(undo: list[Callable[[], Any]]) -> None:
    while undo:
        undo.pop()()


# How often a function was registered for an op, by its name and the dispatch key.
_implemented: dict[tuple[str, str], int] = {}


def _forget_place(place: tuple[str, str]) -> None:
    _implemented[place] -= 1
    if _implemented[place] == 0:
        del _implemented[place]


class _Kernel:
    """What an op does at a key, to be called whatever is registered later (`get_kernel`)."""

    def __init__(self, op: Any, key: str):
        self.op_handle, self._key = op, key

    def call_boxed(self, keyset, /, *args, **kwargs):
        """Calls it: `keyset` is what the caller was given."""
        with registry.Below():
            return _C._call_op(self.op_handle._index, tuple(_values(self, args, kwargs)), True)


def _values(kernel, args, kwargs):
    return kernel.op_handle._values(args, kwargs)


def get_kernel(op: Any, dispatch_key: str) -> Any:
    """The implementation of an op of the table on a device, whether or not it is overridden later.

    Args:
        op: the op of the table, such as `torch.ops.aten.neg.default`, or its name.
        dispatch_key: the device's key, such as "CPU".

    Raises:
        RuntimeError: there is no such op, or no such key.
        NotImplementedError: the op is not the table's, or the key is not a device's.

    Example:
        >>> kernel = torch.library.get_kernel("aten::neg", "CPU")
    """
    found = registry.overload_of(op) if isinstance(op, str) else op
    key = dispatch_key if isinstance(dispatch_key, str) else dispatch_key.name
    keys.named(key)
    if isinstance(found, registry.CustomOverload) or key not in ("CPU", "CUDA", "Meta"):
        raise NotImplementedError("get_kernel() knows the table's own functions for devices alone")
    return _Kernel(found, key)


_libraries: dict[str, Library] = {}


def _library_of(namespace: str) -> Library:
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


# ---- ops of Triton's kernels ----


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """Define an op from a function that starts Triton kernels; without `fn`, a decorator.

    Its body says what fake tensors become as well.

    For an example see `library.custom_op`, which defines an op in the same way.

    Args:
        name: "namespace::name".
        mutates_args: the names of the arguments that it writes.
        schema: by default what the annotations say.
        fn: the function; None: a decorator.
    """

    def define_op(function: Callable[..., Any]) -> CustomOpDef:
        op = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        op.register_fake(function)
        return op

    return define_op if fn is None else define_op(fn)


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """Return the Triton kernel itself, because nothing is traced.

    Args:
        triton_kernel: the kernel.

    Raises:
        RuntimeError: it is no kernel.

    Example:
        >>> torch.library.wrap_triton(print)
        Traceback (most recent call last):
            ...
        RuntimeError: wrap_triton takes what triton.jit or triton.autotune gave, ...
    """
    if type(triton_kernel).__module__.partition(".")[0] != "triton":
        raise RuntimeError(
            "wrap_triton takes what triton.jit or triton.autotune gave, but got "
            f"{type(triton_kernel).__name__}"
        )
    return triton_kernel
