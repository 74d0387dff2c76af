"""`OnnxGraph`: the parts of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight import Tensor


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
