"""Ops of one's own as overloads under `ops.NAMESPACE.NAME`, and what they do by dispatch key.

A call passes the rule of `vmap`, autograd, dispatch modes and tensor classes; then the function for
its tensors' device runs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import _C
from rushlight._library import keys
from rushlight._library import schema as schemas
from rushlight._library.below import Below
from rushlight._ops import OpOverload, OpOverloadPacket, _Custom, _Namespace, _offered, ops
from rushlight._tags import from_bits, listed
from rushlight.utils import _pytree

_packets: dict[tuple[str, str], CustomPacket] = {}
_watching = threading.local()


@contextlib.contextmanager
def watched(function: Callable[..., Any] | None) -> Iterator[None]:
    """A context manager: calls of ops that have kernels go to `function(op, args, kwargs)`."""
    before = getattr(_watching, "function", None)
    _watching.function = function
    try:
        yield
    finally:
        _watching.function = before


def tensors_in(values) -> list:
    """All tensors among values, those in lists too."""
    return [t for t in _pytree.tree_iter(values) if isinstance(t, _C.TensorBase)]


def _devices(values) -> dict[str, None]:
    return dict.fromkeys(t.device.type for t in tensors_in(values))


# What a value is for a type of schemas, by the type's name; those that are not here take anything.
_IS: dict[str, Any] = {
    "Tensor": (_C.TensorBase,),
    "int": (int, rushlight.SymInt),
    "SymInt": (int, rushlight.SymInt),
    "float": (float, int, rushlight.SymFloat),
    "bool": (bool, rushlight.SymBool),
    "str": (str,),
    "ScalarType": (rushlight.dtype, int),
    "Device": (rushlight.device, str, int),
}


def _fits(kind, value):
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value)
    if kind.endswith("]"):
        base = kind[: kind.rindex("[")]
        if isinstance(value, (list, tuple)):
            return all(_fits(base, v) for v in value)
        return base in ("int", "SymInt") and kind[-2].isdigit() and _fits(base, value)
    if kind in ("int", "SymInt", "float", "bool") and isinstance(value, _C.TensorBase):
        return value.dim() == 0  # a number in a tensor
    allowed = _IS.get(kind)
    return allowed is None or isinstance(value, allowed)


class CustomOverload(OpOverload):
    """One signature of an op of one's own, and its functions."""

    def __init__(self, packet, schema, tags):
        super()._describe(packet, schema)
        self._tags = listed(tags)
        self.qualname = str(schemas.Name(self.namespace, self._opname, schema.overload_name))
        self.python_module = ""  # that is said to have what Python adds to an op of C++
        self.kernels: dict[str | None, Any] = {}  # by device type; None for all others
        self.composite: Any = None  # made of other ops, which record themselves
        self.autograd: Any = None  # called first, with recording
        self.autograd_key = "Autograd"
        self.vmap: Any = None
        self.autocast: dict[str, rushlight.dtype] = {}
        self.dispatch_rules: dict[type, Any] = {}  # by class of modes or tensors
        self.disabled: set[str] = set()

    # ---- what is there ----

    @property
    def _name(self):
        return self.qualname

    @property
    def fake(self):
        """What makes results of the right sizes: the function for the meta device."""
        return self.kernels.get("meta")

    def has_kernel(self, key: str) -> bool:
        """Whether a function is registered for a dispatch key."""
        if key == "CompositeImplicitAutograd":
            return self.composite is not None
        if key == "CompositeExplicitAutograd":
            return None in self.kernels
        if key.startswith("Autograd"):
            return self.autograd is not None
        return key.lower() in self.kernels

    def _kernel(self, args):
        devices = _devices(args)
        if "meta" in devices and self.fake is None and (self.composite is None):
            raise NotImplementedError(
                f"{self.qualname}: attempted to run this operator with Meta tensors, but there is "
                "no fake implementation registered; use register_fake"
                + (f", or import '{self.python_module}'" if self.python_module else "")
            )
        for device in (*devices, None):
            if device in self.kernels and (device != "meta" or "meta" in devices):
                return self.kernels[device]
        return None

    # ---- calls ----

    def _bound(self, args, kwargs):
        """The values of all arguments: a list, in the order of the schema."""
        try:
            values = super()._values(args, kwargs)
        except TypeError as error:
            raise RuntimeError(
                str(error).replace(self.__name__, self.qualname, 1)
                + f". Declaration: {self._schema}"
            ) from None
        for place, (argument, value) in enumerate(zip(self._schema.arguments, values, strict=True)):
            if not _fits(argument.type, value):
                raise RuntimeError(
                    f"{self.qualname}() Expected a value of type '{argument.type}' for argument "
                    f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                    f"Position: {place}\nValue: {value}\nDeclaration: {self._schema}"
                )
        return values

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            return _offered(self, args, kwargs)
        return self.call(self._bound(args, kwargs))

    def _given(self, values):
        """Values as arguments and keyword arguments, without defaults at the end."""
        n = self._num_positional
        count = n
        arguments = self._schema.arguments
        while count > 0 and _is_default(arguments[count - 1], values[count - 1]):
            count -= 1
        named = {
            a.name: v
            for a, v in zip(arguments[n:], values[n:], strict=True)
            if not _is_default(a, v)
        }
        return tuple(values[:count]), named

    def call(self, values):
        """The op on the values of all arguments."""
        if _C._current_level() and self.vmap is not None:
            from rushlight._functorch import vmap as _vmap

            if _vmap.level_among(values):
                args, kwargs = values[: self._num_positional], self._given(values)[1]
                return _vmap.by_rule(self.vmap, args, self.qualname, kwargs)
        tensors = tensors_in(values)
        if self.autocast:
            values = self._cast(values, tensors)
        watcher = getattr(_watching, "function", None)
        if watcher is not None and (self.composite is None or self._kernel_alone(values)):
            return watcher(self, *self._given(values))
        if not Below.inside():
            if self.autograd is not None:
                args, kwargs = self._given(values)
                return self.autograd(*args, **kwargs)
            if self.composite is not None and self._kernel_alone(values) is None:
                args, kwargs = self._given(values)
                return self.composite(*args, **kwargs)
        if any(map(_C._forward_level_of, tensors)):
            raise NotImplementedError(
                f"Trying to use forward AD with {self.qualname} that does not support it: no rule "
                "for its tangents can be registered."
            )
        wanted = _C.is_grad_enabled() and any(t.requires_grad for t in tensors)
        with rushlight.no_grad():
            result = self.below(values)
        return self._without_formula(result, values) if wanted else result

    def _kernel_alone(self, values):
        devices = _devices(values)
        found = [self.kernels[d] for d in (*devices, None) if d in self.kernels]
        return found[0] if found else None

    def _cast(self, values, tensors):
        for device, dtype in self.autocast.items():
            if rushlight.is_autocast_enabled(device) and any(
                t.device.type == device for t in tensors
            ):
                return _pytree.tree_map_only(
                    _C.TensorBase,
                    lambda t, dtype=dtype: (
                        t.to(dtype) if t.is_floating_point() and t.dtype != rushlight.float64 else t
                    ),
                    values,
                )
        return values

    def below(self, values):
        """What the op does behind autograd: modes, tensor classes, then the device's function."""
        args, kwargs = self._given(values)
        modes = _C._torch_dispatch_modes()
        types = tuple(
            dict.fromkeys(
                type(t)
                for t in tensors_in(values)
                if hasattr(type(t), "__torch_dispatch__") and type(t) is not rushlight.Tensor
            )
        )
        types = tuple(t for t in types if _dispatches(t))
        if modes:
            mode = modes[-1]
            with _off(mode):
                rule = self._rule(type(mode))
                if rule is not None:
                    return rule(mode, self, types, args, kwargs)
                return mode.__torch_dispatch__(self, types, args, kwargs)
        for kind in types:
            rule = self._rule(kind)
            if rule is not None:
                return rule(kind, self, types, args, kwargs)
            result = kind.__torch_dispatch__(self, types, args, kwargs)
            if result is not NotImplemented:
                return result
        return self.run(values)

    def _rule(self, kind):
        return next((r for c, r in self.dispatch_rules.items() if issubclass(kind, c)), None)

    def run(self, values):
        """The function for the tensors' device."""
        kernel = self._kernel(values) or self.composite or self._fallback(values)
        if kernel is None:
            devices = ", ".join(_devices(values)) or "no tensor"
            raise NotImplementedError(
                f"Could not run '{self.qualname}': there is no implementation for {devices}"
            )
        args, kwargs = self._given(values)
        result = kernel(*args, **kwargs)
        for argument, value in zip(self._schema.arguments, values, strict=True):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for t in tensors_in(value):
                    _C._increment_version(t)
        return result

    def _fallback(self, values):
        device = next((d for d in _devices(values) if d != "cpu"), "cpu")
        private = device == _C._get_privateuse1_backend_name()
        key = "Meta" if device == "meta" else "PrivateUse1" if private else device.upper()
        found = _fallbacks.get(key)
        if isinstance(found, Fallback):
            return found.of(self)
        return None if found is None else _kernel_of(self, found)

    def _without_formula(self, result, values):
        """Results whose backward raises."""
        message = (
            f"{self.qualname}.default has no backward: no autograd formula was registered for "
            "it with register_autograd."
        )
        given = {id(t) for t in tensors_in(values)}

        def guard(t):
            if id(t) in given or not (t.is_floating_point() or t.is_complex()):
                return t
            return _C._with_backward_error(t.detach().requires_grad_(), message)

        return _pytree.tree_map_only(_C.TensorBase, guard, result)

    def __reduce__(self):
        return overload_of, (self.qualname,)


def _is_default(argument, value):
    if not argument.default or isinstance(value, _C.TensorBase):
        return False
    default = argument.default[0]
    return value is default or (type(value) is type(default) and value == default)


def _dispatches(kind):
    said = kind.__torch_dispatch__
    return said is not _C._disabled_torch_dispatch_impl


class _off:
    """Within it the innermost mode is off."""

    def __init__(self, mode):
        self._mode = mode

    def __enter__(self):
        _C._pop_torch_dispatch_mode(self._mode)

    def __exit__(self, *error):
        _C._push_torch_dispatch_mode(self._mode)


class CustomPacket(OpOverloadPacket):
    """All signatures of an op of one's own."""

    _made: dict[str, Any]  # of CustomOverload

    def __init__(self, space, name):
        super().__init__(space, name, [])

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            return _offered(self, args, kwargs)
        errors = []
        for overload in list(self._made.values()):
            try:
                values = overload._bound(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            return overload.call(values)
        raise RuntimeError("\n".join(errors))


def define(schema, tags=()) -> CustomOverload:
    """A new op, or one more overload of one that is there.

    Raises:
        RuntimeError: that overload is there already.
    """
    name = schemas.name_of(schema.name)
    packet = _packets.get((name.space, name.name))
    if packet is None:
        packet = _packets[name.space, name.name] = CustomPacket(name.space, name.name)
    key = schema.overload_name or "default"
    if key in packet._made:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name "
            "multiple times."
        )
    made = CustomOverload(packet, schema, tags)
    packet._rows[key] = (-1, schema.overload_name)
    packet._made[key] = made
    ops._add(name.space, name.name, packet)
    for register in _once_defined.pop((name.space, name.name, key), ()):
        register()
    return made


# By namespace, name and overload: what registers functions of an op that is not defined yet.
_once_defined: dict[tuple[str, str, str], list[Callable[[], None]]] = {}


def once_defined(qualname: str, register: Callable[[], None]) -> Callable[[], None]:
    """Calls `register` when an op has been defined; returns what takes that back."""
    name = schemas.name_of(qualname)
    waiting = _once_defined.setdefault((name.space, name.name, name.overload or "default"), [])
    waiting.append(register)
    return lambda: waiting.remove(register) if register in waiting else None


def forget(overload: CustomOverload) -> None:
    """Takes an overload away, and its op with the last one."""
    space, name = overload.namespace, overload._opname
    packet = overload._packet
    if packet._made.get(overload._overloadname) is not overload:
        return
    del packet._made[overload._overloadname], packet._rows[overload._overloadname]
    if not packet._made:
        del _packets[space, name]
        ops._remove(space, name)


def find(qualname: str) -> CustomOverload | None:
    """The overload of one's own of that name, or None."""
    _take_libraries()
    name = schemas.name_of(qualname)
    packet = _packets.get((name.space, name.name))
    return None if packet is None else packet._made.get(name.overload or "default")


_taken = 0  # of the records of C++ libraries
_waiting: list[tuple] = []  # functions of ops that are not defined yet


def _take_libraries() -> None:
    """Takes over what C++ libraries have defined and implemented since the last time."""
    global _taken
    fresh = range(_taken, _C._library_count())
    if not fresh:
        return
    _taken = fresh.stop
    records = [*_waiting, *((place, _C._library_record(place)) for place in fresh)]
    _waiting.clear()
    for _, (space, name, schema, *_key, module, tags) in records:
        if schema:
            op = define(schemas.parse(name + schema, space), from_bits(tags))
            op.python_module = module
    for place, (space, name, _, key, is_there, passed_over, _module, _tags) in records:
        if space == "_" and is_there:
            _fallbacks[key] = place
        if space == "_" or not (is_there or passed_over):
            continue
        packet = _packets.get((space, name.partition(".")[0]))
        op = packet and packet._made.get(name.partition(".")[2] or "default")
        if op is None:
            _waiting.append((place, (space, name, "", key, is_there, passed_over, "", 0)))
            continue
        kernel = fall_through(op) if passed_over else _kernel_of(op, place)
        if key == "CompositeImplicitAutograd":
            op.composite = kernel
        elif key.startswith("Autograd"):
            op.autograd, op.autograd_key = kernel, key
        else:
            op.kernels[None if key.startswith("Composite") else key.lower()] = kernel


def _call_from_library(qualname, values, below):
    """What C++ calls where a library has no function: a tuple of results, or NotImplemented."""
    op = find(qualname)
    if op is None or op._kernel(values) is None:
        return NotImplemented
    result = op.below(list(values)) if below else op.call(list(values))
    return result if len(op._schema.returns) > 1 else (result,) if op._schema.returns else ()


class Fallback:
    """A function of Python, `fn(op, *args)`, for ops that lack one for a dispatch key."""

    def __init__(self, fn, with_keyset):
        self._fn, self._with_keyset = fn, with_keyset

    def of(self, op):
        """As the function of an op."""

        def kernel(*args, **kwargs):
            if self._with_keyset:
                tensors = tensors_in((args, kwargs))
                found = keys.of(tensors[0]) if tensors else keys.DispatchKeySet()
                return self._fn(found - keys.AUTOGRAD, op, *args, **kwargs)
            return self._fn(op, *args, **kwargs)

        return kernel


# By dispatch key, for ops that lack a function for it: the record of a C++ library, or Python's.
_fallbacks: dict[str, int | Fallback] = {}


def _kernel_of(op, place):
    """A record's function, as one of an op."""

    def kernel(*args, **kwargs):
        return _C._library_run(place, op.qualname, tuple(OpOverload._values(op, args, kwargs)))

    return kernel


def fall_through(op):
    """A function that is passed over: the op behind autograd."""

    def kernel(*args, **kwargs):
        with Below():
            return op(*args, **kwargs)

    return kernel


def packets_of(space: str) -> dict[str, CustomPacket]:
    """The ops of a namespace by name."""
    _take_libraries()
    return {n: p for (s, n), p in _packets.items() if s == space}


_Custom.packets_of = _Namespace.packets_of = staticmethod(packets_of)


def overload_of(qualname: str) -> OpOverload:
    """The overload of that name, one's own or the table's.

    Raises:
        RuntimeError: there is none.
    """
    found = find(qualname)
    if found is not None:
        return found
    name = schemas.name_of(qualname)
    try:
        return getattr(getattr(getattr(ops, name.space), name.name), name.overload or "default")
    except AttributeError:
        raise RuntimeError(f"operator {qualname} does not exist") from None
