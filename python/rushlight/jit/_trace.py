"""`jit.trace`: one run of a function, or of methods of a module, becomes a program."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight
import rushlight.jit._scripts  # says what functions, classes and modules are to programs
from rushlight import _C, Tensor, nn
from rushlight._tensor import _DisableTorchFunction
from rushlight._warnings import warn
from rushlight.autograd.function import custom_nodes_behind
from rushlight.fx._symbolic_trace import _Patcher
from rushlight.jit import (
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    _meanings,
    _methods,
)
from rushlight.jit._calls import Calls
from rushlight.jit._check_trace import TracingCheckError, check
from rushlight.jit._frames import Frame, State
from rushlight.jit._meanings import new_name, unit
from rushlight.jit._modules import Made, program_object
from rushlight.jit._program import ProgramModule, UnitFunction, _ModuleMethod
from rushlight.jit._recording import TracingState, record, state
from rushlight.jit._script import TracerWarning
from rushlight.jit._trace_graph import named_arguments, parameters_of
from rushlight.jit._trace_values import Inputs, Outputs
from rushlight.utils import _pytree as pytree

__all__ = ["TracingCheckError", "trace", "trace_module"]


# ---- one run ----


class Options(NamedTuple):
    """What a trace records, and what it tells.

    Args:
        strict: refuse dicts as results, and warn of lists.
        tells: warn of what makes the trace wrong for other inputs.
        outplace: record ops in place as those that give new tensors.
    """

    strict: bool
    tells: bool = True
    outplace: bool = False


class _CallsSeen:
    """Calls of modules and of programs are seen by the trace of their thread, inside of it.

    The classes are changed while any thread traces; what runs in others is as always.
    """

    _lock = threading.Lock()
    _users = 0
    _patcher = _Patcher()

    def __enter__(self) -> None:
        with self._lock:
            if _CallsSeen._users == 0:
                self._patch()
            _CallsSeen._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            _CallsSeen._users -= 1
            if _CallsSeen._users == 0:
                self._patcher.revert_all_patches()

    def _patch(self) -> None:
        call_module, call_function = nn.Module.__call__, UnitFunction.__call__
        run_method = ProgramModule._run

        def module_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            trace = state()
            if trace is None or isinstance(module, ProgramModule):
                return call_module(module, *args, **kwargs)
            return trace.call_module(module, lambda: call_module(module, *args, **kwargs))

        def function_call(function: UnitFunction, *args: Any, **kwargs: Any) -> Any:
            trace = state()
            run = functools.partial(call_function, function, *args, **kwargs)
            if trace is None:
                return run()
            owner, name = function._unit, function.qualified_name
            with _DisableTorchFunction():
                return trace.call_program(owner, name, None, args, kwargs, run)

        def method_run(module: ProgramModule, name: str, args: tuple, kwargs: Any) -> Any:
            trace = state()
            run = functools.partial(run_method, module, name, args, kwargs)
            if trace is None:
                return run()
            with _DisableTorchFunction():
                return trace.call_program(module._c, name, module, args, kwargs, run)

        patch = functools.partial(self._patcher.patch_method, deduplicate=False)
        patch(nn.Module, "__call__", module_call)
        patch(UnitFunction, "__call__", function_call)
        patch(ProgramModule, "_run", method_run)


def trace_frame(
    f: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    how: Options,
    module: State | None = None,
) -> Frame:
    """The graph of one run of a function, and those of the submodules that it calls.

    Args:
        f: the function, or the method of the module.
        args: its arguments by position.
        kwargs: those by name.
        how: what to record and to tell.
        module: of which the function is a method.
    """
    trace = TracingState(module, how.tells, how.outplace)
    kwargs = _in_order(f, kwargs)
    names = _argument_names([name for name, _ in named_arguments(f, args, kwargs)])
    inputs = Inputs(trace)
    cached = rushlight.is_autocast_cache_enabled()
    given = [inputs.add(n, a) for n, a in zip(names, (*args, *kwargs.values()), strict=True)]
    by_name = dict(zip(kwargs, given[len(args) :], strict=True))

    def run() -> Any:
        with Calls(trace), _CallsSeen():
            call = functools.partial(f, *given[: len(args)], **by_name)
            return call() if module is None else trace.with_buffers(module.module, call)

    try:
        rushlight.set_autocast_cache_enabled(False)  # a cast from before would be a constant
        result = record(trace, run)
    finally:
        rushlight.set_autocast_cache_enabled(cached)
    results = [t for t in pytree.tree_leaves(result) if isinstance(t, Tensor)]
    for node in custom_nodes_behind(results) if how.tells else ():
        warn(
            f"The program has the ops of {node.name()} and its derivative is theirs: the backward "
            "of a custom function is no part of a trace",
            TracerWarning,
        )
    frame = trace.root
    frame.graph.registerOutput(Outputs(trace, how.strict).value(result))
    return frame


def _in_order(f: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name in the order that the function has them."""
    names = [parameter.name for parameter in parameters_of(f)]
    places = {name: place for place, name in enumerate(names)}
    return dict(sorted(kwargs.items(), key=lambda item: places.get(item[0], len(names))))


def _argument_names(names: list[str]) -> list[str]:
    """Names for all arguments; those behind `*args` have none of their own."""
    return [name or f"argument_{place + 1}" for place, name in enumerate(names)]


# ---- functions ----


def trace_function(
    f: Callable[..., Any], args: tuple, kwargs: dict[str, Any], how: Options
) -> UnitFunction:
    """A program of one run of a function; see `trace_frame`."""
    frame, where = trace_frame(f, args, kwargs, how), _C._ProgramUnit(unit)
    name = new_name(f if hasattr(f, "__name__") else type(f))
    frame.define(where, None, name)
    return UnitFunction(where, name, f)


# ---- modules ----


class TracedProgram(ProgramModule, TracedModule):
    """A submodule of a module that has been traced."""

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedProgram(TracedProgram, TopLevelTracedModule):
    """A module that has been traced."""


def _exported(module: nn.Module, traced: Iterable[str]) -> list[tuple[nn.Module, str]]:
    """The methods that are marked by `jit.export`, but for those of the module that are traced."""
    return [
        (part, name)
        for part in module.modules()
        if not isinstance(part, ProgramModule)
        for name in _methods.wanted_methods(part)
        if name != "forward" and not (part is module and name in traced)
    ]


def trace_methods(
    module: nn.Module,
    calls: dict[str, tuple[tuple, dict[str, Any]]],
    how: Options,
) -> ProgramModule:
    """A program that shares the tensors of a module, whose methods are one run of each.

    Its classes are in a unit of their own, which ends with the program; where methods are compiled
    from their source too, they are in the one of all that is compiled.

    Args:
        module: the module.
        calls: by the names of methods their arguments, by position and by name.
        how: what to record and to tell.
    """
    for name, part in module.named_modules():
        if part._backward_hooks:
            raise RuntimeError(
                f"Modules that have backward hooks assigned are no programs: '{name}' has some"
            )
    made: dict[int, Made] = {}
    exported = _exported(module, calls)
    classes = unit if exported else _C._ProgramUnit(unit)
    handle = program_object(module, False, made, classes).handle
    for part, name in exported:
        _meanings.owners[made[id(part)].handle.name].member(name)
    if not exported:  # nothing is compiled any more that asks for members
        for one in made.values():
            if one.is_new:
                del _meanings.owners[one.handle.name]
    program = TracedProgram._around(handle, {})
    program.__class__ = TopLevelTracedProgram
    where = State(module)
    for name, (args, kwargs) in calls.items():
        method = module if name == "forward" else getattr(module, name)
        for frame in trace_frame(method, args, kwargs, how, where).methods():
            frame.set_types(program)
            owner = program.get_submodule(frame.path)
            frame.define(classes, owner._c.name, frame.method or name)
            owner._methods_changed()
    # A run may put other tensors in the places of buffers. A second trace, which is compared with
    # the first, begins with those that were there.
    for path, tensor in module.named_buffers(remove_duplicate=False) if how.tells else ():
        owner, _, name = path.rpartition(".")
        if program.get_buffer(path) is not tensor:  # the run has put another in its place
            setattr(program.get_submodule(owner), name, tensor)
    return program


# ---- what programs call ----

_Call = tuple[tuple, dict[str, Any]]  # arguments by position and by name


def _arguments(inputs: Any, by_name: bool = False) -> _Call:
    """Example inputs as a call."""
    if by_name:
        return (), dict(inputs)
    if isinstance(inputs, tuple):
        return inputs, {}
    return (tuple(inputs) if isinstance(inputs, list) else (inputs,)), {}


def _deprecate(function: str) -> None:
    message = (
        f"`torch.jit.{function}` is deprecated: `torch.export` makes programs that last longer"
    )
    warn(message, DeprecationWarning)


def _refuse(function: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            raise NotImplementedError(f"jit.{function}(): {name} is not supported")


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a function or a module once, and make a program of the ops that it calls.

    The program runs in C++ and can be saved. It holds what this run did: branches and loops of
    Python are fixed, values that Python read off tensors are constants (`TracerWarning` says
    which), and sizes of tensors stay sizes where ops take them. A module becomes a script module
    that shares its parameters and buffers.

    Args:
        func: the function or the module.
        example_inputs: the arguments of the run, as a tuple: tensors, tuples of what can be
            traced, lists and dicts whose items are of one type. A single tensor is one argument.
        optimize: without effect.
        check_trace: run program and function again, and warn where they differ; raise
            `TracingCheckError` where the trace itself is another.
        check_inputs: a list of arguments to compare with, in the place of `example_inputs`.
        check_tolerance: the error that is allowed.
        strict: refuse dicts as results, and warn of lists, whose lengths and keys are fixed.
        _force_outplace: record ops in place as those that give new tensors; views of what is
            written do not change then, and a warning says so.
        _module_class: refused.
        _compilation_unit: refused.
        example_kwarg_inputs: arguments by name, in the place of `example_inputs` or beside them.
        _store_inputs: without effect.

    Example:
        >>> double = torch.jit.trace(lambda x: x * 2, (torch.ones(1),))
        >>> double(torch.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    _refuse("trace", _module_class=_module_class, _compilation_unit=_compilation_unit)
    if not callable(func):
        raise RuntimeError(f"trace() takes a function or a module, not {type(func)}")
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError(
            "example_kwarg_inputs should be a dict where there are no example_inputs"
        )
    if example_kwarg_inputs is not None and not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    _deprecate("trace")
    if isinstance(func, ScriptModule | ScriptFunction):
        warn("The input to trace is already a program, which is returned as it is", UserWarning)
        return func
    how = Options(strict, outplace=_force_outplace)
    args, _ = ((), {}) if example_inputs is None else _arguments(example_inputs)
    first: _Call = args, example_kwarg_inputs or {}
    given = example_inputs is None  # check_inputs are of the same kind
    calls = [first] if check_inputs is None else [_arguments(c, given) for c in check_inputs]
    owner = getattr(func, "__self__", None)
    if isinstance(owner, nn.Module):
        if getattr(func, "__name__", "") != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions: trace_module takes "
                "a dict of methods"
            )
        func = owner
    if isinstance(func, nn.Module):
        program = trace_methods(func, {"forward": first}, how)
        if check_trace:
            _check_method(program, func, "forward", calls, check_tolerance, how)
        return program
    program = trace_function(func, *first, how)
    if check_trace:
        check(
            program,
            func,
            lambda args, named: trace_function(func, args, named, how._replace(tells=False)),
            calls,
            check_tolerance,
        )
    return program


def trace_module(
    mod: nn.Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Make a program of several methods of a module, each by one run; see `trace`.

    Args:
        mod: the module.
        inputs: by the names of methods their example arguments.
        optimize: without effect.
        check_trace: compare the program with the module.
        check_inputs: a list of dicts like `inputs` to compare with.
        check_tolerance: the error that is allowed.
        strict: refuse dicts as results, and warn of lists.
        _force_outplace: record ops in place as those that give new tensors.
        _module_class: refused.
        _compilation_unit: refused.
        example_inputs_is_kwarg: the arguments are dicts, by their names.
        _store_inputs: without effect.

    Example:
        >>> net = torch.nn.Linear(3, 1)
        >>> traced = torch.jit.trace_module(net, {"forward": torch.ones(2, 3)})
        >>> traced(torch.zeros(5, 3)).shape
        torch.Size([5, 1])
    """
    _refuse("trace_module", _module_class=_module_class, _compilation_unit=_compilation_unit)
    if not isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    _deprecate("trace_module")
    calls = {name: _arguments(given, example_inputs_is_kwarg) for name, given in inputs.items()}
    how = Options(strict, outplace=_force_outplace)
    program = trace_methods(mod, calls, how)
    for name, call in calls.items() if check_trace else ():
        compared = [call]
        if check_inputs is not None:
            compared = [_arguments(c[name], example_inputs_is_kwarg) for c in check_inputs]
        _check_method(program, mod, name, compared, check_tolerance, how)
    return program


def _check_method(
    program: Any, mod: nn.Module, name: str, calls: list[_Call], tolerance: float, how: Options
) -> None:
    def again(*call: Any) -> Any:
        return _ModuleMethod(trace_methods(mod, {name: call}, how._replace(tells=False)), name)

    method = mod if name == "forward" else getattr(mod, name)
    check(_ModuleMethod(program, name), method, again, calls, tolerance, (mod, program))
