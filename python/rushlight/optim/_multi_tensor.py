"""Optimisers by an older name: they step lists of tensors in one pass anyway."""

from __future__ import annotations

from functools import partial

from rushlight import optim

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
]

ASGD = partial(optim.ASGD, foreach=True)
SGD = partial(optim.SGD, foreach=True)
Adadelta = partial(optim.Adadelta, foreach=True)
Adagrad = partial(optim.Adagrad, foreach=True)
Adam = partial(optim.Adam, foreach=True)
AdamW = partial(optim.AdamW, foreach=True)
Adamax = partial(optim.Adamax, foreach=True)
NAdam = partial(optim.NAdam, foreach=True)
RAdam = partial(optim.RAdam, foreach=True)
RMSprop = partial(optim.RMSprop, foreach=True)
Rprop = partial(optim.Rprop, foreach=True)
