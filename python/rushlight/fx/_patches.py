"""Functions and methods in the place of others while a program is traced.

It knows proxies, but no tracer: `_symbolic_trace.py` says what is replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from rushlight import _C, nn
from rushlight.fx.proxy import Proxy
from rushlight.utils import _pytree as pytree

_tracing = 0


def is_fx_tracing() -> bool:
    """Whether a `Tracer` runs.

    Example:
        >>> torch.fx.is_fx_tracing()
        False
    """
    return _tracing > 0


def _proxies(values: Any) -> list[Proxy]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Proxy)]


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is recorded where it meets a proxy."""

    @functools.wraps(orig_fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = _proxies((args, kwargs))
        if not found:
            return orig_fn(*args, **kwargs)
        proxy = found[0].tracer.create_proxy("call_function", orig_fn, args, kwargs)
        proxy.node.meta["is_wrapped"] = True
        return proxy

    return wrapper


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """A method that is recorded where it meets a proxy."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = _proxies((args, kwargs))
        if not found:
            return orig_fn(*args, **kwargs)
        return found[0].tracer.create_proxy("call_method", name, args, kwargs)

    return wrapper


class _Patcher:
    """Puts functions in the place of others, and those back at the end of the `with`.

    What was replaced with `deduplicate` is not replaced a second time with it.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self.visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replaces a function in the names of a module."""
        if self._is_done(frame_dict.get(name), new_fn, deduplicate):
            return
        if name in frame_dict:
            self._undo.append(functools.partial(frame_dict.__setitem__, name, frame_dict[name]))
        else:  # a function that is built in
            self._undo.append(functools.partial(frame_dict.pop, name, None))
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replaces a method of a class."""
        if self._is_done(getattr(cls, name), new_fn, deduplicate):
            return
        if name == "__getattr__":
            self._undo.append(_restore_look_up)
        if name in vars(cls):
            self._undo.append(functools.partial(setattr, cls, name, vars(cls)[name]))
        else:
            self._undo.append(functools.partial(delattr, cls, name))
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether this is the first time that this object is seen."""
        known = id(thing) in self.visited
        self.visited.add(id(thing))
        return not known

    def revert_all_patches(self) -> None:
        """Puts everything back."""
        while self._undo:
            self._undo.pop()()

    @staticmethod
    def _is_done(old: Any, new: Any, deduplicate: bool) -> bool:
        new.__fx_already_patched = deduplicate
        return deduplicate and getattr(old, "__fx_already_patched", False)

    def __enter__(self) -> _Patcher:
        global _tracing
        _tracing += 1
        return self

    def __exit__(self, *_: object) -> None:
        global _tracing
        _tracing -= 1
        self.revert_all_patches()
        self.visited.clear()


def _public_functions(space: Mapping[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
    named = list(space.items())
    return [(name, x) for name, x in named if callable(x) and not name.startswith("_")]


def _autowrap_check(patcher: _Patcher, space: dict[str, Any], function_ids: set[int]) -> None:
    """Patches those functions of a module that are recorded whole."""
    for name, function in _public_functions(space) if patcher.visit_once(space) else ():
        if id(function) in function_ids:
            patcher.patch(space, name, _create_wrapped_func(function))


def _restore_look_up() -> None:
    """Python keeps the slow look-up in every class whose `__getattr__` was once another."""
    classes: list[type] = [nn.Module]
    while classes:
        cls = classes.pop()
        _C._look_up_directly(cls)
        classes.extend(cls.__subclasses__())
