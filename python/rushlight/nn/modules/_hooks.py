"""Hooks around a module's forward pass: the ones of all modules, and the call that runs them.

`Module.__call__` comes here only when some hook exists. The registering methods of a single module
are in `module.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.utils.hooks import BackwardHook, RemovableHandle

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

# Hooks of every module, in the order of registration; `module.py` tests the four that a call meets.
global_forward_hooks: OrderedDict = OrderedDict()
global_forward_hooks_with_kwargs: OrderedDict = OrderedDict()
global_forward_hooks_always_called: OrderedDict = OrderedDict()
global_forward_pre_hooks: OrderedDict = OrderedDict()
global_backward_hooks: OrderedDict = OrderedDict()
global_backward_pre_hooks: OrderedDict = OrderedDict()
global_buffer_registration_hooks: OrderedDict = OrderedDict()
global_module_registration_hooks: OrderedDict = OrderedDict()
global_parameter_registration_hooks: OrderedDict = OrderedDict()

# Whether the hooks in `global_backward_hooks` are full ones; None while there are none.
global_backward_hooks_are_full: bool | None = None


def mixed_backward_hooks(owner: str) -> str:
    """What is wrong where backward hooks of both kinds meet."""
    return (
        f"{owner}: regular backward hooks and full backward hooks cannot be used together; "
        "remove those of one kind first"
    )


def add_hook(hooks, hook: Callable[..., Any], *, prepend: bool = False, marks=()):
    """Put a hook into a dict, and its id into each marking dict; returns its handle."""
    handle = RemovableHandle(hooks, extra_dict=marks or None)
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]):
    """Call `hook(module, name, buffer)` whenever a module registers a buffer.

    Args:
        hook: may return another buffer.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return add_hook(global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]):
    """Call `hook(module, name, submodule)` whenever a module registers a submodule.

    Args:
        hook: may return another submodule.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return add_hook(global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]):
    """Call `hook(module, name, parameter)` whenever a module registers a parameter.

    Args:
        hook: may return another parameter.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return add_hook(global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward pass of every module.

    Args:
        hook: may return new arguments.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return add_hook(global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward pass of every module.

    Args:
        hook: may return a new output.
        with_kwargs: call `hook(module, args, kwargs, output)`.
        always_call: also if the forward pass raises.

    Returns:
        a handle, whose `remove()` ends it.

    Example:
        >>> from rushlight.nn.modules.module import register_module_forward_hook
        >>> handle = register_module_forward_hook(lambda m, args, out: print(type(m).__name__))
        >>> _ = torch.nn.ReLU()(torch.ones(1))
        ReLU
        >>> handle.remove()
    """
    marks = []
    if with_kwargs:
        marks.append(global_forward_hooks_with_kwargs)
    if always_call:
        marks.append(global_forward_hooks_always_called)
    return add_hook(global_forward_hooks, hook, marks=marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward pass of every module.

    Args:
        hook: may return new gradients of the outputs.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return add_hook(global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after the backward pass of every module.

    Args:
        hook: may return new gradients of the inputs.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    global global_backward_hooks_are_full
    if global_backward_hooks_are_full is False:
        raise RuntimeError(mixed_backward_hooks("all modules"))
    global_backward_hooks_are_full = True
    return add_hook(global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]):
    """Deprecated form of `register_module_full_backward_hook`: it sees the last function's
    gradients.

    Args:
        hook: may return new gradients of the inputs.

    Returns:
        a handle, whose `remove()` ends it.

    For an example see `nn.modules.module.register_module_forward_hook`.
    """
    return _register_backward_hook(hook, full=False)


def _register_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global global_backward_hooks_are_full
    if global_backward_hooks_are_full is (not full):
        raise RuntimeError(mixed_backward_hooks("all modules"))
    global_backward_hooks_are_full = full
    return add_hook(global_backward_hooks, hook)


def backward_hooks(module):
    """The full and the old-style backward hooks that apply to a module, as two lists."""
    full: list = []
    old: list = []
    if global_backward_hooks:
        (full if global_backward_hooks_are_full else old).extend(global_backward_hooks.values())
    if module._backward_hooks:
        target = full if module._is_full_backward_hook else old
        target.extend(module._backward_hooks.values())
    return full, old


def backward_pre_hooks(module: Module) -> list[Callable[..., Any]]:
    """The backward pre-hooks that apply to a module, as a list."""
    return [*global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]


def call_with_hooks(module, args, kwargs):
    """Run a module's forward with all hooks around it."""
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        _always_call(module, args, kwargs, called)
        raise


def _call(module, args, kwargs, called):
    args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
    full, old = backward_hooks(module)
    pre = backward_pre_hooks(module)
    boundary = BackwardHook(module, full, pre) if full or pre else None
    if boundary is not None:
        args = boundary.setup_input_hook(args)
    result = module.forward(*args, **kwargs)
    for key, hook, with_kwargs in _forward_hooks(module):
        called.add(key)
        if with_kwargs:
            replacement = hook(module, args, kwargs, result)
        else:
            replacement = hook(module, args, result)
        if replacement is not None:
            result = replacement
    if boundary is not None:
        if not isinstance(result, (Tensor, tuple)):
            warn(
                f"{type(module).__name__}: for backward hooks to be called, forward has to return "
                f"a tensor or a tuple of tensors, not {type(result)}",
            )
        else:
            result = boundary.setup_output_hook(result)
    if old:
        _attach_old_backward_hooks(module, result, old)
    return result


def _run_forward_pre_hooks(module, args, kwargs):
    with_kwargs = module._forward_pre_hooks_with_kwargs
    hooks = [(hook, False) for hook in global_forward_pre_hooks.values()]
    hooks += [(hook, key in with_kwargs) for key, hook in module._forward_pre_hooks.items()]
    for hook, takes_kwargs in hooks:
        if not takes_kwargs:
            replacement = hook(module, args)
            if replacement is not None:
                args = replacement if isinstance(replacement, tuple) else (replacement,)
            continue
        replacement = hook(module, args, kwargs)
        if replacement is None:
            continue
        if not isinstance(replacement, tuple) or len(replacement) != 2:
            raise RuntimeError(
                "forward pre-hook must return None or a tuple of two, the new arguments and the "
                f"new keyword arguments, not {replacement}"
            )
        args, kwargs = replacement
    return args, kwargs


def _forward_hooks(module: Module) -> Iterator[tuple[int, Callable[..., Any], bool]]:
    """(key, hook, whether it takes kwargs) of the forward hooks, those of all modules first."""
    for key, hook in list(global_forward_hooks.items()):
        yield key, hook, key in global_forward_hooks_with_kwargs
    for key, hook in list(module._forward_hooks.items()):
        yield key, hook, key in module._forward_hooks_with_kwargs


def _always_call(module, args, kwargs, called):
    """After an error, run the hooks that asked for it and have not run; their errors only warn."""
    always = {**global_forward_hooks_always_called, **module._forward_hooks_always_called}
    for key, hook, with_kwargs in _forward_hooks(module):
        if key not in always or key in called:
            continue
        try:
            hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        except Exception as error:
            warn(
                "module forward hook with ``always_call=True`` raised an exception, which does not "
                f"replace the one before it: {error!r}",
            )


def _attach_old_backward_hooks(module, result, hooks):
    """Old-style hooks watch the node that made the first tensor of the result."""
    tensor = result
    while not isinstance(tensor, Tensor):
        tensor = next(iter(tensor.values())) if isinstance(tensor, dict) else tensor[0]
    node = tensor.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda inputs, outputs, hook=hook: hook(module, inputs, outputs))
