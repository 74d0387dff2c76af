"""Sizes that stay open: what the caller says of them, and the names that they have in a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rushlight import Tensor, nn
from rushlight.export import Dim, ShapesCollection
from rushlight.export._inputs import forward_names, leaf_names
from rushlight.export.dynamic_shapes import leaf_specs
from rushlight.fx.node import Node
from rushlight.onnx._values import Size, expression_of
from rushlight.utils import _pytree as pytree

__all__ = ["OpenSizes", "enlarged", "from_axes", "from_shapes"]

# By leaf of the arguments, by dimension, the name of a size.
Names = list[dict[int, str]]


class OpenSizes:
    """Which sizes of the arguments stay open, and their names.

    Args:
        example: the arguments, as (args, kwargs).
        shapes: what `torch.export` is told.
        names: by leaf of the arguments, by dimension.
        of_results: by the name of a result, by dimension.
    """

    def __init__(
        self,
        example: tuple[tuple[Any, ...], dict[str, Any]],
        shapes: Any,
        names: Names,
        of_results: dict[str, dict[int, str]],
    ) -> None:
        self.example, self.shapes = example, shapes
        self.names, self.of_results = names, of_results
        self._renamed: dict[str, str] = {}

    def learn(self, inputs: Iterable[tuple[int, Node]]) -> None:
        """Reads off the inputs, each with the leaf that it is, what the symbols are called."""
        for leaf, node in inputs:
            names = self.names[leaf] if leaf < len(self.names) else {}
            for dim, size in enumerate(getattr(node.meta["val"], "shape", ())):
                expr = expression_of(size)
                if expr is not None and expr.name is not None and dim in names:
                    self._renamed.setdefault(expr.name, names[dim])

    def sizes(
        self, shape: Sequence[Any], names: Mapping[int, str] | None = None
    ) -> list[int | str]:
        """A shape as a model tells it: numbers, and texts for sizes that are open."""
        found = []
        for dim, size in enumerate(shape):
            text = (names or {}).get(dim)
            if isinstance(size, Size) and text is None:
                text = re.sub(r"[A-Za-z_]\w*", self._name, str(size.expr))
            found.append(size if isinstance(size, int) else text)
        return found

    def _name(self, found: re.Match[str]) -> str:
        return self._renamed.get(found[0], found[0])


def enlarged(args: Any, names: Names) -> Any:
    """The arguments with 2 for open sizes that are 1 in the example.

    A program may treat 1 apart (it broadcasts), and then the size would not be open.
    """
    order = iter(names)

    def grown(leaf: Any) -> Any:
        open_ones = next(order, {})
        if not isinstance(leaf, Tensor):
            return leaf
        sizes = [2 if d in open_ones and n == 1 else n for d, n in enumerate(leaf.shape)]
        return leaf if sizes == list(leaf.shape) else leaf.expand(sizes).clone()

    return pytree.tree_map(grown, args)


def _by_dimension(name: str, said: Mapping[int, str] | Sequence[int]) -> dict[int, str]:
    """The axes of one input or result; those without a name get one."""
    if isinstance(said, Mapping):
        return dict(said)
    return {dim: f"{name}_dynamic_axes_{i}" for i, dim in enumerate(said, 1)}


def from_axes(
    axes: Mapping[str, Any],
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    input_names: Sequence[str] | None,
) -> OpenSizes:
    """The open sizes of `dynamic_axes`, which goes by the names of inputs and results.

    Raises:
        ValueError: an input has no such dimension.
    """
    named = {name: _by_dimension(name, said) for name, said in axes.items()}
    leaves = pytree.tree_leaves((args, kwargs))
    own = leaf_names(forward_names(model, args, kwargs), args, kwargs)
    given, names = list(input_names or ()), []
    inputs = set()
    for leaf, name in zip(leaves, own, strict=True):
        if isinstance(leaf, Tensor):
            name = given.pop(0) if given else name
            inputs.add(name)
            said = {dim % max(leaf.dim(), 1): text for dim, text in named.get(name, {}).items()}
            if any(dim >= leaf.dim() for dim in named.get(name, {})):
                raise ValueError(f"dynamic_axes: {name!r} has {leaf.dim()} dimensions, got {said}")
            names.append(said)
        else:
            names.append({})
    of_results = {name: said for name, said in named.items() if name not in inputs}
    example, shapes = enlarged((args, kwargs), names), ShapesCollection()
    for leaf, said in zip(pytree.tree_leaves(example), names, strict=True):
        if said:
            shapes[leaf] = dict.fromkeys(said, Dim.DYNAMIC)
    return OpenSizes(example, shapes if len(shapes) else None, names, of_results)


def _map(shapes: Any, function: Callable[[str], Any]) -> Any:
    """The same, with the texts in it replaced."""
    if isinstance(shapes, str):
        return function(shapes)
    if isinstance(shapes, dict):
        return {key: _map(value, function) for key, value in shapes.items()}
    if isinstance(shapes, list | tuple):
        return type(shapes)(_map(value, function) for value in shapes)
    return shapes


def from_shapes(
    shapes: Any, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> OpenSizes:
    """The open sizes of `dynamic_shapes`, in which a text is an open size of this name."""
    texts: dict[str, Any] = {}

    def as_dim(text: str) -> Any:
        return texts.setdefault(text, Dim(f"text_{len(texts)}"))

    said = leaf_specs(model, args, kwargs, _map(shapes, as_dim))
    of_dim = {id(dim): text for text, dim in texts.items()}
    names = [
        {
            dim: of_dim.get(id(size), size.__name__)
            for dim, size in leaf.items()
            if isinstance(size, Dim) and size.root is size
        }
        for leaf in said
    ]
    example = enlarged((args, kwargs), names)
    return OpenSizes(example, _map(shapes, lambda _: Dim.DYNAMIC), names, {})
