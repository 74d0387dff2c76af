"""Stubs in a network: where floats become quantised, and where they become floats again."""

from __future__ import annotations

from typing import Any

from rushlight import nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(nn.Module):
    """Marks a place of a network; gives its input back until the network is converted.

    Args:
        qconfig: how the place is to be quantised; without one the network's holds.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Marks where floats are to be quantised; it returns its input.

    Args:
        qconfig: the qconfig of this place; the parent's if None.

    Example:
        >>> from rushlight import nn
        >>> from rushlight.ao import quantization
        >>> net = nn.Sequential(quantization.QuantStub(), nn.ReLU(), quantization.DeQuantStub())
        >>> _ = net.eval()
        >>> net.qconfig = quantization.get_default_qconfig()
        >>> prepared = quantization.prepare(net)
        >>> _ = prepared(torch.randn(16, 4))  # calibrates
        >>> quantization.convert(prepared)(torch.ones(1, 4)).dtype
        torch.float32
    """


class DeQuantStub(_Stub):
    """Marks where quantised tensors are to become floats; it returns its input.

    Args:
        qconfig: the qconfig of this place; the parent's if None.

    For an example see `ao.quantization.QuantStub`.
    """


class QuantWrapper(nn.Module):
    """A module between a `QuantStub` and a `DeQuantStub`.

    Args:
        module: what runs on quantised tensors.

    Example:
        >>> from rushlight.ao import quantization
        >>> wrapped = quantization.QuantWrapper(torch.nn.Linear(4, 2))
        >>> [name for name, _ in wrapped.named_children()]
        ['quant', 'dequant', 'module']
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant = QuantStub(qconfig)
        self.dequant = DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
