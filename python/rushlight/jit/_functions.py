"""Functions of Python as functions of programs."""

from __future__ import annotations

import builtins
import math
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, jit, nn
from rushlight.jit import _library, _meanings, _source
from rushlight.jit._meanings import Answer, Scope, compiled, meaning_of, new_name, running, unit
from rushlight.jit._program import UnitFunction

# Functions that are forms of the language.
_FORMS: dict[Any, str] = {
    jit.annotate: "annotate",
    jit.isinstance: "isinstance",
    jit.fork: "fork",
    jit.wait: "wait",
    jit.is_scripting: "is_scripting",
    jit.is_tracing: "is_tracing",
    getattr: "getattr",
    hasattr: "hasattr",
    isinstance: "isinstance",
}
_OPS: dict[Any, str] = {
    warnings.warn: "aten::warn",
    rushlight.is_grad_enabled: "aten::is_grad_enabled",
    jit._unwrap_optional: "aten::_unwrap_optional",
}
_kept: list[Any] = []  # units whose functions are called by what is compiled here


# ---- functions of this library ----


class LibraryScope(Scope):
    """The names of programs of this library: ops are `torch.…`, the rest are such programs."""

    def find(self, name: str) -> Answer:
        """What a free name means."""
        if name in ("torch", "ops"):
            return "ops", name
        if name == "PackedSequence":
            return _meanings.describe_class(nn.utils.rnn.PackedSequence)
        value = self._globals.get(name, getattr(_library, name, None))
        if isinstance(value, types.FunctionType):
            return "function", compile_function(value, LibraryScope)
        if isinstance(value, type):  # a context manager
            return _meanings.describe_class(getattr(rushlight, name))
        return super().find(name)


def _spaces() -> list[tuple[Any, str]]:
    return [
        (rushlight, ""),
        (nn.functional, ""),
        (rushlight.special, "special_"),
        (rushlight.linalg, "linalg_"),
        (rushlight.fft, "fft_"),
        (math, ""),
        (rushlight._C._nn, ""),
    ]


def library_function(name: str) -> Answer:
    """The answer of a program of this library; where NAME__1 is one, too, they are overloads."""
    names = [name]
    while hasattr(_library, f"{name}__{len(names)}"):
        names.append(f"{name}__{len(names)}")
    found = [("function", compile_function(getattr(_library, one), LibraryScope)) for one in names]
    return found[0] if len(found) == 1 else ("overloads", tuple(found))


def is_vision_op(function: Any) -> bool:
    """Whether a function is one of `vision.ops`."""
    module = getattr(function, "__module__", None) or ""
    return module.startswith(f"{_meanings.ROOT}.vision.ops.")


def _op_of(function: Any, name: str) -> Answer:
    """The op, or the program of this library, that a function is."""
    own = getattr(function, "__name__", name)
    known = getattr(_library, own, None)
    if getattr(nn.functional, own, None) is function and isinstance(known, types.FunctionType):
        return library_function(own)
    if getattr(rushlight, own, None) is function and hasattr(_library, f"torch_{own}"):
        return library_function(f"torch_{own}")
    if getattr(math, own, None) is function and hasattr(_library, f"math_{own}"):
        return library_function(f"math_{own}")
    if is_vision_op(function) and hasattr(_library, f"vision_{own}"):
        return library_function(f"vision_{own}")
    for space, prefix in _spaces():
        for called in (own, name):
            if getattr(space, called, None) is function:
                for op in (f"aten::{prefix}{called}", f"aten::{called}"):
                    if _C._script_has_op(op):
                        return "op", op
    return None


@meaning_of(object)
def _describe_function(function: Any, name: str) -> Answer:
    if not callable(function):
        return None
    form = next((word for one, word in _FORMS.items() if one is function), None)
    if form is not None:
        return "special", form
    op = next((word for one, word in _OPS.items() if one is function), None)
    if op is not None:
        return "op", op
    if isinstance(function, UnitFunction):
        return function_of(function)
    if getattr(builtins, name, None) is function:
        return None
    packet = type(function).__name__
    if packet in ("OpOverloadPacket", "OpOverload"):
        return "op", str(function).replace(".", "::", 1).removeprefix("aten::aten::")
    answer = _op_of(function, name)
    if answer is not None:
        return answer
    if getattr(function, "__script_if_tracing_wrapper", False):
        function = function.__original_fn
    if not isinstance(function, types.FunctionType):
        return None
    if _meanings.is_own(function) and not _meanings.is_of_networks(function):
        raise RuntimeError(
            f"the function {function.__module__}.{function.__name__} cannot be called by compiled "
            "code: it is Python code of this library"
        )
    return function_meaning(function)


def function_of(function: UnitFunction) -> Answer:
    """The answer of a function of a program."""
    if function._unit is not unit:
        _kept.append(function._unit)
    return "unit function", (function._unit, function.qualified_name)


def function_meaning(function: Any) -> Answer:
    """The answer of a function of Python, which is compiled, called back, or raises."""
    marked = overloads_of(function)
    if marked:
        return "overloads", tuple(
            ("function", name) for name in compile_overloads(function, marked)
        )
    return "function", compile_function(function)


# ---- compiling ----


def modifier_of(function: Any) -> str | None:
    """What a mark of `jit` says of a function: ignore, unused, export or nothing."""
    return getattr(function, "_torchscript_modifier", None)


def define_marked(owner: str | None, name: str, function: Any) -> bool:
    """Defines what is marked with `ignore` or `unused`; whether it is marked so."""
    modifier = modifier_of(function)
    if modifier not in ("ignore", "unused"):
        return False
    if modifier == "ignore":
        text, file, line = _source.header_of(function)
        names = Scope(function)
        unit.define_native(owner, name, text, file, line, names, function)
    else:
        rows, result = _source.signature_of(function, owner)
        unit.define_raise(
            owner,
            name,
            rows,
            result,
            f"the function '{function.__name__}' is marked with jit.unused: compiled code cannot "
            "call it",
        )
    return True


def compile_function(function: Any, scope: Callable[[Any], Scope] = Scope) -> str:
    """Compile a function of Python once; its name in programs."""
    known = compiled.get(function)
    if known is not None:
        return known
    if function in running:  # it calls itself
        source, file, line = _source.source_of(function)
        unit.declare(None, running[function], source, file, line, scope(function))
        return running[function]
    running[function] = name = new_name(function)
    try:
        if not define_marked(None, name, function):
            source, file, line = _source.source_of(function)
            unit.compile(name, source, file, line, scope(function), None, "static", None)
    finally:
        del running[function]
    compiled[function] = name
    return name


def compile_method(
    owner: str,
    name: str,
    function: Any,
    scope: Callable[[Any], Scope] = Scope,
    form: str = "method",
    signature: str | None = None,
) -> None:
    """Compile a function as a method of a class of programs."""
    key = (owner, name)
    if key in running:  # it calls itself
        source, file, line = _source.source_of(function)
        unit.declare(owner, name, source, file, line, scope(function))
        return
    running[key] = name
    try:
        if form == "method" and define_marked(owner, name, function):
            return
        source, file, line = _source.source_of(function)
        names = scope(function).of_method(owner)
        unit.compile(name, source, file, line, names, owner, form, signature)
    finally:
        del running[key]


# ---- overloads ----


def overloads_of(function: Any) -> list[Any]:
    """The signatures that were marked for a function of this name, before it was defined."""
    key = f"{function.__module__}.{function.__qualname__}"
    return jit._overloads.get(key, [])


_compiled_overloads: dict[Any, list[str]] = {}


def compile_overloads(function: Any, marked: list[Any]) -> list[str]:
    """Compile a function once for each signature; their names."""
    known = _compiled_overloads.get(function)
    if known is None:
        source, file, line = _source.source_of(function)
        known = []
        for one in marked:
            name = new_name(function)
            text = _source.source_of(one)[0]
            names = Scope(function).of_overload(one)
            unit.compile(name, source, file, line, names, None, "static", text)
            known.append(name)
        _compiled_overloads[function] = known
    return known


def script_function(function: Any) -> UnitFunction:
    """The compiled form of a function."""
    if overloads_of(function):
        raise RuntimeError(
            f"the function '{function.__name__}' has overloads: compiled code calls it, Python "
            "calls one of its signatures under a name of its own"
        )
    return UnitFunction(unit, compile_function(function), function)


def is_final(hint: Any) -> bool:
    """Whether an annotation says that a name is a constant."""
    return hint is typing.Final or typing.get_origin(hint) is typing.Final
