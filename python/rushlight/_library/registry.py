"""Ops of one's own as overloads under `ops.NAMESPACE.NAME`.

C++ keeps their schemas and the functions that are registered for dispatch keys, and calls them
(src/library/dispatch.cpp): `vmap`, autocast, autograd, modes and tensor classes, then the function
for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, _ops
from rushlight._library import schema as schemas
from rushlight._library.below import Below
from rushlight._library.tags import listed
from rushlight._ops import OpOverload, OpOverloadPacket, _offered, ops
from rushlight.utils import _pytree

# The dispatch key of each device; others are somebody's own.
_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", None: "CompositeExplicitAutograd"}


def key_of(device: str | None) -> str:
    """The dispatch key of functions for a device type; of None, that of functions for all."""
    private = device == _C._get_privateuse1_backend_name()
    return _KEYS.get(device) or ("PrivateUse1" if private else str(device).upper())


def tensors_in(values) -> list:
    """All tensors among values, those in lists too."""
    return [t for t in _pytree.tree_iter(values) if isinstance(t, _C.TensorBase)]


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

    def __init__(self, packet: CustomPacket, index: int, overload: str) -> None:
        self._index = index
        self._tags: list | None = None
        self._describe(packet, schemas.parse(_C._op_schema(index)[0]))
        self.qualname = str(schemas.Name(self.namespace, self._opname, overload))
        self.dispatch_rules: dict[type, Any] = {}  # by class of modes or tensors
        self.disabled: set[str] = set()

    # ---- functions by dispatch key ----

    def implement(self, key: str, function: Callable[..., Any], with_keyset: bool = False) -> int:
        """Registers a function; None falls through. A number for `_C._library_take_back`."""
        return _C._library_implement(self.qualname, key, function, with_keyset, False)

    def function(self, key: str):
        """The function that is registered for a key, or None."""
        found = _C._library_function(self._index, key)
        if found is not True:
            return found or None

        def of_library(*args, **kwargs):
            return _C._library_run(self._index, key, tuple(self._values(args, kwargs)))

        return of_library

    def has_kernel(self, key: str) -> bool:
        """Whether a function is registered for a dispatch key."""
        return _C._library_function(self._index, key) is not None

    @property
    def fake(self):
        """What makes results of the right sizes: the function for the meta device."""
        return self.function("Meta")

    @property
    def composite(self):
        """The function that is made of other ops, which record themselves."""
        return self.function("CompositeImplicitAutograd")

    def dispatch_rule(self, kind):
        """What is registered for a class of modes or tensors, or None."""
        return next((r for c, r in self.dispatch_rules.items() if issubclass(kind, c)), None)

    # ---- calls ----

    def bind(self, args, kwargs):
        """The values of all arguments: a list, in the order of the schema.

        Raises:
            RuntimeError: the schema does not take them.
        """
        try:
            values = self._values(args, kwargs)
        except RuntimeError as error:
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
        return self.call(self.bind(args, kwargs))

    def call(self, values):
        """The op on the values of all arguments."""
        return _C._call_op(self._index, tuple(values))

    def is_composed(self, values) -> bool:
        """Whether a call with these values runs the function that is made of other ops."""
        devices = {t.device.type for t in tensors_in(values)}
        alone = not any(self.has_kernel(key_of(device)) for device in (*devices, None))
        return alone and self.has_kernel("CompositeImplicitAutograd")

    def below(self, values):
        """The same behind autograd."""
        with Below():
            return self.call(values)

    def count_of_given(self, values) -> int:
        """How many values stand before those that have their defaults at the end."""
        arguments = self._schema.arguments
        count = self._num_positional
        while count > 0 and _is_default(arguments[count - 1], values[count - 1]):
            count -= 1
        return count

    def __reduce__(self):
        return overload_of, (self.qualname,)


def _is_default(argument, value):
    if not argument.default or isinstance(value, _C.TensorBase):
        return False
    default = argument.default[0]
    return value is default or (type(value) is type(default) and value == default)


class CustomPacket(OpOverloadPacket):
    """All signatures of an op of one's own."""

    def __call__(self, /, *args, **kwargs):
        if _C._has_torch_function(*args, *kwargs.values()):
            return _offered(self, args, kwargs)
        errors = []
        for name in self.overloads():
            overload: Any = getattr(self, name)
            try:
                values = overload.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            return overload.call(values)
        raise RuntimeError("\n".join(errors))


_ops.of_libraries = _ops.Classes(CustomOverload, CustomPacket)


def define(schema, tags=(), python_module: str = "") -> CustomOverload:
    """A new op, or one more overload of one that is there.

    Raises:
        RuntimeError: that overload is there already.
    """
    space = schema.name.partition("::")[0]
    bits = sum(1 << tag.value for tag in listed(tags))
    _C._library_define(space, schema.text, bits, python_module)
    return overload_of(f"{schema.name}.{schema.overload_name or 'default'}")


def forget(overload: CustomOverload) -> None:
    """Takes an overload away, and its op with the last one."""
    _C._library_undefine(overload._index)
    if not _C._op_overloads(overload._schema.name):
        ops._remove(overload.namespace, overload._opname)


def find(qualname: str) -> CustomOverload | None:
    """The overload of one's own of that name, or None."""
    try:
        found = overload_of(qualname)
    except RuntimeError:
        return None
    return found if isinstance(found, CustomOverload) else None


def overload_of(qualname: str) -> Any:
    """The overload of that name, one's own or the table's.

    Raises:
        RuntimeError: there is none.
    """
    name = schemas.name_of(qualname)
    try:
        return getattr(getattr(getattr(ops, name.space), name.name), name.overload or "default")
    except AttributeError:
        raise RuntimeError(f"operator {qualname} does not exist") from None


def autocast_function(op: CustomOverload, device: str, dtype) -> Callable[..., Any]:
    """The function for autocast on a device: the op on floating-point tensors of a dtype."""

    def cast(t):
        same = not t.is_floating_point() or t.dtype == rushlight.float64 or t.device.type != device
        return t if same else t.to(dtype)

    def function(*args, **kwargs):
        args, kwargs = _pytree.tree_map_only(_C.TensorBase, cast, (args, kwargs))
        with rushlight.autocast(device, enabled=False):
            return op(*args, **kwargs)

    return function


def vmap_function(op: CustomOverload, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The function for batched tensors, by a rule `f(info, in_dims, *args)`."""

    def function(*args, **kwargs):
        from rushlight._transforms import vmap

        return vmap.by_rule(rule, args, op.qualname, kwargs)

    return function
