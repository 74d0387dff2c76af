"""The bases of compiled functions and modules, by the module that PyTorch has them in."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from rushlight import nn
from rushlight._lazy import later
from rushlight.jit._marks import Attribute, MarkedMethod, script_method  # noqa: F401

_scripts = later("rushlight.jit._scripts")
_program = later("rushlight.jit._program")


class TracerWarning(Warning):
    """A warning about a trace that would be wrong for other inputs.

    Example:
        >>> issubclass(torch.jit.TracerWarning, Warning)
        True
    """


class ScriptWarning(Warning):
    """A warning about a program that TorchScript would run in another way.

    Example:
        >>> issubclass(torch.jit.ScriptWarning, Warning)
        True
    """


class ScriptFunction:
    """A compiled function.

    Args:
        args, kwargs: its arguments come from `jit.script` and `jit.trace`, which make it.

    Example:
        >>> function = torch.jit.trace(torch.neg, torch.ones(2))
        >>> type(function).__name__, function(torch.tensor([2.0, -4.0]))
        ('UnitFunction', tensor([-2.,  4.]))
    """

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("compiled functions are made by script() and trace()")


class ScriptMethod:
    """A compiled method."""

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("compiled methods are made by script() and trace()")


class ScriptMeta(type(nn.Module)):
    """The class of `ScriptModule` and its subclasses, whose objects are compiled once made."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        if getattr(cls, "_is_program", False) or cls.__name__ == "ScriptModule":
            return made
        _scripts.become_program(made, _program_class(cls))
        return made


_classes: weakref.WeakKeyDictionary[type, Any] = weakref.WeakKeyDictionary()


def _program_class(kind: Any) -> Any:
    """The class that is a program's and that of a `ScriptModule`."""
    known = _classes.get(kind)
    if known is None:
        space = {"__module__": kind.__module__, "__doc__": kind.__doc__}
        forward = next((vars(k)["forward"] for k in kind.__mro__ if "forward" in vars(k)), None)
        if forward is not vars(nn.Module).get("forward") and not isinstance(forward, MarkedMethod):
            space["_python_forward"] = forward
        known = _classes[kind] = type(kind.__name__, (_program.ProgramModule, kind), space)
    return known


class ScriptModule(nn.Module, metaclass=ScriptMeta):
    """The base of modules whose methods are compiled, those that are marked by `script_method`.

    A module is a program once it has been made: what its constructor has assigned are its
    attributes, by their types, and its submodules are compiled, too.

    Example:
        >>> class Double(torch.jit.ScriptModule):
        ...     @torch.jit.script_method
        ...     def forward(self, x):
        ...         return x * 2
        >>> Double()(torch.tensor([1]))
        tensor([2])
    """

    def define(self, src: str) -> None:
        """Compile methods from a text of TorchScript, in which names mean what they do here."""
        scope = _scripts.FrameScope(sys._getframe(1))
        own: Any = self.__dict__
        handle = own.get("_c")
        if handle is None:  # the constructor is running
            own.setdefault("_defined_texts", []).append((src, scope))
            return
        _scripts.define(handle.name, src, scope)
        own["_program_methods"] = frozenset(handle.methods())


class RecursiveScriptModule(ScriptModule):
    """The class of modules of programs, which `script` and `load` return.

    Args:
        args, kwargs: its arguments come from `jit.script` and `jit.load`, which make it.

    Example:
        >>> net = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU()))
        >>> isinstance(net, torch.jit.RecursiveScriptModule), net.original_name
        (True, 'Sequential')
    """

    _is_program = True

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("modules of programs come from jit.load, jit.script and jit.trace")


class TracedModule(RecursiveScriptModule):
    """The class of submodules of a module that `trace` returns.

    Example:
        >>> net = torch.jit.trace(torch.nn.Sequential(torch.nn.ReLU()), torch.ones(2))
        >>> isinstance(net, torch.jit.ScriptModule)
        True
    """


class TopLevelTracedModule(TracedModule):
    """The class of a module that `trace` returns.

    Example:
        >>> net = torch.jit.trace(torch.nn.ReLU(), torch.ones(2))
        >>> type(net).__name__
        'TopLevelTracedProgram'
    """
