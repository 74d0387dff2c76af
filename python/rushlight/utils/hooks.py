"""Handles of registered hooks, and the implementation of a module's backward hooks.

`RemovableHandle` is what every `register_*hook` returns. `BackwardHook` surrounds one call of a
module with two identity functions of autograd, one on its inputs and one on its outputs, whose
backward passes run the module's hooks.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

import rushlight
from rushlight._warnings import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rushlight.nn import Module

__all__ = ["BackwardHook", "RemovableHandle"]


class RemovableHandle:
    """Removes a hook from its dict: by `remove()` or at the end of a `with` block.

    Args:
        hooks_dict: the dict that the hook is put into afterwards.
        extra_dict: further dicts that have an entry for the hook.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> handle = layer.register_forward_hook(lambda module, args, result: print("called"))
        >>> _ = layer(torch.zeros(1, 1))
        called
        >>> handle.remove()
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self.hooks_dict_ref, *more = map(weakref.ref, (hooks_dict, *extra))
        self.extra_dict_ref = tuple(more)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id = self.id + 1

    def remove(self):
        """Remove the hook; the second call is a no-op."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        extra = tuple(reference() for reference in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extra)

    def __setstate__(self, state):
        hooks, self.id, extra = state
        # A dict that was not kept alive elsewhere is replaced by an empty one, so `remove` works.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.remove()


_boundary = None


def _boundary_function() -> type:
    """The identity function whose backward hands the gradients to a callback; made on first use."""
    global _boundary
    if _boundary is None:

        class ModuleBoundary(rushlight.autograd.Function):
            @staticmethod
            def forward(ctx, callback, zeros, *tensors):
                ctx.callback = callback
                ctx.set_materialize_grads(zeros)
                ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
                return tensors

            @staticmethod
            def backward(ctx, *grads):
                return (None, None, *ctx.callback(grads))

        _boundary = ModuleBoundary
    return _boundary


class BackwardHook:
    """The backward hooks of one call of `module`.

    For an example see `nn.Module`, whose `register_full_backward_hook` makes one.

    Args:
        user_hooks: called with `(module, grad_input, grad_output)` when the gradients with respect
            to the inputs are known; a result that is not None replaces `grad_input`.
        user_pre_hooks: called with `(module, grad_output)` before the module's backward pass; a
            result that is not None replaces `grad_output`.
        module: the module.
    """

    def __init__(
        self,
        module: Module,
        user_hooks: Sequence[Callable[..., Any]],
        user_pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.inputs_watched = False
        self.n_inputs = 0

    def setup_input_hook(self, args):
        """Return the arguments with their tensors passed through the first boundary node."""
        self.n_inputs = len(args)
        result, self.inputs_watched = self._watch(args, self._inputs_done, zeros=True)
        return result

    def setup_output_hook(self, result):
        """Return the module's result, a tensor or a tuple, passed through the second boundary
        node.
        """
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        watched, _ = self._watch(results, self._outputs_known, zeros=False)
        return watched[0] if single else watched

    def _watch(self, values, hook, zeros):
        """The values, passed through a node that calls `hook`: with zeros or None for gradients
        that are not there.
        """
        places = [i for i, v in enumerate(values) if isinstance(v, rushlight.Tensor)]
        wanted = rushlight.is_grad_enabled() and any(values[i].requires_grad for i in places)
        if not wanted:
            return values, False

        def callback(grads):
            full = [None] * len(values)
            for i, grad in zip(places, grads, strict=False):
                full[i] = grad
            full = hook(tuple(full))
            return [full[i] for i in places]

        passed = _boundary_function().apply(callback, zeros, *[values[i] for i in places])
        result = list(values)
        for i, tensor in zip(places, passed, strict=False):
            result[i] = tensor
        if type(values) is tuple:
            return tuple(result), True
        return type(values)(*result), True  # a named tuple

    def _outputs_known(self, grads):
        for hook in self.user_pre_hooks:
            grads = _replace_gradients(
                hook(self.module, grads), grads, "Backward pre hook", "grad_output"
            )
        self.grad_outputs = grads
        if not self.inputs_watched:
            warn(
                "Full backward hook is firing when gradients of the outputs are there, because "
                "no inputs require gradients: the hook sees no grad_input.",
            )
            nothing = (None,) * self.n_inputs
            for hook in self.user_hooks:
                result = hook(self.module, nothing, grads)
                if result is not None and any(r is not None for r in _as_tuple(result)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient: there is no "
                        "grad_input to replace, so it returns None."
                    )
            self.grad_outputs = None
        return grads

    def _inputs_done(self, grads: tuple[rushlight.Tensor, ...]) -> tuple[rushlight.Tensor, ...]:
        if self.grad_outputs is None:  # backward of backward, which passes the output by
            return grads
        for hook in self.user_hooks:
            result = hook(self.module, grads, self.grad_outputs)
            grads = _replace_gradients(result, grads, "Backward hook", "grad_input")
        self.grad_outputs = None
        return grads


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _replace_gradients(result, grads, who, what):
    """The gradients that a hook returned, or the old ones where it returned None."""
    if result is None:
        return grads
    result = _as_tuple(result)
    if len(result) != len(grads):
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(result)}, "
            f"but expected {len(grads)}"
        )
    for grad in result:
        if grad is not None and not isinstance(grad, rushlight.Tensor):
            raise TypeError(
                f"expected Variable or None, but hook returned {type(grad).__name__!r}: {who} "
                f"returns one gradient for each of {what}"
            )
    return result
