"""TorchScript: programs of Python source, of text, of traces and of archives, which run in C++.

`script` compiles functions, classes and modules with all that they call, `trace` records what a
function does, `CompilationUnit` compiles text. `load` reads archives and `save` writes programs.
Here are the functions of users; marks and questions are in `_marks.py`, the compiler's view of
Python in `_meanings.py`, `_functions.py`, `_classes.py`, `_modules.py` and `_methods.py`.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rushlight import Tensor
from rushlight._C import JITException as Error
from rushlight._lazy import later, lazy
from rushlight._warnings import warn
from rushlight.futures import Future
from rushlight.jit._marks import (  # noqa: F401
    Attribute,
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
from rushlight.jit._script import (  # noqa: F401
    RecursiveScriptModule,
    ScriptFunction,
    ScriptMethod,
    ScriptModule,
    ScriptWarning,
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
)
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.nn import Module
    from rushlight.types import FileLike

_compiling = later("rushlight.jit._scripts")
_freezing = later("rushlight.jit._freeze")
_programs = later("rushlight.jit._program")

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
    "TracingCheckError",
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

with lazy(__name__):
    from ._trace import TracingCheckError, trace, trace_module

_is = builtins.isinstance  # the name is a function of this module


class CompilationUnit:
    """Functions that are compiled from text; they are its attributes and run in C++.

    Args:
        lang: functions in TorchScript's subset of Python, which may call each other's names,
            functions of the language, and what the names around the call of this class mean.
            `RuntimeError` names what cannot be compiled, and its line.
        _frames_up: how many calls further out the names are looked for.

    Example:
        >>> unit = torch.jit.CompilationUnit('''
        ... def twice(x):
        ...     return 2 * x
        ... ''')
        >>> unit.twice(torch.tensor([1.5, 4.0]))
        tensor([3., 8.])
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang, rcb=None, _frames_up: int = 0) -> None:
        """Compile more functions; `rcb`: what gives the value of a name, None where it has none."""
        names = _compiling.FrameScope(sys._getframe(_frames_up + 1), rcb)
        _compiling.define_functions(lang, names, self._functions)

    def __getattr__(self, name):
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(f"the unit has no function '{name}'")
        return functions[name]


# ---- questions ----


def is_tracing() -> bool:
    """Whether the ops of this thread are being recorded in a graph.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    recording = sys.modules.get("rushlight.jit._recording")
    return recording is not None and recording.state() is not None


# ---- what would compile ----


def _deprecate(function: str, instead: str) -> None:
    warn(f"`torch.jit.{function}` is deprecated: {instead}", DeprecationWarning)


def script(
    obj: Any,
    optimize: bool | None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Compile a function, a class or a module, with all that it calls.

    Args:
        obj: a function, which becomes a `ScriptFunction`; a module, which becomes a `ScriptModule`
            that shares its parameters and buffers; or a class, whose objects compiled code makes
            and takes, and which is returned as it is.
        optimize: deprecated; programs are always optimised.
        example_inputs: refused: types are not taken from examples.

    What the language of programs lacks raises when it is compiled, with its line.

    Example:
        >>> @torch.jit.script
        ... def double(x):
        ...     return x * 2
        >>> double(torch.tensor([1, 2]))
        tensor([2, 4])
    """
    if example_inputs is not None:
        raise NotImplementedError("script(): types are annotations; example_inputs gives none")
    if optimize is not None:
        warn("`optimize` is deprecated and has no effect: programs are always optimised")
    _deprecate("script", "`torch.compile` and `torch.export` take programs as they are")
    return _compile(obj, sys._getframe(1 + _frames_up))


def _compile(obj: Any, frame: Any = None) -> Any:
    """`script`, without a warning."""
    return _compiling.script(obj, frame)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled where something is traced, so that its branches stay branches.

    Args:
        fn: the function.

    Example:
        >>> @torch.jit.script_if_tracing
        ... def positive(x):
        ...     if bool(x.sum() > 0):
        ...         return x
        ...     return -x
        >>> traced = torch.jit.trace(lambda x: positive(x) + 1, torch.tensor([2.0]))
        >>> traced(torch.tensor([-5.0]))
        tensor([6.])
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return (_compile(fn) if is_tracing() else fn)(*args, **kwargs)

    marked: Any = wrapper
    marked.__original_fn = fn
    marked.__script_if_tracing_wrapper = True
    return wrapper


def freeze(
    mod: Module, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True
) -> Module:
    """A module whose attributes are constants of its program, which is one graph.

    Args:
        mod: a script module in evaluation mode.
        preserved_attrs: names of attributes that stay, and of methods that stay beside `forward`.
        optimize_numerics: whether batch norms become part of the convolutions before them, which
            changes the last digits.

    Example:
        >>> net = torch.jit.script(torch.nn.Linear(2, 1)).eval()
        >>> frozen = torch.jit.freeze(net)
        >>> list(frozen.parameters())
        []
    """
    _deprecate("freeze", "`torch.compile` and `torch.export` take programs as they are")
    return _freezing.freeze(mod, preserved_attrs or (), optimize_numerics)


def optimize_for_inference(mod: Module, other_methods: Sequence[str] | None = None) -> Module:
    """A frozen module whose batch norms are part of its convolutions.

    Weights of convolutions are copied, and kept from the first call on in the layouts that kernels
    want of them; the copies do not see later changes of the parameters.

    Args:
        mod: a script module; one in training mode is taken as it is in evaluation.
        other_methods: names of methods that stay beside `forward`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
        >>> fast = torch.jit.optimize_for_inference(torch.jit.script(net))
        >>> fast(torch.zeros(1, 1, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """
    _deprecate("optimize_for_inference", "`torch.compile` takes programs as they are")
    return _freezing.optimize_for_inference(mod, other_methods or ())


def save(m: Module, f: FileLike, _extra_files: Any = None) -> None:
    """Write a program as an archive, which PyTorch's `jit.load` reads as well.

    Args:
        m: a script module or function, or a module that `jit.load` has read.
        f: a path, or what has `write()`.
        _extra_files: a dict of texts or bytes that are written beside it, by name.

    Raises `RuntimeError` of what is no program, and of programs that call Python.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.jit.save(torch.jit.script(torch.nn.ReLU()), file)
        >>> _ = file.seek(0)
        >>> torch.jit.load(file)(torch.tensor([-3.0, 3.0]))
        tensor([0., 3.])
    """
    if _is(m, _programs.UnitFunction):
        m.save(f, _extra_files)
        return
    if not _is(m, _programs.ProgramModule):
        raise RuntimeError(
            f"jit.save() writes programs, and a {type(m).__name__} is none: compile it with "
            "jit.script, or save m.state_dict() with torch.save"
        )
    _programs.save(m, f, _extra_files)


def load(
    f: FileLike,
    map_location: Any = None,
    _extra_files: Any = None,
    _restore_shapes: bool = False,
) -> Any:
    """Load a module that PyTorch's `jit.save` has written.

    Args:
        f: a path, or what has `read()`.
        map_location: the device of the tensors; None: where they were saved.
        _extra_files: a dict, whose values become what the archive holds under its keys.
        _restore_shapes: refused: shapes of traced inputs are not kept.

    Nothing in a file runs before a method of the module is called. Raises `ValueError` where there
    is no such file, and `RuntimeError` where it is no archive of a module, is damaged, or uses what
    this version lacks.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.jit.save(torch.jit.script(torch.nn.Tanh()), file)
        >>> _ = file.seek(0)
        >>> net = torch.jit.load(file)
        >>> net(torch.zeros(2))
        tensor([0., 0.])
    """
    if _restore_shapes:
        raise NotImplementedError("jit.load(): shapes of traced inputs are not restored")
    _deprecate("load", "`torch.export` writes files of the newer kind")
    return _programs.load(f, map_location, _extra_files)


# ---- tasks, which run at once, and settings ----


def _unwrap_optional(x):
    """The value of an Optional; AssertionError where it is None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of `func(*args, **kwargs)`, which runs at once.

    Args:
        func: the function.
        *args, **kwargs: its arguments.

    Example:
        >>> future = torch.jit.fork(torch.add, torch.tensor(2), 5)
        >>> torch.jit.wait(future)
        tensor(7)
    """
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """Wait for a future and return its result.

    Args:
        future: what `fork` returned.

    Example:
        >>> torch.jit.wait(torch.jit.fork(lambda: 7))
        7
    """
    return future.wait()


_fork, _wait = fork, wait


@contextlib.contextmanager
def optimized_execution(should_optimize: bool):
    """A no-op: there is nothing to optimise.

    Args:
        should_optimize: without effect.

    Example:
        >>> with torch.jit.optimized_execution(False):
        ...     pass
    """
    yield


class strict_fusion:
    """A no-op: nothing is fused.

    Example:
        >>> with torch.jit.strict_fusion():
        ...     pass
    """

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        pass


def set_fusion_strategy(strategy: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """A no-op: nothing is fused. Returns the previous strategy, which is always empty.

    Args:
        strategy: pairs of "STATIC" or "DYNAMIC" and a number; without effect.

    Example:
        >>> torch.jit.set_fusion_strategy([("STATIC", 2)])
        []
    """
    return []


def enable_onednn_fusion(enabled: bool):
    """A no-op: nothing is fused.

    Args:
        enabled: without effect.

    Example:
        >>> torch.jit.enable_onednn_fusion(True)
    """


def onednn_fusion_enabled() -> bool:
    """Whether graphs are fused with oneDNN: always False.

    Example:
        >>> torch.jit.onednn_fusion_enabled()
        False
    """
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
        _force_outplace: record ops in place as those that give new tensors.
        return_inputs: give a copy of the arguments, too, as they were before it ran.
        _return_inputs_states: give the arguments before and after it ran, too.
    """
    before = None
    if return_inputs or _return_inputs_states:
        given = args if _is(args, tuple) else (args,)
        before = _pytree.tree_map_only(Tensor, lambda t: t.detach().clone(), given)
    from rushlight.jit._trace_graph import get_trace_graph

    graph, outs = get_trace_graph(f, args, kwargs, _force_outplace)
    if return_inputs:
        return graph, outs, before
    if _return_inputs_states:
        return graph, outs, (before, args)
    return graph, outs
