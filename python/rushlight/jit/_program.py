"""Programs of TorchScript in Python: modules and objects of archives, which run in C++."""

from __future__ import annotations

import enum
import functools
import os
import pickle
from collections import namedtuple
from typing import Any

from rushlight import _C, nn
from rushlight.jit import RecursiveScriptModule, ScriptFunction

_TABLES = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}


class ScriptMethod:
    """A method of a program, bound to its object."""

    def __init__(self, handle: Any, name: str) -> None:
        self._handle = handle
        self.name = name

    def __call__(self, *args, **kwargs):
        return self._handle.call(self.name, args, kwargs)

    @property
    def graph(self):
        """The method's graph, as text."""
        return self._handle.graph(self.name)

    @property
    def code(self) -> str:
        """The method's text."""
        return self._handle.code(self.name)[0]

    @property
    def schema(self):
        """What the method takes and returns, as text."""
        return self._handle.schema(self.name)

    def __repr__(self):
        return f"<ScriptMethod {self.schema}>"


class UnitFunction(ScriptFunction):
    """A function of a `CompilationUnit`."""

    def __init__(self, unit: Any, name: str) -> None:
        self._unit = unit
        self.name = name

    def __call__(self, *args, **kwargs):
        return self._unit.call(self.name, args, kwargs)

    @property
    def graph(self):
        """The function's graph, as text."""
        return self._unit.text(self.name, "graph")

    @property
    def code(self) -> str:
        """The function's text."""
        return self._unit.text(self.name, "code")

    @property
    def schema(self):
        """What the function takes and returns, as text."""
        return self._unit.text(self.name, "schema")

    def __repr__(self):
        return f"<ScriptFunction {self.schema}>"


class _ModuleMethod(ScriptMethod):
    """A method of a module, which takes over buffers that the program assigns."""

    def __init__(self, module, name) -> None:
        super().__init__(module._c, name)
        self._module = module

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


def _forwarded(name):
    """A special method that the program's method of the same name carries out."""

    def method(self, *args):
        if name not in self._program_methods:
            raise NotImplementedError(f"{self.original_name} has no compiled method {name}()")
        return self._c.call(name, args, {})

    method.__name__ = name
    return method


class ProgramModule(RecursiveScriptModule):
    """A module from an archive.

    Parameters, buffers and submodules are the program's own: what Python changes, methods see, and
    the other way round. `forward` and the other methods run in C++, without the interpreter lock.
    """

    _c: Any
    _program_attributes: dict[str, str]
    _program_methods: frozenset[str]
    _program_constants: dict[str, Any]
    _program_assigned: list[tuple[ProgramModule, str]]

    def __init__(self, *args, **kwargs) -> None:
        raise RuntimeError("modules of programs come from jit.load")

    @classmethod
    def _around(cls, handle: Any, known: dict) -> ProgramModule:
        """The module of a handle, and those of all handles below it; `known`: those that exist."""
        if handle in known:
            return known[handle]
        self = known[handle] = object.__new__(cls)
        object.__setattr__(self, "__dict__", {})
        nn.Module.__init__(self)
        rows = handle.attributes()
        self.__dict__["_c"] = handle
        self.__dict__["_program_attributes"] = {name: kind for name, kind, _ in rows}
        self.__dict__["_program_methods"] = frozenset(handle.methods())
        self.__dict__["_program_constants"] = handle.constants()
        for name, kind, _ in rows:
            if kind == "module":
                self._modules[name] = cls._around(handle.get(name), known)
            elif kind == "parameter":
                self._parameters[name] = self._parameter(name)
            elif kind == "buffer":
                self._buffers[name] = handle.get(name)
        assigned = [(self, name) for name in handle.assigned() if name in self._buffers]
        for child in self._modules.values():
            assigned += child._program_assigned
        self.__dict__["_program_assigned"] = assigned
        if "training" in self._program_attributes:
            self.__dict__["training"] = handle.get("training")
        return self

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

    # ---- attributes ----

    def __getattr__(self, name):
        own = self.__dict__
        if name in own.get("_program_methods", ()):
            return _ModuleMethod(self, name)
        kind = own.get("_program_attributes", {}).get(name)
        if kind in _TABLES:
            return own[_TABLES[kind]][name]
        if kind is not None:
            return own["_c"].get(name)
        if name in own.get("_program_constants", ()):
            return own["_program_constants"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        kind = self._program_attributes.get(name)
        if name in self._program_constants:
            raise AttributeError(f"Cannot mutate TorchScript constant value: '{name}'")
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
        """The graph of `forward`, as text."""
        return self._c.graph("forward")

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._c.code("forward")[0]

    @property
    def code_with_constants(self):
        """The text of `forward`, and a dict of the constants that it names."""
        text, constants = self._c.code("forward")
        return text, {f"c{i}": value for i, value in enumerate(constants)}

    def save(self, f, **kwargs):
        """Write the module as an archive; see `jit.save`."""
        save(self, str(f), **kwargs)

    def __copy__(self):
        return type(self)._around(self._c.clone(False), {})

    def __deepcopy__(self, memo):
        made = memo[id(self)] = type(self)._around(self._c.clone(True), {})
        return made

    def __reduce_ex__(self, protocol):
        raise pickle.PickleError(
            "ScriptModules cannot be saved using torch.save: torch.jit.save writes programs"
        )


ProgramModule.__name__ = ProgramModule.__qualname__ = "RecursiveScriptModule"


# ---- values that C++ asks for ----


def _object_from(value):
    """A module or an object of a handle; what is no handle as it is."""
    if not isinstance(value, _C._ProgramObject):
        return value
    if value.is_module:
        return ProgramModule._around(value, {})
    return RecursiveScriptClass(value)


@functools.lru_cache(maxsize=1024)
def _tuple_class(name, fields):
    return namedtuple(name.rpartition(".")[2], fields)


def _named_tuple(name, fields, values):
    return _tuple_class(name, fields)(*values)


@functools.lru_cache(maxsize=1024)
def _enum_class(name, members) -> Any:
    return enum.Enum(name.rpartition(".")[2], dict(members))


def _enum_member(name, members, member):
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
    handle, contents = _C._load_archive(source, device, names)
    if extra_files is not None:
        extra_files.update(contents)
    return ProgramModule._around(handle, {})
