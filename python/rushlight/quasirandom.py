"""Quasi-random numbers, which fill a cube evenly: Sobol sequences."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["SobolEngine"]

# `_sobol.bin` holds the polynomials and first direction numbers of Joe and Kuo (THIRD_PARTY.md):
# the polynomials as numbers of 32 bits, then for each the numbers of its dimension without their
# last bit, which is 1; the j-th has j bits.
_DIMENSIONS = 21201
_BITS = 30


@functools.cache
def _data() -> bytes:
    return (Path(__file__).parent / "_sobol.bin").read_bytes()


def _direction_numbers(dimension: int) -> Tensor:
    """By dimension and bit, what that bit of a point's (Gray) number turns around."""
    data = _data()
    at = 4 * _DIMENSIONS
    rows = [[1 << (_BITS - 1 - j) for j in range(_BITS)]]
    for d in range(1, dimension):
        polynomial = int.from_bytes(data[4 * d : 4 * d + 4], "little")
        degree = polynomial.bit_length() - 1
        size = (degree * (degree - 1) // 2 + 7) // 8
        packed = int.from_bytes(data[at : at + size], "little")
        at += size
        row = []
        for j in range(degree):
            row.append((packed & ((1 << j) - 1)) << 1 | 1)
            packed >>= j
        inner = [k for k in range(1, degree) if polynomial >> (degree - k) & 1]
        for j in range(degree, _BITS):
            new = row[j - degree] ^ row[j - degree] << degree
            for k in inner:
                new ^= row[j - k] << k
            row.append(new)
        rows.append([v << (_BITS - 1 - j) for j, v in enumerate(row[:_BITS])])
    return rushlight.tensor(rows, dtype=rushlight.int64)


class SobolEngine:
    """Draws the points of a Sobol sequence in the unit cube.

    Args:
        dimension: of the cube, up to 21201.
        scramble: turn the sequence around at random, which keeps it even (Owen; Matousek).
        seed: of the scrambling; None takes the default generator.

    Raises:
        ValueError: for a dimension that there are no numbers for.

    Example:
        >>> points = torch.quasirandom.SobolEngine(dimension=3)
        >>> points.draw(4)[-1]
        tensor([0.2500, 0.7500, 0.7500])
    """

    MAXBIT = _BITS
    MAXDIM = _DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: dimension must be in [1, {self.MAXDIM}], but got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _direction_numbers(dimension)
        self.shift = rushlight.zeros(dimension, dtype=rushlight.int64)
        if scramble:
            self._scramble()
        self.reset()
        self._first_point = (self.shift / 2**self.MAXBIT)[None]

    def _scramble(self) -> None:
        """Shifts all points, and mixes the bits of the direction numbers."""
        generator: Any = None
        if self.seed is not None:
            generator = rushlight.Generator()
            generator.manual_seed(self.seed)
        size = (self.dimension, self.MAXBIT)
        places = rushlight.arange(self.MAXBIT)
        shift = rushlight.randint(2, size, device="cpu", generator=generator)
        self.shift = (shift << places).sum(1)
        # A lower triangle of bits for each dimension, with ones on its diagonal, times the bits of
        # a number from the highest down.
        lower = rushlight.randint(2, (*size, self.MAXBIT), device="cpu", generator=generator).tril()
        lower.diagonal(dim1=-2, dim2=-1).fill_(1)
        falling = places.flip(0)
        bits = self.sobolstate[:, :, None] >> falling & 1  # dimension, number, bit
        mixed = (bits.double() @ lower.double().mT).long() % 2
        self.sobolstate = (mixed << falling).sum(2)

    def _place(self, index: Tensor) -> Tensor:
        """The points of these numbers, as integers."""
        gray = index ^ index >> 1
        points = self.shift.expand(index.numel(), self.dimension)
        top = int(index.max()) if index.numel() else 0
        for bit in range(min(top.bit_length(), self.MAXBIT)):
            points = points ^ (gray >> bit & 1)[:, None] * self.sobolstate[:, bit]
        return points

    def draw(
        self, n: int = 1, out: Tensor | None = None, dtype: rushlight.dtype | None = None
    ) -> Tensor:
        """Draw the next `n` points, (n, dimension), in the default dtype or another."""
        dtype = rushlight.get_default_dtype() if dtype is None else dtype
        index = rushlight.arange(self.num_generated, self.num_generated + n)
        points = self._place(index)
        if n:
            self.quasi = points[-1].clone()
            self.num_generated += n
        result = (points / 2.0**self.MAXBIT).to(dtype)
        if out is None:
            return result
        out.resize_(result.shape).copy_(result)
        return out

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: rushlight.dtype | None = None
    ) -> Tensor:
        """Draw the next 2**m points, which keep the sequence balanced.

        Raises:
            ValueError: if the number of points so far and these is no power of two.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"draw_base2({m}) makes {total} points in all; even ones require n to be a power "
                "of 2, and draw(n) draws any number"
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start the sequence again."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next `n` points."""
        if n:
            self.num_generated += n
            self.quasi = self._place(rushlight.tensor([self.num_generated - 1]))[0]
        return self

    def __repr__(self) -> str:
        settings = [f"dimension={self.dimension}"]
        if self.scramble:
            settings.append("scramble=True")
        if self.seed is not None:
            settings.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(settings)})"
