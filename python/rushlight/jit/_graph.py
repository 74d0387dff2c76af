"""Graphs of ops: nodes in the order of a program, and the values between them.

These are the classes that `torch._C` has under the same names. `_trace.py` writes graphs of what a
program did; nothing runs them.
"""

from __future__ import annotations

from typing import Any

import rushlight

__all__ = ["Graph", "Node", "TensorType", "Type", "Value"]

_SCALAR_TYPES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint8": "Byte",
    "bool": "Bool",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


class Type:
    """The type of a value: `int`, `List[int]`, `Tensor` …"""

    def __init__(self, kind: str, annotation: str, text: str = "") -> None:
        self._kind = kind
        self.annotation_str = annotation
        self._text = text or annotation

    def kind(self) -> str:
        """The name of its kind, such as IntType."""
        return self._kind

    def str(self) -> str:
        """As a graph prints it."""
        return self._text

    def __str__(self) -> str:
        return self.annotation_str

    def __repr__(self) -> str:
        return self.annotation_str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


class TensorType(Type):
    """The type of a tensor, with all that was known when it was seen."""

    def __init__(self, tensor: rushlight.Tensor) -> None:
        self._dtype, self._device = tensor.dtype, tensor.device
        self._sizes, self._grad = list(tensor.shape), tensor.requires_grad
        self._strides = list(tensor.stride()) if tensor.layout == rushlight.strided else None
        places = [f"{key}={value}" for key, value in (("strides", self._strides),) if value]
        places += [f"requires_grad={int(self._grad)}", f"device={self._device}"]
        inside = ", ".join([*map(str, self._sizes), *places])
        super().__init__("TensorType", "Tensor", f"{self.scalarType()}({inside})")

    def sizes(self) -> list[int]:
        """The sizes."""
        return list(self._sizes)

    def varyingSizes(self) -> list[int]:
        """The sizes: all of them are known."""
        return list(self._sizes)

    def strides(self) -> list[int] | None:
        """The strides; None of layouts without."""
        return None if self._strides is None else list(self._strides)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    def dtype(self) -> rushlight.dtype:
        """The dtype."""
        return self._dtype

    def scalarType(self) -> str:
        """The name of the dtype in graphs, such as Float."""
        name = str(self._dtype).rpartition(".")[2]
        return _SCALAR_TYPES.get(name, name.capitalize())

    def device(self) -> rushlight.device:
        """The device."""
        return self._device

    def requires_grad(self) -> bool:
        """Whether it wanted a gradient."""
        return self._grad


_PLAIN = {
    bool: Type("BoolType", "bool"),
    int: Type("IntType", "int"),
    float: Type("FloatType", "float"),
    complex: Type("ComplexType", "complex"),
    str: Type("StringType", "str"),
    type(None): Type("NoneType", "NoneType"),
    rushlight.device: Type("DeviceObjType", "Device"),
    rushlight.Generator: Type("GeneratorType", "Generator"),
}


def list_of(item: Type) -> Type:
    """The type of lists whose items are of a type."""
    inside = "Tensor" if isinstance(item, TensorType) else item.str()
    return Type("ListType", f"List[{item.annotation_str}]", f"{inside}[]")


def tuple_of(items: list[Type]) -> Type:
    """The type of tuples of these."""
    inside = ", ".join(i.annotation_str for i in items)
    return Type("TupleType", f"Tuple[{inside}]", f"({', '.join(i.str() for i in items)})")


def type_of(thing: Any) -> Type:
    """The type of a tensor or a constant; dtypes, layouts and formats are numbers in graphs."""
    if isinstance(thing, rushlight.Tensor):
        return TensorType(thing)
    return _PLAIN.get(type(thing), _PLAIN[int])


class Value:
    """What a node makes and others take."""

    def __init__(self, node: Node, number: int, name: str, kind: Type) -> None:
        self._node, self._number, self._name, self._type = node, number, name, kind
        self._uses: list[tuple[Node, int]] = []

    def type(self) -> Type:
        """Its type."""
        return self._type

    def node(self) -> Node:
        """The node that makes it."""
        return self._node

    def unique(self) -> int:
        """Its number in the graph."""
        return self._number

    def debugName(self) -> str:
        """Its name in what is printed."""
        return self._name

    def offset(self) -> int:
        """Which output of its node it is."""
        return self._node._outputs.index(self)

    def uses(self) -> list[tuple[Node, int]]:
        """The nodes that take it, and as which of their inputs."""
        return list(self._uses)

    def requires_grad(self) -> bool:
        """Whether it is a tensor that wanted a gradient."""
        return isinstance(self._type, TensorType) and self._type.requires_grad()

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor whose dtype, sizes, strides and device are known."""
        return isinstance(self._type, TensorType) and self._type.strides() is not None

    def toIValue(self) -> Any:
        """What a constant is; None for all others."""
        return self._node._attributes.get("value")

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node!r})"


class Node:
    """A call of an op, a constant, or lists and tuples made or taken apart."""

    def __init__(self, graph: Graph, kind: str, inputs: list[Value], scope: str, at: str) -> None:
        self._graph, self._kind, self._inputs = graph, kind, list(inputs)
        self._scope, self._at = scope, at
        self._outputs: list[Value] = []
        self._attributes: dict[str, Any] = {}
        self._schema = ""
        for i, value in enumerate(self._inputs):
            value._uses.append((self, i))

    def kind(self) -> str:
        """The name of what it does, such as aten::add."""
        return self._kind

    def scopeName(self) -> str:
        """The scopes that it was recorded in, from outside in, with / between."""
        return self._scope

    def schema(self) -> str:
        """The schema of its op; (no schema) where it has none."""
        return self._schema or "(no schema)"

    def sourceRange(self) -> str:
        """The line of the program that called the op."""
        return self._at

    def inputs(self) -> list[Value]:
        """The values that it takes."""
        return list(self._inputs)

    def outputs(self) -> list[Value]:
        """The values that it makes."""
        return list(self._outputs)

    def inputsSize(self) -> int:
        """How many values it takes."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self._outputs)

    def inputsAt(self, i: int) -> Value:
        """One of the values that it takes."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:
        """One of the values that it makes."""
        return self._outputs[i]

    def input(self) -> Value:
        """The only value that it takes."""
        (only,) = self._inputs
        return only

    def output(self) -> Value:
        """The only value that it makes."""
        (only,) = self._outputs
        return only

    def owningGraph(self) -> Graph:
        """The graph that it is in."""
        return self._graph

    def attributeNames(self) -> list[str]:
        """The names of its attributes: a constant has its value."""
        return list(self._attributes)

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute of this name."""
        return name in self._attributes

    def _attribute(self, name: str) -> Any:
        if name not in self._attributes:
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        return self._attributes[name]

    i = f = s = t = ival = _attribute  # of integers, floats, texts, tensors, anything

    def _add_output(self, kind: Type, name: str = "") -> Value:
        number = self._graph._next
        self._graph._next += 1
        value = Value(self, number, name or str(number), kind)
        self._outputs.append(value)
        return value

    def __repr__(self) -> str:
        made = ", ".join(f"%{v.debugName()} : {v.type().str()}" for v in self._outputs)
        taken = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        at = f" # {self._at}" if self._at else ""
        where = f", scope: {self._scope}" if self._scope else ""
        return f"{made} = {self._kind}{self._constant()}({taken}){where}{at}"

    def _constant(self) -> str:
        value = self._attributes.get("value")
        if value is None:
            return ""
        if isinstance(value, rushlight.Tensor):
            whole = value.numel() == 1 and value.device.type == "cpu"
            return f"[value={{{value.item() if whole else '...'}}}]"
        if isinstance(value, str):
            return '[value="' + value.replace('"', '\\"') + '"]'
        return f"[value={int(value) if isinstance(value, bool) else value}]"


class Graph:
    """Nodes in the order in which they ran, with the values that come in and go out."""

    def __init__(self) -> None:
        self._next = 0
        self._nodes: list[Node] = []
        self._start = Node(self, "prim::Param", [], "", "")
        self._end = Node(self, "prim::Return", [], "", "")

    def nodes(self) -> list[Node]:
        """All nodes, in order."""
        return list(self._nodes)

    def inputs(self) -> list[Value]:
        """The values that come in: the arguments, then parameters and buffers."""
        return list(self._start._outputs)

    def outputs(self) -> list[Value]:
        """The values that go out."""
        return list(self._end._inputs)

    def param_node(self) -> Node:
        """The node whose outputs are what comes in."""
        return self._start

    def return_node(self) -> Node:
        """The node whose inputs are what goes out."""
        return self._end

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind."""
        return [n for n in self._nodes if n.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind, or None."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self) -> str:
        given = (f"%{v.debugName()} : {v.type().str()}" for v in self.inputs())
        lines = [f"graph({(',' + chr(10) + ' ' * 6).join(given)}):"]
        lines += [f"  {n!r}" for n in self._nodes]
        lines.append(f"  return ({', '.join('%' + v.debugName() for v in self.outputs())})\n")
        return "\n".join(lines)

    __repr__ = __str__
