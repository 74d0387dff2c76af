"""What a step depends on beside its arguments, and whether it still is as it was.

A walk from the step through what its program names (variables, closures, modules, optimisers, other
objects, lists and dicts) finds it; a snapshot in C++ holds it and compares it before each replay.
"""

from __future__ import annotations

import argparse
import functools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C, Tensor, nn
from rushlight.optim import optimizer as optimizers

_MOST_ENTRIES = 10_000  # of a list or dict that is looked into
_MOST_PARTS = 50_000
_NAMESPACES = (argparse.Namespace, types.SimpleNamespace)
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))
_STANDARD = sysconfig.get_path("stdlib")
_HOOKS_OF_ALL = [
    value
    for module in (nn.modules.module, optimizers)
    for name, value in vars(module).items()
    if name.startswith("_global_") and isinstance(value, dict)
]


@functools.cache
def _is_standard(package: str) -> bool:
    """Whether a package is one of Python's own."""
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in sys.stdlib_module_names and (not file or file.startswith(_STANDARD))


def _package_of(value: Any) -> str:
    """The package that defines a function, a class or a module."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return (name or "builtins").partition(".")[0]


def _is_of_a_program(value: Any) -> bool:
    """Whether a function, a class or a module is neither Python's nor this package's."""
    package = _package_of(value)
    return package not in ("rushlight", "torch") and not _is_standard(package)


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Names of variables and attributes that a function, and those within it, use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


class _Walk:
    """Finds the objects that a program can reach from some, nearest first."""

    def __init__(self, roots: list[Any]) -> None:
        self.parts: list[tuple[str, Any, str | None]] = []
        self._seen: dict[int, Any] = {}
        self._named: set[tuple[int, str]] = set()  # variables, by their dict
        self._todo: deque[Any] = deque()
        for value in (*roots, *_HOOKS_OF_ALL):
            self._reach(value)
        while self._todo and len(self.parts) < _MOST_PARTS:
            self._look_into(self._todo.popleft())

    def _reach(self, *values: Any) -> None:
        for value in values:
            if not isinstance(value, _PLAIN) and id(value) not in self._seen:
                self._seen[id(value)] = value
                self._todo.append(value)

    def _look_into(self, value: Any) -> None:
        if isinstance(value, Tensor):
            if value.grad_fn is not None:  # not what a step begins with; it would live on
                return
            self.parts.append(("tensor", value, None))
            if type(value) in (Tensor, nn.Parameter):
                self._reach(value._backward_hooks, value._post_accumulate_grad_hooks)
        elif isinstance(value, (dict, list, set)):
            self._look_into_container(value)
        elif isinstance(value, (tuple, frozenset)):
            self._reach(*value)
        elif isinstance(value, types.FunctionType):
            self._look_into_function(value)
        elif isinstance(value, types.MethodType):
            self._reach(value.__self__, value.__func__)
        elif isinstance(value, functools.partial):
            self._reach(value.func, value.args, value.keywords)
        elif isinstance(value, (staticmethod, classmethod)):
            self._reach(value.__func__)
        elif isinstance(value, property):
            self._reach(value.fget)
        elif isinstance(value, type):
            if _is_of_a_program(value):
                self.parts.append(("members", value, None))
                self._reach(*vars(value).values(), *value.__mro__)
        elif not isinstance(value, types.ModuleType):
            self._look_into_instance(value)

    def _look_into_container(self, value: Any) -> None:
        if len(value) > _MOST_ENTRIES:
            return
        if isinstance(value, dict):
            self.parts.append(("dict", value, None))
            self._reach(*value.keys(), *value.values())
        else:
            self.parts.append(("list" if isinstance(value, list) else "set", value, None))
            self._reach(*value)

    def _look_into_function(self, function: Any) -> None:
        for cell in function.__closure__ or ():
            self.parts.append(("cell", cell, None))
            try:
                self._reach(cell.cell_contents)
            except ValueError:  # nothing was assigned to it yet
                continue
        self._reach(function.__defaults__, function.__kwdefaults__, function.__dict__)
        if _is_of_a_program(function):
            names = dict.fromkeys(_names_in(function.__code__))
            self._look_up(function.__globals__, names)

    def _look_up(self, variables: dict[str, Any], names: dict[str, None]) -> None:
        """Follow names into the variables of a module, and from there into modules of a program."""
        todo, seen = [variables], {id(variables)}
        while todo:
            variables = todo.pop()
            for name in names:
                if name not in variables:
                    continue
                value = variables[name]
                if (id(variables), name) not in self._named:
                    self._named.add((id(variables), name))
                    self.parts.append(("name", variables, name))
                    self._reach(value)
                if isinstance(value, types.ModuleType) and _is_of_a_program(value):
                    inner = vars(value)
                    if id(inner) not in seen:
                        seen.add(id(inner))
                        todo.append(inner)

    def _look_into_instance(self, value: Any) -> None:
        kind = type(value)
        if _is_standard(_package_of(kind)) and kind not in _NAMESPACES:
            return
        if kind.__module__.startswith(f"{__package__}._"):  # a step that is captured or compiled
            self._reach(getattr(value, "step", None))
            return
        if kind.__module__.startswith("rushlight.utils.data"):
            return  # what loads data goes on by itself
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self.parts.append(("class", value, None))
            self._reach(attributes, kind)


# Where a number is: an object, the name or index of its part (None of a cell), and the index within
# that where it is a tuple.
Place = tuple[Any, Any, "int | None"]


def value_at(place: Place) -> Any:
    owner, name, index = place
    if isinstance(owner, types.CellType):
        found = owner.cell_contents
    else:
        found = vars(owner)[name] if isinstance(owner, type) else owner[name]
    return found if index is None else found[index]


class Surroundings:
    """What a step met beside its arguments."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []  # that can be reached
        self._roots: dict[int, Any] = {}
        self._snapshot: Any = None

    def watch(self, step: Callable[[], Any]) -> None:
        """Run a step and note the modules and optimisers that it calls."""

        def on_module(module: nn.Module, args: Any) -> None:
            self._roots[id(module)] = module

        def on_optimizer(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._roots[id(optimizer)] = optimizer

        handles = [
            nn.modules.module.register_module_forward_pre_hook(on_module),
            optimizers.register_optimizer_step_pre_hook(on_optimizer),
        ]
        try:
            step()
        finally:
            for handle in handles:
                handle.remove()

    def keep(self, roots: list[Any]) -> Surroundings:
        """Note how all is now that can be reached from what was met, and from some objects."""
        parts = _Walk([*roots, *self._roots.values()]).parts
        self._snapshot = _C._snapshot(parts)
        self.tensors = [value for kind, value, _ in parts if kind == "tensor"]
        return self

    def free_what_differs(self, before: Surroundings) -> None:
        """What a step that does the same found otherwise does not matter to it."""
        _C._free_what_differs(self._snapshot, before._snapshot)

    def places_of(self, then: float, now: float, before: Surroundings) -> list[Place]:
        """Where a number is found that was another one when `before` was noted."""
        return _C._places_of_number(self._snapshot, before._snapshot, then, now)

    def restore(self) -> None:
        """Put all back that has changed, but what tensors hold."""
        _C._restore_snapshot(self._snapshot)

    def is_as_kept(self) -> bool:
        return _C._snapshot_change(self._snapshot) is None

    def change(self) -> str:
        """What has changed, in words; empty for nothing."""
        found = _C._snapshot_change(self._snapshot)
        if found is None:
            return ""
        owner, name = found
        what = f"an entry of a {type(owner).__name__}" if name is None else f"{name!r}"
        return f"{what} has changed"
