"""A module as a tree: walking over what it holds, and finding parts by dotted names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import _C, Tensor

from ..parameter import Parameter

_ABSENT = object()


def _child(module, name):
    """The module that is an attribute of another."""
    child = getattr(module, name, _ABSENT)
    if child is _ABSENT:
        parts = ", ".join(module._modules) or "none"
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`; its parts: {parts}")
    if not isinstance(child, _C._ModuleBase):
        raise AttributeError(f"`{name}` is not an nn.Module")
    return child


class ModuleTree(_C._ModuleBase):
    """The base of `Module` for its members: three dicts, and no other state."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, member) of what `get_members` yields for each module, None left out."""
        seen = set()
        if recurse:
            parts = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            parts = [(prefix, self)]
        for place, module in parts:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{place}.{name}" if place else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Pairs (dotted name, parameter) of this module and, with `recurse`, of its submodules."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs (dotted name, buffer) of this module and, with `recurse`, of its submodules."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Any]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Pairs (name, module) of the direct submodules, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all its submodules."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Pairs (dotted name, module) of this module, whose name is `prefix`, and of its
        submodules.
        """
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        start = prefix and prefix + "."
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, start + name, remove_duplicate)

    def get_submodule(self, target: str) -> Any:
        """The module with a dotted name; this module for the empty string."""
        module = self
        for name in target.split(".") if target else ():
            module = _child(module, name)
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace the module with a dotted name; with `strict` it must exist."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, _C._ModuleBase):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), _C._ModuleBase):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _owner_of(self, target):
        """The module that has a dotted name's last part, and that part."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name."""
        module, name = self._owner_of(target)
        parameter = getattr(module, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name."""
        module, name = self._owner_of(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    def get_extra_state(self) -> Any:
        """State beside tensors for `state_dict`; override it together with `set_extra_state`."""
        raise RuntimeError(
            f"{type(self).__name__} has no extra state: define get_extra_state, and its setter"
        )

    def set_extra_state(self, state: Any) -> None:
        """Load the state that `get_extra_state` returned."""
        raise RuntimeError(
            f"{type(self).__name__} has no extra state: define set_extra_state, and its getter"
        )
