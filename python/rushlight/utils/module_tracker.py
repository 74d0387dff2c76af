"""`ModuleTracker`: which modules are running, in forward or in backward.

>>> with ModuleTracker() as tracker:
...     model(x)  # in there, tracker.parents is {"Global", "Net", "Net.layer1", ...}
"""

from __future__ import annotations

import bisect
import weakref
from typing import Any

import rushlight
from rushlight import nn
from rushlight._C import _backward_run, _current_autograd_node
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]

# How many changes of what runs are kept for backward.
_NOTES = 1 << 20


def _running() -> int | None:
    """The number of the node whose backward runs."""
    node = _current_autograd_node()
    return None if node is None else node._sequence_nr()


class ModuleTracker:
    """Tracks, inside its `with` block, which modules are running.

    A module is called by its place in the one that was called first, whose name is its class's:
    "Net.layer1.conv". In backward the modules are those whose forward made the node that runs.

    Example:
        >>> from rushlight.utils.module_tracker import ModuleTracker
        >>> running, net = ModuleTracker(), torch.nn.Sequential(torch.nn.Linear(2, 2))
        >>> hook = net[0].register_forward_hook(lambda *_: print(sorted(running.parents)))
        >>> with running:
        ...     _ = net(torch.ones(1, 2))
        ['Global', 'Sequential']
    """

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._forget()

    def _forget(self) -> None:
        # What runs forward: modules, their names, and the node that ran when they were called.
        self._stack: list[tuple[nn.Module, tuple[str, ...], int | None]] = []
        # Nodes are numbered as they are made; from each of these numbers on, what ran.
        self._numbers: list[int] = []
        self._ran: list[tuple[str, ...]] = []

    def __enter__(self) -> ModuleTracker:
        self._forget()
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *args: Any) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def is_bw(self) -> bool:
        """Whether backward is running."""
        return _backward_run() != 0

    @property
    def parents(self) -> set[str]:
        """The names of the modules that are running, and "Global"."""
        names, called_by = self._stack[-1][1:] if self._stack else ((), None)
        node = _running()
        # A module that is called in backward, as a checkpoint does, is no part of the node's.
        backward = () if node is None or node == called_by else self._modules_of_node(node)
        return {"Global", *names, *backward}

    def _modules_of_node(self, node: int) -> tuple[str, ...]:
        """What ran when a node was made."""
        i = bisect.bisect_right(self._numbers, node)
        return self._ran[i - 1] if i else ()

    def _name_of(self, module: nn.Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{path}" if path else root)
        return self._names[module]

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        name, node = self._name_of(module), _running()
        if self._stack:
            around = self._stack[-1][1]
        else:  # a checkpoint runs a part again, in the backward of all that it belongs to
            around = () if node is None else _containers(name)
        self._stack.append((module, (*around, name), node))
        self._note()

    def _leave_module(self, module: nn.Module, args: Any, result: Any) -> None:
        if self._stack and self._stack[-1][0] is module:
            self._stack.pop()
            self._note()

    def _note(self) -> None:
        """Note that what runs has changed, under the number of a node made for it."""
        with rushlight.enable_grad():
            made = rushlight.empty(0, requires_grad=True).view(0).grad_fn
        if made is not None:
            if len(self._numbers) == _NOTES:  # of graphs that are long gone
                del self._numbers[: _NOTES // 2], self._ran[: _NOTES // 2]
            self._numbers.append(made._sequence_nr())
            self._ran.append(self._stack[-1][1] if self._stack else ())


def _containers(name: str) -> tuple[str, ...]:
    """The modules that one belongs to, by name: those of "a.b.c" are "a" and "a.b"."""
    parts = name.split(".")
    return tuple(".".join(parts[:i]) for i in range(1, len(parts)))
