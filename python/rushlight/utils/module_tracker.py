"""`ModuleTracker`: in which modules the program is, forward and backward."""

from __future__ import annotations

import weakref

from rushlight import _C
from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.autograd.variable import Variable
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.utils import _pytree

__all__ = ["ModuleTracker"]

_OUTSIDE = "Global"


class ModuleTracker:
    """While its block runs, `parents` holds the names of the modules that run, and "Global".

    In backward these are the modules whose results' gradients are there and whose arguments' are
    not yet. A module is called by its place below the first module that was met, which is called
    by its class.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {_OUTSIDE}
        self._names: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._cleans_up = False

    @property
    def is_bw(self) -> bool:
        """Whether backward runs."""
        return _C._backward_run() != 0

    def __enter__(self):
        self._hooks = (
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        )
        return self

    def __exit__(self, *error) -> None:
        for hook in self._hooks:
            hook.remove()

    def _name_of(self, module):
        if module not in self._names:
            name = type(module).__name__
            for path, below in module.named_modules():
                self._names.setdefault(below, f"{name}.{path}" if path else name)
        return self._names[module]

    def _in_backward(self, values, change):
        """Calls `change` as soon as the gradients of all tensors among some values are there."""
        tensors = [
            value
            for value in _pytree.tree_leaves(values)
            if isinstance(value, _C.TensorBase) and value.requires_grad
        ]
        if tensors and _C.is_grad_enabled():

            def hook(_):
                if not self._cleans_up:
                    self._cleans_up = True
                    Variable._execution_engine.queue_callback(self._end_of_backward)
                change()

            register_multi_grad_hook(tensors, hook)

    def _end_of_backward(self):
        self._cleans_up = False
        self.parents = {_OUTSIDE}

    def _enter_module(self, module, args):
        name = self._name_of(module)
        self.parents.add(name)
        self._in_backward(args, lambda: self.parents.discard(name))

    def _leave_module(self, module, args, result):
        name = self._name_of(module)
        self.parents.discard(name)
        self._in_backward(result, lambda: self.parents.add(name))
