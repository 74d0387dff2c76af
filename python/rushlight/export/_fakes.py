"""Fake tensors whose sizes are told to Python as expressions, or noted as they are used."""

from __future__ import annotations

import math
from typing import Any

from rushlight import _C
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.export._sizes import Log, SizeInt

__all__ = ["NotingFake", "NotingMode", "SizedFake", "Sizes"]

_SHAPE: Any = vars(_C.TensorBase)["shape"]


class Sizes(tuple):
    """The sizes of a tensor, as `torch.Size`, some of them expressions."""

    __slots__ = ()

    def numel(self) -> Any:
        """Their product."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class _Answers(FakeTensor):
    """Answers questions about sizes by `sizes()`."""

    def sizes(self) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> Any:
        """The sizes."""
        return self.sizes()

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or one of them."""
        sizes = self.sizes()
        if dim is None:
            return sizes
        if not -len(sizes) <= dim < len(sizes):
            raise IndexError(f"Dimension out of range: got {dim} of {len(sizes)} dimensions")
        return sizes[dim]

    def numel(self) -> Any:
        """The number of elements."""
        return math.prod(self.sizes())

    nelement = numel

    def __len__(self) -> Any:
        sizes = self.sizes()
        if not sizes:
            raise TypeError("len() of a 0-d tensor")
        return int(sizes[0])


class SizedFake(_Answers):
    """A fake tensor that a node of an exported graph remembers."""

    sym_sizes: tuple[Any, ...]
    sym_strides: tuple[Any, ...]

    def sizes(self) -> Any:
        return Sizes(self.sym_sizes)


class NotingFake(_Answers):
    """A fake tensor of a program that runs: its sizes write down how they are used."""

    def sizes(self) -> Any:
        log = self.fake_mode.log  # type: ignore[attr-defined]
        return Sizes(SizeInt(n, None, log) for n in _SHAPE.__get__(self))


class NotingMode(FakeTensorMode):
    """A mode whose tensors write down how their sizes are used.

    Args:
        log: where.
    """

    kind = NotingFake

    def __init__(self, log: Log) -> None:
        super().__init__(allow_non_fake_inputs=True, export=True)
        self.log = log
