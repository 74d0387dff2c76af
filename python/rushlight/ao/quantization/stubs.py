"""Stubs in a network: where floats become quantised, and where they become floats again."""

from __future__ import annotations

from rushlight import nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(nn.Module):
    """Marks a place of a network; gives its input back until the network is converted.

    Args:
        qconfig: how the place is to be quantised; without one the network's holds.
    """

    def __init__(self, qconfig=None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Marks where floats are to be quantised; it returns its input."""


class DeQuantStub(_Stub):
    """Marks where quantised tensors are to become floats; it returns its input."""


class QuantWrapper(nn.Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant = QuantStub(qconfig)
        self.dequant = DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
