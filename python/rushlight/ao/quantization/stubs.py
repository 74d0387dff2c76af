"""Marks in a network: where numbers become quantised and where floats again."""

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
    """Where numbers are to become quantised: the input as it is."""


class DeQuantStub(_Stub):
    """Where they are to become floats again: the input as it is."""


class QuantWrapper(nn.Module):
    """A module between the two marks."""

    def __init__(self, module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant = QuantStub(qconfig)
        self.dequant = DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
