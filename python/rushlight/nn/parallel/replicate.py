"""`replicate`: copies of a module on several devices, whose gradients flow to the module."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.comm import broadcast

__all__ = ["replicate"]


def replicate(network: Module, devices: Any, detach: bool = False) -> list[Module]:
    """Copies of a module, one for each device.

    Their parameters are results of copying the module's, so backward through them adds to the
    module's gradients.

    Args:
        network: the module.
        devices: where the copies go; a number is a GPU.
        detach: without a way back.

    Example:
        >>> copies = torch.nn.parallel.replicate(torch.nn.Linear(2, 1), ["cpu", "cpu"])
        >>> len(copies)
        2
    """
    values: dict[Any, tuple] = {}
    for tensor in [*network.parameters(), *network.buffers()]:
        values[tensor] = broadcast(tensor.detach() if detach else tensor, devices)
    replicas = []
    for place in range(len(devices)):
        made = {module: module._replicate_for_data_parallel() for module in network.modules()}
        for module, copy in made.items():
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else made[child]
            for name, parameter in module._parameters.items():
                # An attribute: what was computed is no parameter.
                value = None if parameter is None else values[parameter][place]
                copy.__dict__[name] = copy._former_parameters[name] = value
            for name, buffer in module._buffers.items():
                copy._buffers[name] = None if buffer is None else values[buffer][place]
        replicas.append(made[network])
    return replicas
