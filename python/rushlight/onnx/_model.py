"""`OnnxGraph`: the parts of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight import Tensor


def names_used(node: Any) -> Iterator[str]:
    """The values that a node reads, those that its bodies read from outside among them."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from names_used(inner)


def rename(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    """Renames values of nodes and of their bodies, in place."""
    for node in nodes:
        for listed in (node.input, node.output):
            for i, name in enumerate(listed):
                listed[i] = names.get(name, name)
        for attribute in node.attribute:
            rename(attribute.g.node, names)


@dataclass
class OnnxGraph:
    """The parts of a model: the weights stay rushlight's tensors until it is written.

    Attributes:
        nodes: `NodeProto`s in order.
        inputs, outputs: by name, dtype and sizes; a size is an int or the name of a symbol.
        initializers: constant tensors by name.
        parameters: which of them are parameters or buffers.
        leaves: for each leaf of the program's arguments, whether it is an input.
        opsets: versions by domain; "" is ONNX itself.
    """

    nodes: list[Any]
    inputs: dict[str, tuple[rushlight.dtype, list[int | str]]]
    outputs: dict[str, tuple[rushlight.dtype, list[int | str]]]
    initializers: dict[str, Tensor]
    parameters: set[str] = field(default_factory=set)
    leaves: list[bool] = field(default_factory=list)
    opsets: dict[str, int] = field(default_factory=dict)
