"""TorchScript: archives, programs of text, decorators and questions.

`load` reads archives and `save` writes them again; their programs run as graphs, in C++, and so do
those of a `CompilationUnit`. Source of Python is not compiled yet: `script` and `trace` give back
the functions that they are given, and modules under a class that is a `ScriptModule`, with a
warning, so that a program runs as it is written. What a program does can be recorded as a graph
(`_get_trace_graph`).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from rushlight import Tensor, nn
from rushlight._C import JITException as Error
from rushlight._warnings import warn
from rushlight.futures import Future
from rushlight.jit._marks import (
    Attribute,
    ScriptMethod,
    _overload,
    _overload_method,
    _overloads,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    isinstance,
    script_method,
    unused,
)
from rushlight.jit._script import ScriptFunction, ScriptModule
from rushlight.utils import _pytree

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_is = isinstance  # the name is a function of this module below


class TracerWarning(Warning):
    """A warning about a trace that would be wrong for other inputs."""


class ScriptWarning(Warning):
    """A warning about a program that TorchScript would run in another way."""


# ---- types that programs ask about ----


class RecursiveScriptModule(ScriptModule):
    """The class of a module that `script` returns; it runs the module as Python.

    It is of the module's class, too, and runs as Python; parameters, submodules and hooks are the
    module's, in one place, so that what one changes the other sees.
    """

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("script modules are made by script(): nothing is compiled yet")

    @property
    def original_name(self) -> str:
        """The name of the module's class."""
        return _original(self).__name__

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        inner = _original(self).extra_repr(self)
        return f"original_name={self.original_name}" + (f", {inner}" if inner else "")

    def __reduce_ex__(self, protocol):
        return _as_script, (_without_script(self), _script_base(self))

    def __deepcopy__(self, memo):
        made = _as_script(copy.deepcopy(_without_script(self), memo), _script_base(self))
        memo[id(self)] = made
        return made

    def __copy__(self):
        return _as_script(copy.copy(_without_script(self)), _script_base(self))


class TracedModule(RecursiveScriptModule):
    """The class of submodules of a module that `trace` returns."""


class TopLevelTracedModule(TracedModule):
    """The class of a module that `trace` returns."""


# By the classes of modules and of scripts: the class that is both.
_SCRIPTS: weakref.WeakKeyDictionary[type, dict[type, Any]] = weakref.WeakKeyDictionary()


def _original(script: Any) -> Any:
    return type(script).__bases__[1]


def _script_base(script: Any) -> type:
    return type(script).__bases__[0]


def _as_script(module: Any, base: type) -> Any:
    """The module under a class that is `base` and its own; a script as it is."""
    if _is(module, ScriptModule):
        return module
    kinds = _SCRIPTS.setdefault(type(module), {})
    kind = kinds[base]() if base in kinds else None
    if kind is None:
        space = {"__module__": base.__module__, "__doc__": base.__doc__}
        kind = type(base.__name__, (base, type(module)), space)
        kinds[base] = weakref.ref(kind)
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


def _without_script(script: Any) -> Any:
    made = object.__new__(_original(script))
    object.__setattr__(made, "__dict__", script.__dict__)
    return made


class CompilationUnit:
    """Functions that are compiled from text; they are its attributes and run in C++.

    Args:
        lang: functions in TorchScript's subset of Python, which may call each other's names,
            functions of the language, and what the names around the call of this class mean.
            `RuntimeError` names what cannot be compiled, and its line.
        _frames_up: how many calls further out the names are looked for.
    """

    def __init__(self, lang=None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up: int = 0) -> None:
        """Compile more functions; `rcb`: what gives the value of a name, None where it has none."""
        from rushlight.jit import _scripts

        names = _scripts.FrameScope(sys._getframe(_frames_up + 1), rcb)
        _scripts.define_functions(lang, names, self._functions)

    def __getattr__(self, name):
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(f"the unit has no function '{name}'")
        return functions[name]


# ---- questions ----


def is_tracing() -> bool:
    """Whether the ops of this thread are being recorded in a graph."""
    trace = sys.modules.get("rushlight.jit._trace")
    return trace is not None and trace.state() is not None


# ---- what would compile ----

_told: set[str] = set()


def _deprecate(function: str, instead: str) -> None:
    warn(f"`torch.jit.{function}` is deprecated: {instead}", DeprecationWarning)


def _tell(function: str, what: str) -> None:
    """Warns that a function is deprecated; that nothing is compiled, once in a process."""
    _deprecate(function, "`torch.compile` and `torch.export` take programs as they are")
    if function not in _told:
        _told.add(function)
        warn(f"torch.jit.{function}: source of Python is not compiled yet; {what} runs as Python")


def script(obj: Any, optimize=None, _frames_up: int = 0, _rcb=None, example_inputs=None) -> Any:
    """Compile a function, a class or a module, with all that it calls.

    Args:
        obj: a function, which becomes a `ScriptFunction`; a module, which becomes a `ScriptModule`
            that shares its parameters and buffers; or a class, whose objects compiled code makes
            and takes, and which is returned as it is.
        optimize: deprecated; programs are always optimised.
        example_inputs: refused: types are not taken from examples.

    What the language of programs lacks raises when it is compiled, with its line.
    """
    if example_inputs is not None:
        raise NotImplementedError("script(): types are annotations; example_inputs gives none")
    if optimize is not None:
        warn("`optimize` is deprecated and has no effect: programs are always optimised")
    _deprecate("script", "`torch.compile` and `torch.export` take programs as they are")
    return _compile(obj)


def _compile(obj: Any) -> Any:
    """`script`, without a warning."""
    from rushlight.jit import _scripts

    return _scripts.script(obj)


def script_if_tracing(fn: Callable[..., Any]) -> Any:
    """A function that is compiled where something is traced, so that its branches stay branches."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return (_compile(fn) if is_tracing() else fn)(*args, **kwargs)

    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


def trace(
    func: Callable[..., Any] | None,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance: float = 1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
) -> Any:
    """Return the function itself, or the module as a traced module, with a warning."""
    if not callable(func):
        raise RuntimeError(f"trace() takes a function or a module, not {type(func)}")
    _tell("trace", "what is given")
    return _as_script(func, TopLevelTracedModule) if _is(func, nn.Module) else func


def trace_module(mod, inputs, *args, **kwargs):
    """Return the module as a traced module, with a warning."""
    if not _is(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not _is(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    _tell("trace_module", "the module")
    return _as_script(mod, TopLevelTracedModule)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A module whose attributes are constants of its program, which is one graph.

    Args:
        mod: a script module in evaluation mode.
        preserved_attrs: names of attributes that stay, and of methods that stay beside `forward`.
        optimize_numerics: whether batch norms become part of the convolutions before them, which
            changes the last digits.
    """
    from rushlight.jit import _freeze

    _deprecate("freeze", "`torch.compile` and `torch.export` take programs as they are")
    return _freeze.freeze(mod, preserved_attrs or (), optimize_numerics)


def optimize_for_inference(mod, other_methods=None):
    """A frozen module whose batch norms are part of its convolutions.

    Args:
        mod: a script module; one in training mode is taken as it is in evaluation.
        other_methods: names of methods that stay beside `forward`.
    """
    from rushlight.jit import _freeze

    _deprecate("optimize_for_inference", "`torch.compile` takes programs as they are")
    return _freeze.optimize_for_inference(mod, other_methods or ())


def save(m, f, _extra_files=None):
    """Write a program as an archive, which PyTorch's `jit.load` reads as well.

    Args:
        m: a script module or function, or a module that `jit.load` has read.
        f: a path, or what has `write()`.
        _extra_files: a dict of texts or bytes that are written beside it, by name.

    Raises `RuntimeError` of modules that are Python, of which there is no program to write.
    """
    from rushlight.jit._program import ProgramModule, UnitFunction
    from rushlight.jit._program import save as save_program

    if _is(m, UnitFunction):
        m.save(f, _extra_files)
        return
    if not _is(m, ProgramModule):
        raise RuntimeError(
            "rushlight writes no TorchScript files yet of modules that run as Python: save "
            "m.state_dict() with torch.save"
        )
    save_program(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Load a module that PyTorch's `jit.save` has written.

    Args:
        f: a path, or what has `read()`.
        map_location: the device of the tensors; None: where they were saved.
        _extra_files: a dict, whose values become what the archive holds under its keys.
        _restore_shapes: refused: shapes of traced inputs are not kept.

    Nothing in a file runs before a method of the module is called. Raises `ValueError` where there
    is no such file, and `RuntimeError` where it is no archive of a module, is damaged, or uses what
    this version lacks.
    """
    from rushlight.jit._program import load as load_program

    if _restore_shapes:
        raise NotImplementedError("jit.load(): shapes of traced inputs are not restored")
    _deprecate("load", "`torch.export` writes files of the newer kind")
    return load_program(f, map_location, _extra_files)


# ---- tasks, which run at once, and settings ----


def _unwrap_optional(x):
    """The value of an Optional; AssertionError where it is None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def fork(func, *args, **kwargs) -> Future:
    """A future of `func(*args, **kwargs)`, which runs at once."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Wait for a future and return its result."""
    return future.wait()


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A no-op: there is nothing to optimise."""
    yield


class strict_fusion:
    """A no-op: nothing is fused."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        pass


def set_fusion_strategy(strategy):
    """A no-op: nothing is fused. Returns the previous strategy, which is always empty."""
    return []


def enable_onednn_fusion(enabled: bool):
    """A no-op: nothing is fused."""


def onednn_fusion_enabled() -> bool:
    """Whether graphs are fused with oneDNN: always False."""
    return False


def _get_trace_graph(
    f: Callable,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
):
    """The ops that a program calls, as a graph, and what it returns.

    Args:
        f: a module, whose parameters and buffers come into the graph after the arguments, or a
            function.
        args: its positional arguments: tensors, or containers of them.
        kwargs: its keyword arguments.
        strict: accepted: containers are taken apart.
        _force_outplace: refused: nodes are the ops that ran.
        return_inputs: give a copy of the arguments, too, as they were before it ran.
        _return_inputs_states: give the arguments before and after it ran, too.
    """
    from rushlight.jit._trace import get_trace_graph

    if _force_outplace:
        raise NotImplementedError("_get_trace_graph(): ops in place stay what they are")
    before = None
    if return_inputs or _return_inputs_states:
        given = args if _is(args, tuple) else (args,)
        before = _pytree.tree_map_only(Tensor, lambda t: t.detach().clone(), given)
    graph, outs = get_trace_graph(f, args, kwargs)
    if return_inputs:
        return graph, outs, before
    if _return_inputs_states:
        return graph, outs, (before, args)
    return graph, outs
