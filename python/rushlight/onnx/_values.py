"""What lowerings work with: tensors of the ONNX graph, and sizes that are not constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight

__all__ = ["Expected", "Size", "SizeOf", "Unsupported", "Value", "expression_of"]


def expression_of(size: Any) -> Any:
    """The expression of a size that is open; None of one that is constant."""
    known: Any = size if isinstance(size, rushlight.SymInt) else None
    return None if known is None else known.node.expr


class Unsupported(Exception):
    """A call that has no form in ONNX: a lowering raises it, with the reason."""


class Value:
    """A tensor of the ONNX graph.

    Attributes:
        name: its name in the graph.
        dtype: a `rushlight.dtype`.
        shape: its sizes, where they are known: ints, or 0-d Values for those that are not constant.
            None if not even the number of dimensions is known.
        number: the value of a 0-d constant of integers.
    """

    def __init__(
        self, name: str, dtype: rushlight.dtype, shape: Sequence[Any] | None, number: Any = None
    ) -> None:
        self._name, self.dtype, self.number = name, dtype, number
        self.shape = None if shape is None else tuple(shape)

    @property
    def name(self) -> str:
        """The name in the graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def sizes(self) -> tuple[Any, ...]:
        """The shape, which must be known."""
        if self.shape is None:
            raise AssertionError(f"the shape of {self._name} is not known")
        return self.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Value({self._name!r}, {self.dtype}, {self.shape})"


class Size(Value):
    """A size that is not constant, by its expression: it is computed when something needs it.

    Two sizes are equal if their expressions are.
    """

    def __init__(self, g: Any, expr: Any) -> None:
        super().__init__("", rushlight.int64, ())
        self._g, self.expr = g, expr

    @property
    def name(self) -> str:
        """The name of the 0-d tensor that it is."""
        return self._g.computed(self.expr).name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.expr == other.expr

    def __hash__(self) -> int:
        return hash(self.expr)

    def __repr__(self) -> str:
        return str(self.expr)


class SizeOf(Value):
    """A size of which only the tensor is known that has it."""

    def __init__(self, g: Any, owner: Value, dim: int) -> None:
        super().__init__("", rushlight.int64, ())
        self._g, self._owner, self._dim = g, owner, dim

    @property
    def name(self) -> str:
        """The name of the 0-d tensor that it is."""
        if not self._name:
            self._name = self._g.dimension(self._owner, self._dim).name
        return self._name

    def __repr__(self) -> str:
        return f"size {self._dim} of {self._owner.name}"


class Expected:
    """What the program says of a result: its dtype and its sizes."""

    def __init__(self, dtype: rushlight.dtype, shape: tuple[Any, ...]) -> None:
        self.dtype, self.shape = dtype, shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)
