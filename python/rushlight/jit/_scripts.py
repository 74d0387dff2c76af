"""`jit.script`: functions, classes and modules of Python as programs that run in C++."""

from __future__ import annotations

import builtins
import inspect
import types
from typing import Any

from rushlight import nn
from rushlight.jit import (
    _classes,
    _containers,
    _functions,
    _hooks,
    _meanings,
    _methods,
    _modules,
    _program,
)
from rushlight.jit._meanings import unit
from rushlight.jit._modules import Made, program_object
from rushlight.jit._program import ProgramModule, UnitFunction
from rushlight.jit.frontend import NotSupportedError


def script(obj: Any, frame: Any = None) -> Any:
    """Compile a function, a class or a module, or share a list or dict with programs.

    `frame`: where names of a class are looked for.
    """
    if isinstance(obj, UnitFunction | ProgramModule):
        return obj
    if isinstance(obj, nn.Module):
        return script_module(obj)
    if isinstance(obj, list | dict):
        return _containers.shared(obj)
    if isinstance(obj, _containers.ScriptList | _containers.ScriptDict):
        return obj
    if isinstance(obj, type):
        return _script_class(obj, frame)
    if type(obj) in _meanings.compiled:
        return _classes.script_object(obj)
    if not callable(obj):
        raise RuntimeError(f"script() takes a function, a class or a module, not {type(obj)}")
    if isinstance(obj, types.MethodType):
        raise RuntimeError(
            f"'{obj.__name__}' is a method of an object: compile the function behind it "
            f"(type(object).{obj.__name__}), or the module that it is of"
        )
    if getattr(obj, "__script_if_tracing_wrapper", False):
        obj = obj.__original_fn
    if not isinstance(obj, types.FunctionType) or _meanings.is_own(obj):
        answer = _meanings.describe(obj, getattr(obj, "__name__", ""))
        if answer is not None and answer[0] == "function":
            return UnitFunction(unit, answer[1], obj)
        raise RuntimeError(f"this cannot be compiled: {obj!r}")
    return _functions.script_function(obj)


def _script_class(kind: Any, frame: Any) -> Any:
    if issubclass(kind, nn.Module) and not getattr(kind, "__torch_script_interface__", False):
        raise RuntimeError(
            f"{kind} is a class of modules (it inherits from nn.Module): compile one of its objects"
        )
    if frame is not None and _classes.is_plain(kind):
        _classes.compile_class(kind, names=dict(frame.f_locals))
    elif _classes.describe_class(kind, kind.__name__) is None:
        raise RuntimeError(f"the class '{kind}' cannot be compiled: programs have it already")
    return kind


# ---- modules -------------------------------------------------------------------------------------


def script_module(module: nn.Module, share: bool = True) -> ProgramModule:
    """The program of a module, whose parameters and buffers it shares."""
    known: dict[int, Made] = {}
    module = prepared(module)
    with _modules.new_classes():
        made = program_object(module, share, known)
        compile_methods(module, known)
    program = ProgramModule._around(made.handle, {})
    attach_all(program, module)
    return program


def prepared(module: nn.Module) -> nn.Module:
    """What a module and its submodules put into their place by `__prepare_scriptable__`."""
    if "_modules" not in vars(module):
        return module  # program_object says what is wrong
    if hasattr(module, "__prepare_scriptable__"):
        module = module.__prepare_scriptable__()
    if isinstance(module, nn.Module) and not isinstance(module, ProgramModule):
        for name, child in module._modules.items():
            if child is not None:
                module._modules[name] = prepared(child)
    return module


def compile_methods(module: nn.Module, known: dict[int, Made]) -> None:
    """Compiles what is wanted of the classes that are new."""
    modules = {id(one): one for one in module.modules()}
    for key, one in known.items():
        if one.is_new and key in modules:
            owner = _meanings.owners[one.handle.name]
            for method in _methods.wanted_methods(modules[key]):
                owner.member(method)
            _hooks.compile_hooks(modules[key], owner)


def attach_all(program: Any, module: nn.Module) -> None:
    """Gives a program and its submodules what stays Python of the modules that they come from."""
    if isinstance(module, ProgramModule) or program.__dict__.get("_python_attached"):
        return
    program.__dict__["_python_attached"] = True
    attach(program, module)
    for name, child in module._modules.items():
        made = program._modules.get(name)
        if child is not None and made is not None:
            attach_all(made, child)


def attach(program: Any, module: nn.Module) -> None:
    """Attributes that programs do not have, and the methods that stay Python code."""
    for name, function in _methods.python_members(module):
        program.__dict__[name] = types.MethodType(function, program)
    owner = _meanings.owners.get(program._c.name)
    if owner is not None:
        for name in (*owner.shape.plain, *(name for name, _ in owner.shape.functions)):
            if isinstance(name, str) and name in vars(module):
                program.__dict__[name] = vars(module)[name]
    program.__dict__["_original"] = type(module)
    program.__doc__ = module.__doc__


# ---- modules that are written for scripts --------------------------------------------------------


def become_program(module: Any, kind: type) -> None:
    """Turns a `ScriptModule` that has been made into its own program, of a class that is both."""
    defined = module.__dict__.pop("_defined_texts", [])
    known: dict[int, Made] = {}
    with _modules.new_classes():
        made = program_object(module, not defined, known)
        for text, scope in defined:
            define(made.handle.name, text, scope)
        compile_methods(module, known)
    program = ProgramModule._around(made.handle, {})
    attach_all(program, module)
    contents = dict(program.__dict__)
    hooks = {name: module.__dict__[name] for name in module.__dict__ if name.endswith("_hooks")}
    module.__dict__.clear()
    module.__dict__.update(contents)
    module.__dict__.update(hooks)
    module.__class__ = kind
    _program._wrappers[made.handle] = module
    module._methods_changed()


def define(class_name: str, text: str, scope: Any) -> list[str]:
    """Compiles the functions of a text as methods of a class; their names."""
    functions = _functions_of_text(text)
    for name, source, line in functions:
        _compile_text(name, source, line, scope, class_name)
    return [name for name, _, _ in functions]


def _compile_text(name: str, source: str, line: int, scope: Any, class_name: str | None) -> None:
    form = "static" if class_name is None else "method"
    try:
        unit.compile(name, source, "<string>", line, scope, class_name, form, None)
    except NotSupportedError as error:  # of text it is an error as any other
        raise RuntimeError(str(error)) from None


def _functions_of_text(text: str) -> list[tuple[str, str, int]]:
    """The functions of a text: their names, their own texts, the numbers of their first lines."""
    lines = inspect.cleandoc("\n" + text).splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith("def ")]
    ends = [*starts[1:], len(lines)]
    names = [lines[i].split("(", 1)[0].removeprefix("def").strip() for i in starts]
    texts = ["".join(lines[a:b]) + "\n" for a, b in zip(starts, ends, strict=True)]
    return [(name, one, i + 1) for name, one, i in zip(names, texts, starts, strict=True)]


def define_functions(text: str, scope: FrameScope, functions: dict[str, UnitFunction]) -> None:
    """Compiles the functions of a text into `functions`, in their order."""
    scope.functions = functions
    for name, source, line in _functions_of_text(text):
        if name in functions:
            raise RuntimeError(f"method '{name}' already defined: the unit has such a function")
        full = _meanings.free_name("__torch__", name)
        _compile_text(full, source, line, scope, None)
        functions[name] = UnitFunction(unit, full)


class FrameScope(_meanings.Names):
    """The names of a running function of Python, which a text is defined in."""

    def __init__(self, frame: Any, find: Any = None) -> None:
        super().__init__()
        self._names = {**frame.f_globals, **frame.f_locals}
        self._find = find
        self.functions: dict[str, UnitFunction] = {}  # whose names come first

    def find(self, name: str) -> _meanings.Answer:
        """What a name means there."""
        if name in self.functions:
            return _functions.function_of(self.functions[name])
        found = self._find(name) if self._find is not None else None
        if found is not None:
            return _meanings.describe(found, name)
        if name in self._names:
            return _meanings.describe(self._names[name], name)
        value = getattr(builtins, name, None)
        if isinstance(value, type):
            return _meanings.describe(value, name)
        return ("ops", "torch") if name == "torch" else super().find(name)
