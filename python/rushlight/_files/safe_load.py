"""Pickles read as data: which globals a file may name, and which calls are carried out.

The pickle is parsed in C++ (`_C._unpickle`), which runs nothing; `SafeObjects` decides on every
name and call in it. To let one more type through, add a row to `_NAMES`, and to `_CALLS` if it is
called.
"""

from __future__ import annotations

import enum
import importlib
import pickle
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight import _C, Tensor, _tensor, _utils, storage
from rushlight._parameter import Parameter
from rushlight.torch_version import TorchVersion

if TYPE_CHECKING:
    from rushlight import Size

_safe_globals: dict[str, Any] = {}


def _global_name(item):
    if isinstance(item, tuple):
        return item
    if not hasattr(item, "__qualname__"):
        raise TypeError(f"safe globals are functions and classes, not {item!r}")
    return item, _torch_name(f"{item.__module__}.{item.__qualname__}")


def _torch_name(name: str) -> str:
    """The name that a global of this package has in files."""
    if name == "rushlight" or name.startswith("rushlight."):
        return "torch" + name[len("rushlight") :]
    return name


def add_safe_globals(safe_globals: Any) -> None:
    """Functions and classes that `load` may call when a file asks for it, from now on.

    Each is the function or class, or a pair of it and its full name in files.

    Args:
        safe_globals: the functions and classes, or pairs of one and its name in files.

    Example:
        >>> import datetime
        >>> torch.serialization.add_safe_globals([datetime.date])
        >>> torch.serialization.get_safe_globals()
        [<class 'datetime.date'>]
        >>> torch.serialization.clear_safe_globals()
    """
    _safe_globals.update({name: item for item, name in map(_global_name, safe_globals)})


def get_safe_globals():
    """What `add_safe_globals` has added.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(_safe_globals.values())


def clear_safe_globals() -> None:
    """Forgets what `add_safe_globals` has added.

    Example:
        >>> torch.serialization.clear_safe_globals()
    """
    _safe_globals.clear()


class safe_globals:
    """`add_safe_globals` for the duration of a `with` block.

    Args:
        safe_globals: functions and classes.

    Example:
        >>> import datetime
        >>> with torch.serialization.safe_globals([datetime.date]):
        ...     print(torch.serialization.get_safe_globals())
        [<class 'datetime.date'>]
    """

    def __init__(self, safe_globals: Any) -> None:
        self._added = safe_globals

    def __enter__(self) -> safe_globals:
        self._before = dict(_safe_globals)
        add_safe_globals(self._added)
        return self

    def __exit__(self, *exception):
        _safe_globals.clear()
        _safe_globals.update(self._before)


def get_layout(name):
    layout = getattr(_C, _text(name).removeprefix("torch."), None)
    if not isinstance(layout, _C.layout):
        raise RuntimeError(f"layout {name[:100]} is not supported")
    return layout


def _text(value):
    """A str. Nothing else of a file is shown: what is shared in it may have an endless text."""
    if not isinstance(value, str):
        raise TypeError(f"expected a str, but got {type(value).__name__}")
    return value


def _make_bytes(text: str, encoding: str) -> bytes:
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(
            f"_codecs.encode with the encoding {encoding[:100]!r} is not allowed"
        )
    return text.encode("latin1")


def _make_version(text):
    return TorchVersion(_text(text))


def _make_bytearray(data=b"", encoding="latin1"):
    return bytearray(
        _make_bytes(data, encoding) if isinstance(data, str) else bytes(memoryview(data))
    )


def _make_complex(real, imag):
    return complex(float(real), float(imag))


def _make_set(items=()):
    return set(items)


def _make_size(items: tuple[int, ...] = ()) -> Size:
    return _C.Size(tuple(items))


def member(kind, name, allowed):
    """A member of one of the Enums `allowed`; Python 3.11.2 pickles it as `getattr(kind, name)`."""
    listed = isinstance(kind, enum.EnumMeta) and any(kind is a for a in allowed)
    if not listed or name not in kind.__members__:
        raise pickle.UnpicklingError(
            "getattr is carried out for members of Enums that are allowed alone, not for "
            f"{_text(name)[:100]!r} of {getattr(kind, '__name__', type(kind).__name__)}"
        )
    return kind.__members__[name]


def _get_member(kind, name):
    return member(kind, name, _safe_globals.values())


def _join_members(member, other):
    """What such a Python writes of a Flag of several bits."""
    kind = type(member)
    allowed = isinstance(member, enum.Flag) and any(kind is a for a in _safe_globals.values())
    if not allowed or type(other) not in (kind, int):
        raise pickle.UnpicklingError(
            f"or_ is carried out for Flags that are allowed alone, not for a {kind.__name__}"
        )
    return member | other


# What these stand for once an Enum is allowed; by the latter protocol 2 calls or_.
_OF_ENUMS = {
    "builtins.getattr": _get_member,
    "_operator.or_": _join_members,
    "operator.or_": _join_members,
}


def _of_enums(full: str) -> Callable[..., Any] | None:
    """What carries a name out for members of Enums; None while none is allowed."""
    kinds = (item for item in _safe_globals.values() if isinstance(item, enum.EnumMeta))
    return _OF_ENUMS[full] if full in _OF_ENUMS and any(kinds) else None


# What a global name stands for.
_NAMES = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.complex": complex,
    "builtins.bytearray": bytearray,
    "_codecs.encode": _make_bytes,
    "torch.Size": _C.Size,
    "torch.torch_version.TorchVersion": TorchVersion,
    "torch.device": _C.device,
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": storage.UntypedStorage,
    "torch.UntypedStorage": storage.UntypedStorage,
    "torch.serialization._get_layout": get_layout,
    "torch.strided": _C.strided,
    "torch._utils._rebuild_tensor": _utils._rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _utils._rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _utils._rebuild_tensor_v3,
    "torch._utils._rebuild_qtensor": _utils._rebuild_qtensor,
    "torch._utils._rebuild_sparse_tensor": _utils._rebuild_sparse_tensor,
    "torch._utils._rebuild_nested_tensor": _utils._rebuild_nested_tensor,
    "torch._utils._rebuild_parameter": _utils._rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _utils._rebuild_parameter_with_state,
    "torch._utils._rebuild_wrapper_subclass": _utils._rebuild_wrapper_subclass,
    "torch._utils._rebuild_meta_tensor_no_storage": _utils._rebuild_meta_tensor_no_storage,
    "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
    **{f"torch.{name}": kind for name, kind in storage.NAMES.items()},
    **{str(dtype): dtype for dtype in _C._dtypes},
}
# What is called for one of them that may be called at all, by identity: not all have hashes.
_CALLS = {
    id(function): make
    for function, make in (
        (OrderedDict, OrderedDict),
        (Counter, Counter),
        (set, _make_set),
        (complex, _make_complex),
        (bytearray, _make_bytearray),
        (_make_bytes, _make_bytes),
        (_get_member, _get_member),
        (_join_members, _join_members),
        (_C.Size, _make_size),
        (_C.device, _C.device),
        (TorchVersion, _make_version),
        (get_layout, get_layout),
        *((f, f) for name, f in _NAMES.items() if name.startswith("torch._utils.")),
    )
}


# What jagged nested tensors are made by, of a module that is loaded when a file has one.
_NESTED = {
    "torch.nested._internal.nested_tensor.NestedTensor",
    "torch.nested._internal.nested_tensor._rebuild_njt",
    "torch._dynamo.decorators._DimRange",
}


# How numbers become codes, of a module that is loaded when a file says it.
_SCHEMES = {
    f"torch.per_{what}"
    for what in (
        "tensor_affine",
        "tensor_symmetric",
        "channel_affine",
        "channel_symmetric",
        "channel_affine_float_qparams",
    )
}


def _is_nested(item, name):
    module = sys.modules.get("rushlight.nested._internal.nested_tensor")
    return module is not None and item is getattr(module, name)


# What distributed tensors and weights of codes are made by, of pieces and plain data: functions of
# modules that are loaded when a file has one.
_REBUILT = {
    "torch.distributed.tensor._dtensor._rebuilt": "rushlight.distributed.tensor._dtensor",
    "torch.ao._integer_weights.rebuilt": "rushlight.ao._integer_weights",
}


def _names_attributes(state: object) -> bool:
    return isinstance(state, dict) and all(isinstance(key, str) for key in state)


def _rebuilds(item):
    modules = {name.rpartition(".")[2]: sys.modules.get(at) for name, at in _REBUILT.items()}
    return any(item is getattr(module, name, None) for name, module in modules.items() if module)


class SafeObjects:
    """Decides what the globals of a pickle are, and carries out the calls that are harmless.

    Args:
        load_storage: makes a persistent id into a storage.
        encoding: of strings that Python 2 wrote.
    """

    def __init__(self, load_storage: Callable[..., Any], encoding: str) -> None:
        self.load_storage = load_storage
        self.encoding = encoding

    def find(self, module, name):
        if module == "__builtin__":  # as protocol 2 calls it
            module = "builtins"
        full = _torch_name(f"{module}.{name}")
        if full in _safe_globals:
            return _safe_globals[full]
        if full in _NAMES:
            return _NAMES[full]
        if (found := _of_enums(full)) is not None:
            return found
        if full in _NESTED:
            from rushlight.nested._internal import nested_tensor

            return getattr(nested_tensor, name)
        if full in _SCHEMES:
            from rushlight import _quantized

            return getattr(_quantized, name)
        if full in _REBUILT:
            return getattr(importlib.import_module(_REBUILT[full]), name)
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. If you trust "
            f"it, allow it by `torch.serialization.add_safe_globals([{full}])` or by the context "
            f"manager `torch.serialization.safe_globals([{full}])`."
        )

    def call(self, function, arguments, new):
        for item in _safe_globals.values():
            if item is function:
                return function.__new__(function, *arguments) if new else function(*arguments)
        if function is _tensor._rebuild_from_type_v2:
            return self._rebuild_from_type(*arguments)
        known = _CALLS.get(id(function))
        if known is None and (
            _is_nested(function, "_rebuild_njt") or _is_nested(function, "_DimRange")
        ):
            known = function
        if known is None and _rebuilds(function):
            known = function
        if known is None:
            name = getattr(function, "__name__", type(function).__name__)
            raise pickle.UnpicklingError(
                f"Trying to call {name}, which is not allowed in a file of plain data"
            )
        return known(*arguments)

    def _rebuild_from_type(self, function, kind, arguments, state):
        if (
            kind not in (Tensor, Parameter)
            and not _is_nested(kind, "NestedTensor")
            and not any(kind is item for item in _safe_globals.values())
        ):
            name = getattr(kind, "__name__", type(kind).__name__)
            raise pickle.UnpicklingError(f"tensors of the type {name} are not allowed by default")
        result = self.call(function, arguments, False)
        return _tensor._rebuild_from_type_v2(lambda: result, kind, (), state)

    def persistent(self, pid):
        return self.load_storage(pid)

    def build(self, obj, state):
        if any(type(obj) is item for item in _safe_globals.values()):
            if hasattr(obj, "__setstate__"):
                obj.__setstate__(state)
                return
        elif _is_nested(type(obj), "_DimRange"):
            return
        elif type(obj) not in (OrderedDict, Counter):
            raise pickle.UnpicklingError(
                "Can only build OrderedDict, Counter or types allowed by `add_safe_globals`, "
                f"but got {type(obj).__name__}"
            )
        # As pickle has it: attributes, or a pair of them and of what lies in slots.
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        for part in parts:
            if part is not None and not _names_attributes(part):
                raise pickle.UnpicklingError(
                    f"the state of a {type(obj).__name__} is no dict of attributes"
                )
        attributes, slots = parts
        if attributes:
            obj.__dict__.update(attributes)
        for name, value in (slots or {}).items():
            setattr(obj, name, value)

    def old_string(self, data):
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    def read(self, data):
        """The object that a pickle stands for, and how many bytes of `data` the pickle has."""
        try:
            return _C._unpickle(
                data, self.find, self.call, self.persistent, self.build, self.old_string
            )
        except (
            pickle.UnpicklingError,
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
            OverflowError,
        ) as error:
            raise pickle.UnpicklingError(_refusal(error)) from error
        except RecursionError as error:  # of what looked at them
            reason = _refusal("its objects are nested too deep")
            raise pickle.UnpicklingError(reason) from error


def _refusal(error):
    return (
        "Weights only load failed. The file holds more than plain data, or is damaged. For a file "
        "from a source that you trust, there are two ways to load it nevertheless:\n"
        "\t(1) `torch.load` with `weights_only=False` runs what the file says, whatever that is.\n"
        "\t(2) `torch.serialization.add_safe_globals` allows single functions and classes.\n"
        f"\tWeightsUnpickler error: {error}"
    )


def is_safe_global(name: str) -> bool:
    """Whether a file of data may mention what has this full name."""
    name = _torch_name(name.replace("__builtin__.", "builtins.", 1))
    known = name in _safe_globals or name in _NAMES or name in _SCHEMES
    return known or _of_enums(name) is not None


def find_public(module, name):
    """What PyTorch's name stands for here, or None: for unpicklers that run what a file says."""
    return _NAMES.get(f"{module}.{name}")


def globals_named(data: bytes) -> list[str]:
    """The full names of all functions and classes that a pickle mentions, in its order."""
    import pickletools

    named, strings = {}, []
    for operation, argument, _ in pickletools.genops(data):
        if operation.name == "GLOBAL":
            named[str(argument).replace(" ", ".", 1)] = None
        elif operation.name == "STACK_GLOBAL" and len(strings) >= 2:
            named[".".join(strings[-2:])] = None
        elif isinstance(argument, str):
            strings.append(argument)
    return list(named)
