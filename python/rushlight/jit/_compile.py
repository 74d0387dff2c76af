"""`jit.script`: source of Python functions, classes and modules as programs that run in C++.

The compiler (src/script) reads the text, and asks the scopes below what free names mean. An answer
is a pair: a word, such as "op", and what it is about, such as "aten::relu".
"""

from __future__ import annotations

import builtins
import enum
import inspect
import math
import types
import typing
import weakref
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.jit import _prelude
from rushlight.jit._program import ProgramModule, RecursiveScriptClass


class FrontendError(RuntimeError):
    """Source that cannot be compiled."""


# ---- names of what has been compiled ----

_taken: set[str] = set()
_compiled: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_running: set[Any] = set()  # functions that are being compiled


def _qualified(obj) -> str:
    """The name of a function or class in programs; one that is taken gets a package of its own."""
    module = "" if obj.__module__ == "__main__" else f".{obj.__module__}"
    name, package = obj.__name__, f"__torch__{module}"
    full, number = f"{package}.{name}", 0
    while full in _taken:
        full = f"{package}.___torch_mangle_{number}.{name}"
        number += 1
    _taken.add(full)
    return full


def _source_of(obj) -> tuple[str, str, int]:
    """The text of a function or class, without the indentation of its first line."""
    if getattr(obj, "__name__", "") == "<lambda>":
        raise FrontendError("a lambda cannot be compiled: name a function")
    try:
        lines, first = inspect.getsourcelines(obj)
        file = inspect.getsourcefile(obj) or ""
    except (OSError, TypeError) as error:
        raise FrontendError(f"the source of {obj} cannot be found: {error}") from None
    indent = len(lines[0]) - len(lines[0].lstrip())
    cut = [line[indent:] if not line[:indent].strip() else line for line in lines]
    return "".join(cut), file, first


# ---- types ----

_SIMPLE = {
    Tensor: "Tensor",
    nn.Parameter: "Tensor",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    type(None): "NoneType",
    None: "NoneType",
    Any: "Any",
    rushlight.device: "Device",
    rushlight.dtype: "int",
    rushlight.layout: "int",
    rushlight.memory_format: "int",
    rushlight.Generator: "Generator",
    rushlight.Size: "List[int]",
}


def type_text(kind) -> str | None:
    """A type of Python in the words of programs; None where they have no such type."""
    try:
        if kind in _SIMPLE:
            return _SIMPLE[kind]
    except TypeError:
        return None
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        answer = _describe_class(kind) if isinstance(kind, type) else None
        return answer[1] if answer is not None and answer[0] == "class" else None
    parts = [type_text(one) for one in inner]
    if any(part is None for part in parts):
        return None
    if origin in (typing.Union, types.UnionType):
        rest = [part for part in parts if part != "NoneType"]
        if len(rest) == 1 and len(parts) == 2:
            return f"Optional[{rest[0]}]"
        return f"Union[{', '.join(map(str, parts))}]"
    names = {list: "List", dict: "Dict", tuple: "Tuple"}
    if origin in names:
        return f"{names[origin]}[{', '.join(map(str, parts)) or '()'}]"
    if origin is typing.Final:
        return parts[0]
    if getattr(origin, "__name__", "") == "Future":
        return f"Future[{parts[0]}]"
    return None


def type_of_value(value) -> str | None:
    """What a program would say a value is; None where programs have no such values."""
    if isinstance(value, bool | int | float | str | complex) or value is None:
        return _SIMPLE.get(type(value))
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, rushlight.Size):
        return f"Tuple[{', '.join(['int'] * len(value))}]" if value else "Tuple[()]"
    if isinstance(value, rushlight.dtype | rushlight.layout | rushlight.memory_format):
        return "int"
    if isinstance(value, rushlight.device):
        return "Device"
    if isinstance(value, enum.Enum):
        return compile_enum(type(value))
    if isinstance(value, RecursiveScriptClass):
        return value._c.name
    if isinstance(value, tuple):
        parts = [type_of_value(item) for item in value]
        if any(part is None for part in parts):
            return None
        if hasattr(value, "_fields"):
            return compile_named_tuple(type(value))
        return f"Tuple[{', '.join(map(str, parts)) or '()'}]"
    if isinstance(value, list) and value:
        parts = {type_of_value(item) for item in value}
        return f"List[{parts.pop()}]" if len(parts) == 1 and None not in parts else None
    if isinstance(value, dict) and value:
        keys, items = ({type_of_value(x) for x in group} for group in (value, value.values()))
        if len(keys) == len(items) == 1 and None not in keys | items:
            return f"Dict[{keys.pop()}, {items.pop()}]"
    return None


# ---- what names mean ----


class _Space:
    """A module of Python, whose names a program uses behind a dot."""

    def __init__(self, module) -> None:
        self._module = module

    def find(self, name):
        try:
            value = getattr(self._module, name)
        except AttributeError:
            return None
        return describe(value, name)

    def __str__(self):
        return f"the module '{self._module.__name__}'"


_JIT_FORMS = ("annotate", "isinstance", "fork", "wait", "is_scripting", "is_tracing")


def _op_of(function, name) -> tuple[str, str] | None:
    """The op that a function of rushlight or of `math` is."""
    module = getattr(function, "__module__", None) or ""
    if function is getattr(math, name, None):
        return ("op", f"aten::{name}") if _C._script_has_op(f"aten::{name}") else None
    own = module == "rushlight" or module.startswith("rushlight.")
    if not own:
        return None
    if getattr(nn.functional, name, None) is function and hasattr(_prelude, name):
        return "function", compile_function(getattr(_prelude, name), _PreludeScope)
    last = module.rpartition(".")[2]
    for candidate in (f"aten::{last}_{name}", f"aten::{name}"):
        if _C._script_has_op(candidate):
            return "op", candidate
    return None


def _describe_function(function, name):
    jit = rushlight.jit
    for form in _JIT_FORMS:
        if function is getattr(jit, form, None):
            return "special", form
    if function is getattr(jit, "_fork", None):
        return "special", "fork"
    if isinstance(function, ScriptFunction):
        return "function", function._name
    if getattr(builtins, name, None) is function:
        return None
    modifier = getattr(function, "_torchscript_modifier", None)
    if modifier == "ignore":
        raise FrontendError(f"'{name}' is marked with jit.ignore: compiled code cannot call Python")
    op = _op_of(function, name)
    if op is not None:
        return op
    if isinstance(function, types.FunctionType):
        if (function.__module__ or "").startswith("rushlight"):
            raise FrontendError(f"the function {function.__module__}.{name} cannot be compiled")
        return "function", compile_function(function)
    return None


def _describe_class(kind):
    if kind is rushlight.device:
        return "op", "aten::device"
    if kind in _SIMPLE:
        return ("type", _SIMPLE[kind]) if kind.__module__ != "builtins" else None
    if kind.__module__ == "builtins" and not issubclass(kind, BaseException):
        return None
    if issubclass(kind, BaseException):
        return "special", f"exception {kind.__module__}.{kind.__qualname__}"
    if kind is rushlight.no_grad:
        return "class", compile_class(_prelude.no_grad, _PreludeScope)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return "class", compile_named_tuple(kind)
    if issubclass(kind, enum.Enum):
        return "class", compile_enum(kind)
    if issubclass(kind, nn.Module):
        raise FrontendError(f"modules cannot be made by compiled code: {kind.__name__}")
    return "class", compile_class(kind)


def describe(value, name):
    """The answer to the compiler of what a value of Python means; None: nothing that it knows."""
    if isinstance(value, bool | int | float | complex | str) or value is None:
        return "constant", value
    if isinstance(value, enum.Enum):
        return "enum", (compile_enum(type(value)), value.name)
    if isinstance(value, rushlight.dtype | rushlight.layout | rushlight.memory_format):
        return "constant", _number_of(value)
    if isinstance(value, rushlight.device | tuple):
        return ("constant", value) if type_of_value(value) is not None else None
    if isinstance(value, types.ModuleType):
        return "space", _Space(value)
    if isinstance(value, type):
        return _describe_class(value)
    text = type_text(value) if typing.get_origin(value) is not None else None
    if text is not None:
        return "type", text
    if isinstance(value, Tensor):
        raise FrontendError(f"'{name}' is a tensor outside of the program: pass it as an argument")
    return _describe_function(value, name) if callable(value) else None


def _number_of(value):
    kinds = {rushlight.memory_format: "memory_format", rushlight.layout: "layout"}
    return _C._script_number(value, kinds.get(type(value), "dtype"))


class _Scope:
    """The names around a function, and the classes that its methods are of."""

    def __init__(self, function) -> None:
        cells = function.__closure__ or ()
        self._closure = dict(zip(function.__code__.co_freevars, cells, strict=True))
        self._globals = function.__globals__
        signature = inspect.signature(function)
        self._defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }

    def find(self, name):
        """What a free name means."""
        if name in self._closure:
            return describe(self._closure[name].cell_contents, name)
        if name in self._globals:
            return describe(self._globals[name], name)
        value = getattr(builtins, name, None)
        return describe(value, name) if isinstance(value, type) else None

    def member(self, class_name, name):
        """What an object has beside attributes and compiled methods."""
        owner = _owners.get(class_name)
        return owner.member(name) if owner is not None else None

    def submodules(self, class_name):
        """The names in a list or dict of modules, in order."""
        owner = _owners.get(class_name)
        return owner.submodules() if owner is not None else None

    def fallback(self, parameter):
        """The default of a parameter, as a tuple of one."""
        if parameter not in self._defaults:
            return None
        value = self._defaults[parameter]
        if isinstance(value, rushlight.dtype | rushlight.layout | rushlight.memory_format):
            value = _number_of(value)
        return (value,)


class _PreludeScope(_Scope):
    """The names of functions of the prelude, which calls ops as `torch`."""

    def find(self, name):
        if name == "torch":
            return "space", _Space(rushlight)
        value = getattr(_prelude, name, None)
        if isinstance(value, types.FunctionType):
            return "function", compile_function(value, _PreludeScope)
        return super().find(name)


# ---- functions ----


def compile_function(function, scope=_Scope) -> str:
    """Compile a function of Python once; its name in programs."""
    known = _compiled.get(function)
    if known is not None:
        return known
    if function in _running:
        raise FrontendError(
            f"the function '{function.__name__}' calls itself, which programs cannot"
        )
    _running.add(function)
    try:
        name = _qualified(function)
        source, file, line = _source_of(function)
        _C._script_compile(name, source, file, line, scope(function), None)
    finally:
        _running.discard(function)
    _compiled[function] = name
    return name


class ScriptFunction:
    """A compiled function. It runs in C++, without the interpreter lock."""

    def __init__(self, name: str, original: Any = None) -> None:
        self._name = name
        self.__doc__ = getattr(original, "__doc__", None)
        self.__wrapped__ = original

    def __call__(self, *args, **kwargs):
        return _C._script_call(self._name, args, kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._name.rpartition(".")[2]

    @property
    def qualified_name(self) -> str:
        """The function's name in programs."""
        return self._name

    @property
    def graph(self):
        """The graph, as text."""
        return _C._script_graph(self._name)

    @property
    def code(self) -> str:
        """The program's text."""
        return _C._script_code(self._name)

    @property
    def schema(self):
        """What the function takes and returns, as text."""
        return _C._script_schema(self._name)

    def save(self, f, _extra_files=None):
        """Write the function as an archive of a module whose forward it is."""
        from rushlight.jit._program import save

        save(self._as_module(), f, _extra_files)

    def _as_module(self):
        return ProgramModule._around(_C._script_module_of(self._name), {})

    def __repr__(self):
        return f"<ScriptFunction {self.schema}>"


# ---- classes, named tuples, enums ----

_owners: dict[str, Any] = {}  # who answers for classes, by their names


class _ClassOwner:
    """Compiles the methods of a class of Python when they are first asked for."""

    def __init__(self, kind, name, scope) -> None:
        self.kind, self.name, self._scope = kind, name, scope

    def submodules(self):
        return None

    def member(self, name):
        function = inspect.getattr_static(self.kind, name, None)
        if isinstance(function, types.FunctionType):
            _compile_method(self.name, function, self._scope)
            return "method", name
        return None


def _compile_method(owner: str, function, scope=_Scope, unused=False) -> None:
    key = (owner, function.__name__)
    if key in _running:
        raise FrontendError(f"the method '{function.__name__}' calls itself, which programs cannot")
    _running.add(key)
    try:
        source, file, line = _source_of(function)
        name = f"{owner}.{function.__name__}"
        _C._script_compile(name, source, file, line, scope(function), owner, unused)
    finally:
        _running.discard(key)


def compile_class(kind, scope=_Scope) -> str:
    """Compile a class of Python once, with all its methods; its name in programs."""
    known = _compiled.get(kind)
    if known is not None:
        return known
    if kind.__bases__ != (object,):
        raise FrontendError(f"the class '{kind.__name__}' inherits, which compiled classes cannot")
    name = _compiled[kind] = _qualified(kind)
    _C._script_class(name, "class")
    owner = _owners[name] = _ClassOwner(kind, name, scope)
    methods = [m for m, f in vars(kind).items() if isinstance(f, types.FunctionType)]
    for method in sorted(methods, key=lambda m: m != "__init__"):
        if not _C._script_has_method(name, method):
            owner.member(method)
    return name


def compile_named_tuple(kind) -> str:
    """A named tuple as a class of programs; its name."""
    known = _compiled.get(kind)
    if known is not None:
        return known
    hints = typing.get_type_hints(kind)
    name = _qualified(kind)
    _C._script_class(name, "tuple")
    defaults = kind._field_defaults
    for field in kind._fields:
        text = type_text(hints.get(field, Tensor))
        if text is None:
            raise FrontendError(f"the field '{field}' of {kind.__name__} is of no known type")
        default = (defaults[field],) if field in defaults else None
        _C._script_attribute(name, field, text, "attribute", default)
    _compiled[kind] = name
    return name


def compile_enum(kind) -> str:
    """An enum as a class of programs; its name."""
    known = _compiled.get(kind)
    if known is not None:
        return known
    if len({type_of_value(member.value) for member in kind}) != 1:
        raise FrontendError(f"the values of the enum '{kind.__name__}' are not all of one type")
    name = _compiled[kind] = _qualified(kind)
    _C._script_class(name, "enum")
    for member in kind:
        _C._script_constant(name, member.name, member.value)
    return name


def script(obj):
    """Compile a function, a class or a module."""
    if isinstance(obj, ScriptFunction | ProgramModule):
        return obj
    if isinstance(obj, nn.Module):
        from rushlight.jit._compile_module import script_module

        return script_module(obj, {})
    if isinstance(obj, type):
        if issubclass(obj, nn.Module):
            raise RuntimeError(f"type '{obj}' cannot be compiled: give an instance of the module")
        _describe_class(obj)
        return obj
    if not isinstance(obj, types.FunctionType):
        if isinstance(obj, types.MethodType):
            raise RuntimeError("a method cannot be compiled alone: give its module")
        answer = _describe_function(obj, getattr(obj, "__name__", ""))
        if answer is None or answer[0] != "function":
            raise RuntimeError(f"this cannot be compiled: {obj!r}")
        return ScriptFunction(answer[1], obj)
    return ScriptFunction(compile_function(obj), obj)
