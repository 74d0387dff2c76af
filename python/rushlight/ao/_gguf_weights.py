"""Weights in blocks of GGUF as layouts of tensors: as files have them, and packed for products.

A block has a scale, or several, for 32 or 256 numbers of a row. `_integer_weights` makes tensors of
layouts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight import _C, Tensor

__all__ = ["Panels", "Stored"]

_PANEL = 16  # src/kernels/int8_layout.h


def _kind(weight: Stored | Panels) -> tuple[Any, ...]:
    """What another layout must have, too, for one to be written over the other."""
    return "gguf", weight.format


def _about(weight: Stored | Panels) -> str:
    """How numbers are stored, for people."""
    return weight.format


class Stored(NamedTuple):
    """Rows of blocks in the order of a file."""

    blocks: Tensor  # (..., bytes of a row)
    format: str

    kind = property(_kind)
    about = property(_about)

    @property
    def size(self) -> tuple[int, ...]:
        """The sizes of the numbers."""
        return tuple(_C.ops._gguf_dequantize(self.blocks.to("meta"), self.format).shape)

    def check(self) -> None:
        """Raises where a file told of parts that do not fit."""
        if type(self.blocks) is not Tensor or type(self.format) is not str:
            raise TypeError("what a file holds is no weight of codes")
        _ = self.size

    def packed(self) -> Panels:
        """The layout that products read."""
        if self.blocks.dim() != 2:
            raise NotImplementedError(
                f"linear(): the weight must be a matrix, not of size {self.size}"
            )
        results = self.blocks.shape[0]
        return Panels(_C.ops._gguf_pack(self.blocks, self.format), self.format, results)

    def stored(self) -> Stored:
        """The layout that files have."""
        return self

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The layer of float32 numbers."""
        return self.packed().linear(x, bias)

    def numbers(self) -> Tensor:
        """What the codes stand for."""
        return _C.ops._gguf_dequantize(self.blocks, self.format)

    def rows(self, indices: Tensor) -> Tensor:
        """The numbers of some rows of a matrix."""
        found = self.blocks.index_select(0, indices.flatten())
        return _C.ops._gguf_dequantize(found, self.format).unflatten(0, indices.shape)


class Panels(NamedTuple):
    """Panels of 16 rows, as the op `_gguf_linear` reads them."""

    panels: Tensor
    format: str
    results: int

    kind = property(_kind)
    about = property(_about)

    @property
    def size(self) -> tuple[int, ...]:
        """The sizes of the numbers."""
        return self._replace(panels=self.panels.to("meta")).stored().size

    def check(self) -> None:
        """Raises where a file told of parts that do not fit."""
        known = type(self.format) is str and type(self.results) is int
        if not known or type(self.panels) is not Tensor:
            raise TypeError("what a file holds is no weight of codes")
        _ = self.size

    def packed(self) -> Panels:
        """The layout that products read."""
        return self

    def stored(self) -> Stored:
        """The layout that files have."""
        return Stored(_C.ops._gguf_unpack(self.panels, self.format, self.results), self.format)

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The layer of float32 numbers."""
        return _C.ops._gguf_linear(x, self.panels, bias, self.format, self.results)

    def numbers(self) -> Tensor:
        """What the codes stand for."""
        return self.stored().numbers()

    def rows(self, indices: Tensor) -> Tensor:
        """The numbers of some rows."""
        flat = indices.flatten()
        if ((flat < 0) | (flat >= self.results)).any():
            raise IndexError(f"index out of range in self: there are {self.results} rows")
        panels = self.panels.index_select(0, flat // _PANEL)
        # Of a panel for each index one row is taken.
        whole = Panels(panels, self.format, len(panels) * _PANEL).stored()
        mine = whole.blocks.unflatten(0, (-1, _PANEL)).take_along_dim(
            (flat % _PANEL).reshape(-1, 1, 1), 1
        )
        return Stored(mine.squeeze(1), self.format).numbers().unflatten(0, indices.shape)
