"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList,
ParameterDict. The module containers keep their items in `_modules` under "0", "1", … or the keys.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, typename

from ..parameter import Parameter
from .module import Module, _addindent

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Deprecated: a plain module whose children are given as keywords.

    Args:
        kwargs: the children by name.

    Example:
        >>> list(torch.nn.Container(first=torch.nn.ReLU()).named_children())
        [('first', ReLU())]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


_HOLDS = ": it holds modules and calls none of them; "


def _item_index(index: int, length: int) -> int:
    """A non-negative index; raises IndexError if it is out of range."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range: there are {length} modules, from 0")
    return index % length


class _Sequence(Module):
    """Modules one after the other, under "0", "1", … unless they were given names."""

    def _key(self, index: int) -> str:
        keys = self._modules
        return next(islice(keys, _item_index(index, len(keys)), None))

    def _number(self, modules):
        """Take these modules as the only ones, under new numbers."""
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __getitem__(self, index):
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        if isinstance(index, slice):
            for key in list(self._modules)[index]:
                delattr(self, key)
        else:
            delattr(self, self._key(index))
        self._number(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Module:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add the modules of an iterable at the end; returns self."""
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key):
        """Remove the module at an index and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Sequence):
    """Calls its modules one after the other, each with the result of the one before.

    Args:
        *args: the modules, or one OrderedDict of names to modules.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> net(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
        >>> net[0]
        Linear(in_features=3, out_features=8, bias=True)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: dict = args[0]
        else:
            named = {str(i): module for i, module in enumerate(args)}
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, input: Tensor):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def __add__(self, other):
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other):
        return self.extend(_sequential(other))

    def __mul__(self, times):
        _check_times(times)
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times):
        _check_times(times)
        modules = list(self)
        for _ in range(times - 1):
            self.extend(modules)
        return self

    def insert(self, index, module):
        """Insert a module before `index`; returns self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._number(modules)
        return self


def _sequential(other):
    """What can be added to a Sequential, checked."""
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return other


def _check_times(times):
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {Sequential}")


def _collapse(lines):
    """Runs of equal texts as (first index, last index, text)."""
    runs: list[list] = []
    for i, line in enumerate(lines):
        if runs and runs[-1][2] == line:
            runs[-1][1] = i
        else:
            runs.append([i, i, line])
    return runs


class ModuleList(_Sequence):
    """A list of modules, all of them registered.

    Args:
        modules: an iterable of modules.

    Example:
        >>> layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    _instead_of_calling = _HOLDS + "loop over it where it is used, or take a Sequential"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return super().__getitem__(index)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def insert(self, index, module):
        """Insert a module before `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.clear()
        super().extend(modules)

    def extend(self, modules):
        """Append the modules of an iterable; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable of modules, not "
                + type(modules).__name__
            )
        return super().extend(modules)

    def __repr__(self) -> str:
        """Like a module's, with runs of equal items on one line."""
        lines = []
        for first, last, text in _collapse([repr(module) for module in self]):
            name = f"({first})" if first == last else f"({first}-{last})"
            count = "" if first == last else f"{last - first + 1} x "
            lines.append(_addindent(f"{name}: {count}{text}", 2))
        if not lines:
            return self._get_name() + "()"
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules, all of them registered, in the order of insertion.

    Args:
        modules: a mapping of names to modules, or pairs of them.

    Example:
        >>> heads = torch.nn.ModuleDict(
        ...     {"cat": torch.nn.Linear(4, 1), "dog": torch.nn.Linear(4, 1)}
        ... )
        >>> heads["cat"](torch.zeros(2, 4)).shape, list(heads)
        (torch.Size([2, 1]), ['cat', 'dog'])
    """

    _instead_of_calling = _HOLDS + "call one of them by its name"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all items."""
        self._modules.clear()

    def pop(self, key):
        """Remove a key and return its module."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        """The keys."""
        return self._modules.keys()

    def items(self):
        """(key, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the items of a mapping or an iterable of pairs; later ones replace earlier ones."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(items, who):
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(items, Iterable):
        plural = "ParametersDict" if who == "ParameterDict" else who  # PyTorch's spelling
        raise TypeError(
            f"{plural}.update should be called with a dict or an iterable of pairs, not "
            + type(items).__name__
        )
    if isinstance(items, (Mapping, ModuleDict, ParameterDict)):
        yield from items.items()
        return
    for i, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{who} update sequence element #{i} should be a pair (name, value), not of type "
                + type(pair).__name__
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{who} update sequence element #{i} has length {len(pair)}, not that of a pair"
            )
        yield pair


def _as_parameter(value):
    """A plain tensor becomes a parameter; anything else stays as it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype)


def _describe(key, value, kind_of):
    """A line of the text of a parameter container; `kind_of` gives the name of the dtype."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    shape = "x".join(str(size) for size in value.size())
    place = f" ({value.device})" if value.device.type != "cpu" else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {kind} containing: [{kind_of(value)} of size {shape}{place}]"


class ParameterList(Module):
    """A list of parameters, all of them registered; tensors become parameters.

    Args:
        values: an iterable of parameters, tensors or other objects.

    Example:
        >>> weights = torch.nn.ParameterList([torch.zeros(2), torch.zeros(3)])
        >>> [weight.requires_grad for weight in weights]
        [True, True]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            result = type(self)()
            for i in range(len(self))[index]:
                result.append(self[i])
            return result
        return getattr(self, str(_item_index(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_item_index(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Append a value; returns self."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values):
        """Append the values of an iterable; returns self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable of values, not "
                + type(values).__name__
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_describe(i, value, _dtype) for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, all of them registered; tensors become parameters.

    Args:
        parameters: a mapping of names to parameters, tensors or other objects, or pairs of them.

    Example:
        >>> weights = torch.nn.ParameterDict({"scale": torch.ones(2)})
        >>> weights["scale"].requires_grad, list(weights)
        (True, ['scale'])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: int | str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"ParameterDict: {key!r} cannot be used as a key: these are names of parameters, "
                f"strings, not of type {type(key).__name__}"
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._attribute(key))

    def __setitem__(self, key, value):
        name = self._attribute(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        """A new dict with the same values."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key, default=None):
        """The value of a key, which is set to `default` if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove all items."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Remove a key and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the last item and return its key and value."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of a key, or `default` where it is missing."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys, default=None):
        """A new dict with these keys and one value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """(key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add the items of a mapping or an iterable of pairs; later ones replace earlier ones."""
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_describe(key, value, typename) for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")
