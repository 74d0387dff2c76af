"""Tensors and submodules of a module by their names: read, replaced, removed."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight import _C

_MISSING = object()


def _check_name(name: str, what: str) -> None:
    if "." in name:
        raise KeyError(f'{what} name can\'t contain ".", got: {name!r}')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')


def _check_tensor(value, name):
    if value is not None and not isinstance(value, _C.TensorBase):
        raise TypeError(f"attribute `{name}`: {value} is not an instance of torch.Tensor")


def set_tensor(module, name, tensor):
    """Puts a tensor in the place of a parameter or buffer, or makes it an attribute."""
    _check_module(module)
    _check_name(name, "tensor")
    _check_tensor(tensor, name)
    for space in (module._parameters, module._buffers):
        if name in space:
            space[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module, name, tensor, allow_missing: bool = False):
    """Puts a tensor in the place of another and returns that one.

    Args:
        tensor: what comes there; a mark that an earlier call returned removes the name.
        allow_missing: a mark is returned where nothing was, instead of AttributeError.
    """
    _check_module(module)
    _check_name(name, "tensor")
    if tensor is not _MISSING:
        _check_tensor(tensor, name)
    for space in (module._parameters, module._buffers):
        if name in space:
            before = space[name]
            if tensor is _MISSING:
                del space[name]
            else:
                space[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING:
        _check_tensor(before, name)
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def swap_submodule(module, name, submodule):
    """Puts a module in the place of another and returns that one."""
    _check_module(module)
    _check_module(submodule)
    _check_name(name, "submodule")
    if name not in module._modules:
        raise KeyError(f"submodule {name!r} does not exist")
    before = module._modules[name]
    _check_module(before)
    module._modules[name] = submodule
    return before


def _check_module(module):
    from rushlight.nn.modules.module import Module

    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")


class NamedMemberAccessor:
    """The tensors and submodules of a module by their names below it."""

    def __init__(self, module) -> None:
        self.module = module

    def _place(self, name):
        """The module that holds a name, and the last part of the name."""
        path, _, leaf = name.rpartition(".")
        return self.get_submodule(path), leaf

    def get_submodule(self, name: str):
        """The submodule of a name."""
        try:
            return self.module.get_submodule(name)
        except AttributeError as error:
            kind = self.module._get_name()
            raise AttributeError(f"{kind} has no attribute `{name}`") from error

    def swap_submodule(self, path: str, value):
        """Puts a module in the place of another and returns that one."""
        holder, leaf = self._place(path)
        return swap_submodule(holder, leaf, value)

    def get_tensor(self, name: str):
        """The tensor of a name."""
        holder, leaf = self._place(name)
        try:
            tensor = getattr(holder, leaf)
        except AttributeError as error:
            raise AttributeError(f"{holder._get_name()} has no attribute `{name}`") from error
        _check_tensor(tensor, name)
        return tensor

    def set_tensor(self, name: str, value) -> None:
        """Puts a tensor in the place of another."""
        holder, leaf = self._place(name)
        set_tensor(holder, leaf, value)

    def del_tensor(self, name: str) -> None:
        """Removes a tensor."""
        holder, leaf = self._place(name)
        _check_tensor(getattr(holder, leaf), name)
        delattr(holder, leaf)

    def swap_tensor(self, name: str, value, allow_missing: bool = False):
        """Puts a tensor in the place of another and returns that one."""
        holder, leaf = self._place(name)
        return swap_tensor(holder, leaf, value, allow_missing)

    def get_tensors(self, names: Iterable[str]):
        """The tensors of several names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values) -> None:
        """Puts tensors in the places of others."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError("names and values must have the same length")
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors) -> None:
        """Puts tensors in the places of others, by names."""
        self.set_tensors(named_tensors.keys(), named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Removes several tensors."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values, allow_missing: bool = False):
        """Puts tensors in the places of others and returns those."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError("names and values must have the same length")
        pairs = zip(names, values, strict=True)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def swap_tensors_dict(self, named_tensors, allow_missing: bool = False):
        """Puts tensors in the places of others; those, by names, and the names that were new.

        What was put in before an error is taken out again.
        """
        before = {}
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, True)
            new = [name for name, tensor in before.items() if tensor is _MISSING]
            if new and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, new))}.")
        except Exception:
            self.swap_tensors(before, before.values(), allow_missing=True)
            raise
        return before, new

    def check_keys(self, keys: Iterable[str]):
        """Names of tensors that are missing in `keys`, and those there that are none; sorted."""
        given = set(keys)
        own = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True):
        """The module's parameters with their names."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True):
        """The module's buffers with their names."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True):
        """The module's parameters and buffers with their names."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True):
        """The module and those below it with their names."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
