"""Programs of TorchScript in Python: modules and objects of archives, which run in C++."""

from __future__ import annotations

import enum
import functools
import io
import os
import pickle
import weakref
from collections import namedtuple
from typing import Any

from rushlight import _C, nn
from rushlight.jit import RecursiveScriptModule, ScriptFunction, _script
from rushlight.jit._views import inlined, optimised, with_constants

_TABLES = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}


class ScriptMethod(_script.ScriptMethod):
    """A method of a program, bound to its object."""

    def __init__(self, handle: Any, name: str) -> None:
        self._handle = handle
        self.name = self.__name__ = name
        kind = python_classes.get(handle.name)
        self.__doc__ = getattr(getattr(kind, name, None), "__doc__", None)

    def __call__(self, *args, **kwargs):
        return self._handle.call(self.name, args, kwargs)

    @property
    def graph(self):
        """The method's graph."""
        return self._handle.graph(self.name)

    @property
    def inlined_graph(self):
        """A copy of the graph whose calls are what they call."""
        return inlined(self.graph)

    @property
    def code(self) -> str:
        """The method's text."""
        return self._handle.code(self.name)[0]

    @property
    def code_with_constants(self):
        """The text, and the constants that it names."""
        return with_constants(self._handle.code(self.name))

    @property
    def schema(self):
        """What the method takes and returns, as text."""
        return self._handle.schema(self.name)

    def __repr__(self):
        return f"<ScriptMethod {self.schema}>"


class UnitFunction(ScriptFunction):
    """A function of a unit, `jit.CompilationUnit` or that of `jit.script`."""

    def __init__(self, unit: Any, name: str, original: Any = None) -> None:
        self._unit = unit
        self.qualified_name = name
        self.name = self.__name__ = name.rpartition(".")[2]
        self.__doc__ = getattr(original, "__doc__", None)
        self.__wrapped__ = original

    def __call__(self, *args, **kwargs):
        return self._unit.call(self.qualified_name, args, kwargs)

    @property
    def graph(self):
        """The function's graph."""
        return self._unit.graph(self.qualified_name)

    @property
    def inlined_graph(self):
        """A copy of the graph whose calls are what they call."""
        return inlined(self.graph)

    @property
    def code(self) -> str:
        """The function's text."""
        return self._unit.code(self.qualified_name)[0]

    @property
    def code_with_constants(self):
        """The text, and the constants that it names."""
        return with_constants(self._unit.code(self.qualified_name))

    @property
    def schema(self):
        """What the function takes and returns, as text."""
        return self._unit.schema(self.qualified_name)

    def graph_for(self, *args, **kwargs):
        """A copy of the graph as it is run: calls are what they call, constants are computed."""
        return optimised(self.graph)

    def _as_module(self):
        return ProgramModule._around(self._unit.module_of(self.qualified_name), {})

    def save(self, f, _extra_files=None):
        """Write the function as the archive of a module whose forward it is."""
        save(self._as_module(), f, _extra_files)

    def save_to_buffer(self, _extra_files=None) -> bytes:
        """The bytes of such an archive."""
        return _bytes_of(self._as_module(), _extra_files)

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError("ScriptFunction cannot be pickled: save() writes programs")

    def __repr__(self):
        return f"<ScriptFunction {self.schema}>"


class _ModuleMethod(ScriptMethod):
    """A method of a module, which takes over buffers that the program assigns."""

    def __init__(self, module, name) -> None:
        super().__init__(module._c, name)
        self._module = module
        self.__doc__ = getattr(
            getattr(module.__dict__.get("_original"), name, None), "__doc__", None
        )

    def __call__(self, *args, **kwargs):
        return self._module._run(self.name, args, kwargs)


class RecursiveScriptClass:
    """An object of a class of a program: attributes and methods are the program's."""

    _c: Any

    def __init__(self, handle: Any) -> None:
        object.__setattr__(self, "_c", handle)

    def __getattr__(self, name):
        if name in self._c.methods():
            return ScriptMethod(self._c, name)
        return _object_from(self._c.get(name))

    def __setattr__(self, name, value):
        self._c.set(name, value)

    def __repr__(self):
        return f"<{self._c.name} object of a program>"


def _state(module: Any) -> dict[str, Any]:
    return module.__dict__


def _forwarded(name):
    """A special method that is the program's, or that of the module that was compiled."""

    def method(self, *args):
        if name in self._program_methods:
            return self._c.call(name, args, {})
        original: Any = getattr(self.__dict__.get("_original"), name, None)
        if original is None:
            raise NotImplementedError(f"{self.original_name} has no compiled method {name}()")
        return original(self, *args)

    method.__name__ = name
    return method


class ProgramModule(RecursiveScriptModule):
    """A module of a program: from an archive, or compiled from Python.

    Parameters, buffers and submodules are the program's own: what Python changes, methods see, and
    the other way round. `forward` and the other methods run in C++, without the interpreter lock.
    """

    _c: Any
    _program_attributes: dict[str, str]
    _program_methods: frozenset[str]
    _program_constants: dict[str, Any]
    _program_assigned: list[tuple[ProgramModule, str]]
    _is_program = True
    _python_forward: Any = None  # of a ScriptModule whose forward is not compiled

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("modules of programs come from jit.load, jit.script and jit.trace")

    @classmethod
    def _around(cls, handle: Any, known: dict) -> ProgramModule:
        """The module of a handle, and those of all handles below it; `known`: those that exist."""
        if handle in known:
            return known[handle]
        self = known[handle] = object.__new__(cls)
        object.__setattr__(self, "__dict__", {})
        nn.Module.__init__(self)
        rows = handle.attributes()
        _state(self)["_c"] = handle
        _state(self)["_program_attributes"] = {name: kind for name, kind, _ in rows}
        _state(self)["_program_constants"] = handle.constants()
        for name, kind, _ in rows:
            if kind == "module":
                self._modules[name] = cls._around(handle.get(name), known)
            elif kind == "parameter":
                self._parameters[name] = self._parameter(name)
            elif kind == "buffer":
                self._buffers[name] = handle.get(name)
        self._methods_changed()
        if "training" in self._program_attributes:
            _state(self)["training"] = handle.get("training")
        before, behind = handle.hooks()
        for hook in before:
            self.register_forward_pre_hook(
                lambda module, given, hook=hook: module._c.call(hook, (given,), {})
            )
        for hook in behind:
            self.register_forward_hook(
                lambda module, given, result, hook=hook: module._c.call(hook, (given, result), {})
            )
        _wrappers[handle] = self
        return self

    def _methods_changed(self) -> None:
        """Takes over the methods that its class has got, and those of submodules."""
        assigned = [(self, name) for name in self._c.assigned() if name in self._buffers]
        for child in self._modules.values():
            assigned += child._program_assigned
        _state(self)["_program_methods"] = frozenset(self._c.methods())
        _state(self)["_program_assigned"] = assigned

    def _parameter(self, name):
        tensor = self._c.get(name)
        if tensor is None or isinstance(tensor, nn.Parameter):
            return tensor
        parameter = nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
        self._c.set(name, parameter)
        return parameter

    # ---- calls ----

    def forward(self, *args, **kwargs):
        """Runs the program's `forward`."""
        if "forward__1" in self._program_methods and args and isinstance(args[0], tuple):
            return self._run("forward__1", args, kwargs)  # a PackedSequence
        if "forward" not in self._program_methods and self._python_forward is not None:
            python: Any = type(self)._python_forward
            return python(self, *args, **kwargs)
        if "forward" not in self._program_methods:
            raise NotImplementedError(f"{self.original_name} has no compiled method forward()")
        return self._run("forward", args, kwargs)

    def _run(self, name, args, kwargs):
        result = self._c.call(name, args, kwargs)
        self._read_tensors()
        return result

    def _read_tensors(self):
        """Takes over buffers that the program has assigned anew."""
        for module, name in self._program_assigned:
            module._buffers[name] = module._c.get(name)

    __len__ = _forwarded("__len__")
    __contains__ = _forwarded("__contains__")

    def __getitem__(self, key):
        return self._modules[str(key)]

    def __iter__(self):
        return iter(self._modules.values())

    def __bool__(self):
        return True

    def _method(self, name):
        return _ModuleMethod(self, name)

    # ---- attributes ----

    def __getattr__(self, name):
        own = self.__dict__
        if name in own.get("_program_methods", ()):
            return _ModuleMethod(self, name)
        if f"__{name}_getter" in own.get("_program_methods", ()):
            return self._run(f"__{name}_getter", (), {})
        kind = own.get("_program_attributes", {}).get(name)
        if kind in _TABLES:
            return own[_TABLES[kind]][name]
        if kind is not None:
            return own["_c"].get(name)
        if name in own.get("_program_constants", ()):
            return own["_program_constants"][name]
        prop = getattr(own.get("_original"), name, None)
        if isinstance(prop, property):  # one that programs leave out
            return prop.__get__(self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        if f"__{name}_setter" in self._program_methods:
            self._run(f"__{name}_setter", (value,), {})
            return
        kind = self._program_attributes.get(name)
        if name in self._program_constants:
            raise RuntimeError(f"Can't set constant '{name}': programs are compiled with its value")
        if kind == "module":
            if not isinstance(value, ProgramModule):
                raise RuntimeError(f"the submodule '{name}' can only become another program's")
            self._c.set(name, value)
        elif kind is not None:
            self._c.set(name, value)
            if kind == "attribute" and name != "training":
                return
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._program_attributes, *self._program_methods})

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None:
                self._c.set(name, tensor)
        return self

    # ---- what it is called, shows and becomes ----

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return self._c.name.rpartition(".")[2]

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self):
        """The name of the class that was compiled."""
        return f"original_name={self.original_name}"

    @property
    def graph(self):
        """The graph of `forward`."""
        return self._c.graph("forward")

    @property
    def inlined_graph(self):
        """A copy of the graph of `forward` whose calls are what they call."""
        return inlined(self.graph)

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._c.code("forward")[0]

    @property
    def code_with_constants(self):
        """The text of `forward`, and the constants that it names."""
        return with_constants(self._c.code("forward"))

    def save(self, f, **kwargs):
        """Write the module as an archive; see `jit.save`."""
        save(self, str(f), **kwargs)

    def save_to_buffer(self, _extra_files=None) -> bytes:
        """The bytes of such an archive."""
        return _bytes_of(self, _extra_files)

    def __copy__(self):
        return type(self)._around(self._c.clone(False), {})

    def __deepcopy__(self, memo):
        made = memo[id(self)] = type(self)._around(self._c.clone(True), {})
        return made

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError(
            "ScriptModules cannot be saved using torch.save: torch.jit.save writes programs"
        )


# The modules of handles, so that code of Python that programs call meets the same module again.
_wrappers: weakref.WeakValueDictionary[Any, ProgramModule] = weakref.WeakValueDictionary()
ProgramModule.__name__ = ProgramModule.__qualname__ = "RecursiveScriptModule"


# ---- values that C++ asks for ----


# The classes of Python that classes of programs were compiled from, by the names of these.
python_classes: dict[str, Any] = {}


def _object_from(value):
    """A module or an object of a handle; what is no handle as it is."""
    if not isinstance(value, _C._ProgramObject):
        return value
    if value.is_module:
        return _wrappers.get(value) or ProgramModule._around(value, {})
    kind = python_classes.get(value.name)
    if kind is None:
        return RecursiveScriptClass(value)
    made = kind.__new__(kind)
    for name, _, _ in value.attributes():
        setattr(made, name, _object_from(value.get(name)))
    return made


def _class_of(value):
    """The name of the class of programs that a value's class of Python has become; ""."""
    return next((name for name, kind in python_classes.items() if kind is type(value)), "")


def _is_object_of(value, name):
    """Whether a value is of the class of Python that a class of programs was compiled from."""
    return type(value) is python_classes.get(name)


@functools.lru_cache(maxsize=1024)
def _tuple_class(name, fields):
    return namedtuple(name.rpartition(".")[2], fields)


def _named_tuple(name, fields, values):
    if name in python_classes:
        return python_classes[name](*values)
    return _tuple_class(name, fields)(*values)


@functools.lru_cache(maxsize=1024)
def _enum_class(name, members) -> Any:
    return enum.Enum(name.rpartition(".")[2], dict(members))


def _enum_member(name, members, member):
    if name in python_classes:
        return python_classes[name][member]
    return _enum_class(name, tuple(members))[member]


def save(module, file, _extra_files=None):
    """Write the archive of a module."""
    extra = dict(_extra_files or {})
    if isinstance(file, (str, os.PathLike)):
        path = os.fspath(file)
        name = os.path.splitext(os.path.basename(path))[0] or "archive"
        _C._save_archive(module, path, name, extra)
    else:
        _C._save_archive(module, file.write, "archive", extra)


def _bytes_of(module, _extra_files) -> bytes:
    place = io.BytesIO()
    save(module, place, _extra_files)
    return place.getvalue()


def load(file, map_location, extra_files):
    """The module of an archive; `extra_files`: a dict whose names get what the archive holds."""
    names = list(extra_files) if extra_files is not None else []
    if isinstance(file, (str, os.PathLike)):
        source = os.fspath(file)
        if not os.path.exists(source):
            raise ValueError(f"The provided filename {source} does not exist")
        if os.path.isdir(source):
            raise ValueError(f"The provided filename {source} is a directory")
    else:
        source = file.read()
    device = _C.device(map_location) if isinstance(map_location, str) else map_location
    import rushlight.ao.nn.quantized._programs  # noqa: F401  # the ops of quantised layers

    handle, contents = _C._load_archive(source, device, names)
    if extra_files is not None:
        extra_files.update(contents)
    return ProgramModule._around(handle, {})
