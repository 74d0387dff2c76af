"""What `DistributedDataParallel` does, for a module that stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import nn
from rushlight.distributed._contract import _State, contract
from rushlight.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DDP", "replicate"]


class _ReplicateState(_State):
    """The `DistributedDataParallel` of a module, made at its first forward."""

    def __init__(self):
        self.ddp: Any = None
        self.arguments: dict[str, Any] = {}
        self.syncs = True
        self.hooks: list[tuple[Any, Any]] = []

    def _ddp_weakref(self):
        return self.ddp

    def start(self, module):
        """Make it."""
        if self.ddp is None:
            self.ddp = DistributedDataParallel(module, **self.arguments)
            for state, hook in self.hooks:
                self.ddp.register_comm_hook(state, hook)
        self.ddp.require_backward_grad_sync = self.syncs

    def before(self, module, args, kwargs):
        """Before the module's forward."""
        self.start(module)
        return self.ddp._pre_forward(*args, **kwargs)

    def after(self, output):
        """After the module's forward; its output is None if it failed."""
        if self.ddp is None:
            return None
        self.ddp._show_parameters()
        return None if output is None else self.ddp._post_forward(output)


class DDP:
    """What a module can do after `replicate`."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether backward reduces gradients, or leaves them in this process."""
        replicate.state(self).syncs = requires_gradient_sync

    def register_comm_hook(self, state: object, hook: Any) -> None:
        """Let `hook(state, bucket)` reduce gradients."""
        kept = replicate.state(self)
        if kept.ddp is not None:
            kept.ddp.register_comm_hook(state, hook)
        else:
            kept.hooks.append((state, hook))


@contract(state_cls=_ReplicateState)
def replicate(
    module: nn.Module,
    ignored_modules: Iterable[nn.Module] | None = None,
    **kwargs: Any,
) -> nn.Module:
    """Let backward make a module's gradients the mean over processes; it stays the same module.

    Args:
        module: the module.
        ignored_modules: parts whose gradients stay each process's own.
        kwargs: arguments of `DistributedDataParallel`; `device_id` where the module computes.
    """
    if "device_id" in kwargs:
        device_id = kwargs.pop("device_id")
        if device_id is not None and not isinstance(device_id, (int, rushlight.device)):
            raise RuntimeError(
                f"Expected device_id to be int or torch.device, but got {type(device_id)}"
            )
        on_cpu = device_id is None or rushlight.device(device_id).type == "cpu"
        kwargs["device_ids"] = None if on_cpu else [device_id]
    left_out = {id(p) for m in ignored_modules or () for p in m.parameters()}
    if left_out:
        names = [name for name, p in module.named_parameters() if id(p) in left_out]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    state = replicate.state(module)
    state.arguments = kwargs
    module.register_forward_pre_hook(state.before, with_kwargs=True)
    module.register_forward_hook(lambda _m, _args, out: state.after(out), always_call=True)
    kind = type(module)
    # Behind the module's class: before it, the layout of objects would be another.
    module.__class__ = type(f"DDP{kind.__name__}", (kind, DDP), {})
    return module
