"""From an exported program to the records of a `.pt2` file."""

from __future__ import annotations

import math
import operator
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._ops import HigherOrderOperator, OpOverload
from rushlight.export._schema import (
    DTYPES,
    FORMATS,
    LAYOUTS,
    MAJOR,
    MINOR,
    bool_record,
    device_record,
    int_record,
    tensor_record,
)
from rushlight.export._sizes import SizeBool, SizeInt
from rushlight.export.exported_program import ExportedProgram, ModuleCallEntry
from rushlight.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.utils import _pytree as pytree
from rushlight.utils._pytree import treespec_dumps

__all__ = ["model_record"]

_NUMBERS = {
    SymIntArgument: "as_sym_int",
    SymFloatArgument: "as_sym_float",
    SymBoolArgument: "as_sym_bool",
}
_SYMBOLIC = tuple(_NUMBERS.values())


def _number(value: float) -> float | str:
    """A float as JSON has it."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _plain(value: Any) -> dict[str, Any] | None:
    """A value that is no tensor and no list; None of others."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": int(value)}
    if isinstance(value, float):
        return {"as_float": _number(value)}
    if isinstance(value, complex):
        return {"as_complex": {"real": _number(value.real), "imag": _number(value.imag)}}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, rushlight.device):
        return {"as_device": device_record(value)}
    for name, table in (("scalar_type", DTYPES), ("layout", LAYOUTS), ("memory_format", FORMATS)):
        try:
            if value in table:
                return {f"as_{name}": table[value]}
        except TypeError:
            continue
    return None


def _kind_of(node: Node) -> str:
    """What a node's value is: "tensor", "sym_int" …"""
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, bool | SizeBool):
        return "sym_bool"
    return "sym_float" if isinstance(value, float) else "sym_int"


def _reference(node: Node) -> dict[str, Any]:
    """An argument that is the value of a node."""
    kind = _kind_of(node)
    named = {"name": node.name} if kind == "tensor" else {"as_name": node.name}
    return {f"as_{kind}": named}


_EMPTY = {"Tensor": "tensors", "float": "floats", "bool": "bools", "str": "strings"}


class _GraphWriter:
    """The record of one graph."""

    def __init__(self, graph: Graph, module: Any) -> None:
        self.graph, self.module = graph, module
        self.tensors: dict[str, Any] = {}
        self.symbols: dict[str, dict[str, Any]] = {"int": {}, "float": {}, "bool": {}}

    # ---- values ----

    def know(self, node: Node) -> None:
        """Write down what is known of the value of a node."""
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self.tensors[node.name] = tensor_record(value)
        elif isinstance(value, bool):
            self.symbols["bool"][node.name] = {"as_bool": value}
        elif isinstance(value, SizeBool):
            self.symbols["bool"][node.name] = bool_record(value)
        elif isinstance(value, SizeInt) and value.expr is not None:
            self.symbols["int"][node.name] = int_record(value)
        elif isinstance(value, float):
            self.symbols["float"][node.name] = {"as_float": value}

    def argument(self, value: Any, kind: str = "") -> dict[str, Any]:
        """An argument of a node; `kind` is its type in the op's schema."""
        if isinstance(value, Node):
            if value.op == "get_attr":
                return self.subgraph(value)
            return _reference(value)
        if isinstance(value, list | tuple):
            return self.sequence(list(value), kind)
        if isinstance(value, OpOverload):
            return {"as_operator": _target(value)}
        plain = _plain(value)
        if plain is None:
            raise NotImplementedError(f"a .pt2 file cannot hold an argument of type {type(value)}")
        return plain

    def sequence(self, values: list[Any], kind: str) -> dict[str, Any]:
        """A list."""
        base = kind.partition("[")[0].rstrip("?")
        nodes = [v for v in values if isinstance(v, Node)]
        if not values:
            return {f"as_{_EMPTY.get(base, 'ints')}": []}
        if nodes and all(_kind_of(n) == "tensor" for n in nodes):
            if len(nodes) == len(values):
                return {"as_tensors": [{"name": n.name} for n in values]}
            return {"as_optional_tensors": [self.optional(v) for v in values]}
        if nodes:
            return {"as_sym_ints": [self.symbolic(v) for v in values]}
        if all(isinstance(v, bool) for v in values):
            return {"as_bools": values}
        if base == "float" or any(isinstance(v, float) for v in values):
            return {"as_floats": [_number(float(v)) for v in values]}
        if all(isinstance(v, int) for v in values):
            return {"as_ints": [int(v) for v in values]}
        if all(isinstance(v, str) for v in values):
            return {"as_strings": values}
        if all(v is None for v in values):
            return {"as_optional_tensors": [{"as_none": True} for _ in values]}
        if all(isinstance(v, list | tuple) for v in values):
            return {"as_int_lists": [[int(n) for n in v] for v in values]}
        raise NotImplementedError(f"a .pt2 file cannot hold the list {values}")

    @staticmethod
    def optional(value: Node | None) -> dict[str, Any]:
        """A tensor of a list, or none."""
        return {"as_none": True} if value is None else {"as_tensor": {"name": value.name}}

    @staticmethod
    def symbolic(value: Any) -> dict[str, Any]:
        """A number of a list, or the node of one."""
        return {"as_name": value.name} if isinstance(value, Node) else {"as_int": int(value)}

    def subgraph(self, node: Node) -> dict[str, Any]:
        """A graph that an op takes as a function."""
        inner = getattr(self.module, str(node.target))
        return {"as_graph": {"name": node.target, "graph": graph_record(inner.graph, inner)}}

    # ---- nodes ----

    def outputs(self, node: Node) -> list[dict[str, Any]]:
        """What a call gives: the results of ops with several are those that take them out."""
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            return [{"as_tensor": {"name": node.name}}]
        if not isinstance(value, list | tuple):
            return [] if value is None else [_reference(node)]
        items = {n.args[1]: n for n in node.users if n.target is operator.getitem}
        named = []
        for i, part in enumerate(value):
            name = items[i].name if i in items else f"{node.name}_unused_{i}"
            if isinstance(part, Tensor):
                self.tensors[name] = tensor_record(part)
                named.append({"name": name})
            else:
                named.append(None)
        schema = getattr(node.target, "_schema", None)
        if schema is None or len(schema.returns) == 1:
            if schema is None:
                return [{"as_tensor": n} if n else {"as_none": True} for n in named]
            return [{"as_tensors": named}]
        return [{"as_tensor": n} if n else {"as_none": True} for n in named]

    def inputs(self, node: Node) -> list[dict[str, Any]]:
        """The arguments of a call by the names of its schema."""
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            # Functions of `operator` name their operands; higher-order operators have no names.
            operands = "btf" if len(node.args) == 3 else "ab"  # of sym_ite, and of the others
            names = [""] * len(node.args) if _is_higher_order(node.target) else list(operands)
            given = [(n, a, "") for n, a in zip(names, node.args, strict=False)]
            named = [(k, v, "") for k, v in node.kwargs.items()]
        else:
            given = [(a.name, v, a.type) for a, v in zip(schema.arguments, node.args, strict=False)]
            kinds = {a.name: a.type for a in schema.arguments}
            named = [(k, v, kinds[k]) for k, v in node.kwargs.items()]
        return [
            {"name": n, "arg": self.argument(v, t), "kind": kind}
            for kind, rows in ((1, given), (2, named))
            for n, v, t in rows
        ]

    def call(self, node: Node) -> dict[str, Any]:
        """A call of an op."""
        single = None
        if getattr(node.target, "_schema", None) is None and _is_higher_order(node.target):
            single = isinstance(node.meta.get("val"), Tensor)
        return {
            "target": _target(node.target),
            "inputs": self.inputs(node),
            "outputs": self.outputs(node),
            "metadata": _metadata(node),
            "is_hop_single_tensor_return": single,
            "name": node.name,
        }

    def record(self) -> dict[str, Any]:
        """The whole graph."""
        nodes, inputs, outputs, single = [], [], [], False
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self.know(node)
                value = node.meta.get("val")
                plain = None if isinstance(value, SizeInt) else _plain(value)
                inputs.append(_reference(node) if plain is None else plain)
            elif node.op == "output":
                values = node.args[0]
                single = isinstance(values, Node)
                outputs = [self.argument(v) for v in ((values,) if single else values)]
            elif node.op == "call_function":
                self.know(node)
                if node.target is not operator.getitem:
                    nodes.append(self.call(node))
            elif node.op != "get_attr":
                raise NotImplementedError(f"a .pt2 file cannot hold a node of kind {node.op}")
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.symbols["int"],
            "sym_bool_values": self.symbols["bool"],
            "is_single_tensor_return": single,
            "custom_obj_values": {},
            "sym_float_values": self.symbols["float"],
        }


def graph_record(graph: Graph, module: Any) -> dict[str, Any]:
    """The record of a graph; `module` has its subgraphs."""
    return _GraphWriter(graph, module).record()


def _is_higher_order(target: Any) -> bool:
    return isinstance(target, HigherOrderOperator)


def _target(target: Any) -> str:
    """The name of a function that is called.

    Raises:
        NotImplementedError: it is one of rushlight's alone.
    """
    if isinstance(target, OpOverload):
        if target.namespace == "rushlight":
            raise NotImplementedError(
                f"a .pt2 file cannot name {target}: it is an op of rushlight alone"
            )
        return f"torch.ops.{target}"
    if _is_higher_order(target):
        return f"torch.ops.higher_order.{target}"
    if getattr(target, "__module__", "") == "_operator":
        return f"_operator.{target.__name__}"
    name = getattr(target, "__name__", "")
    if name.startswith("sym_") and getattr(rushlight, name, None) is target:
        return f"torch.{name}"
    raise NotImplementedError(f"a .pt2 file cannot name the function {target}")


def _metadata(node: Node) -> dict[str, str]:
    record = {}
    if node.stack_trace:
        record["stack_trace"] = node.stack_trace
    stack = node.meta.get("nn_module_stack")
    if stack:
        record["nn_module_stack"] = ";".join(
            f"{key},{name},{kind}" for key, (name, kind) in stack.items()
        )
    return record


# ---- signature ----

_LIFTED = {
    InputKind.PARAMETER: ("parameter", "parameter_name"),
    InputKind.BUFFER: ("buffer", "buffer_name"),
    InputKind.CONSTANT_TENSOR: ("tensor_constant", "tensor_constant_name"),
}
_CHANGED = {
    OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
    OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
    OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
    OutputKind.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", "parameter_name"),
    OutputKind.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", "user_input_name"),
}


def _argument_record(arg: Any) -> dict[str, Any]:
    if isinstance(arg, TensorArgument):
        return {"as_tensor": {"name": arg.name}}
    form = _NUMBERS.get(type(arg))
    if form is not None:
        return {form: {"as_name": arg.name}}
    plain = _plain(arg.value) if isinstance(arg, ConstantArgument) else None
    if plain is None:
        raise NotImplementedError(f"a .pt2 file cannot hold {arg}")
    return plain


def _input_record(spec: Any) -> dict[str, Any]:
    if spec.kind in _LIFTED:
        kind, field = _LIFTED[spec.kind]
        record = {"arg": {"name": spec.arg.name}, field: spec.target}
        if spec.kind is InputKind.BUFFER:
            record["persistent"] = bool(spec.persistent)
        return {kind: record}
    if spec.kind is not InputKind.USER_INPUT:
        raise NotImplementedError(f"a .pt2 file is not written with an input {spec}")
    if isinstance(spec.arg, ConstantArgument):
        return {"constant_input": {"name": spec.arg.name, "value": _argument_record(spec.arg)}}
    return {"user_input": {"arg": _argument_record(spec.arg)}}


def _output_record(spec: Any) -> dict[str, Any]:
    if spec.kind in _CHANGED:
        kind, field = _CHANGED[spec.kind]
        return {kind: {"arg": {"name": spec.arg.name}, field: spec.target}}
    if spec.kind is OutputKind.LOSS_OUTPUT:
        return {"loss_output": {"arg": {"name": spec.arg.name}}}
    return {"user_output": {"arg": _argument_record(spec.arg)}}


def _call_record(entry: ModuleCallEntry) -> dict[str, Any]:
    signature = entry.signature
    if signature is None:
        return {"fqn": entry.fqn, "signature": None}
    record = {
        "inputs": [_argument_record(a) for a in signature.inputs],
        "outputs": [_argument_record(a) for a in signature.outputs],
        "in_spec": treespec_dumps(signature.in_spec),
        "out_spec": treespec_dumps(signature.out_spec),
        "forward_arg_names": signature.forward_arg_names,
    }
    return {"fqn": entry.fqn, "signature": record}


def _range_record(range_: Any) -> dict[str, Any]:
    ends = (range_.lower, range_.upper)
    low, high = (n if math.isfinite(n) else None for n in ends)
    return {"min_val": low, "max_val": high}


def model_record(
    program: ExportedProgram, opset_version: dict[str, int] | None = None
) -> dict[str, Any]:
    """The record of a program without its tensors.

    Args:
        program: the program.
        opset_version: by namespace, a number that readers may look at.

    Raises:
        NotImplementedError: something in it has no form in the schema.
    """
    signature = program.graph_signature
    ranges = {
        str(symbol): _range_record(range_)
        for symbol, range_ in program.range_constraints.items()
        if getattr(symbol, "name", symbol) is not None  # not of sizes that follow from others
    }
    return {
        "graph_module": {
            "graph": graph_record(program.graph, program.graph_module),
            "signature": {
                "input_specs": [_input_record(s) for s in signature.input_specs],
                "output_specs": [_output_record(s) for s in signature.output_specs],
            },
            "module_call_graph": [_call_record(e) for e in program.module_call_graph],
            "metadata": {},
            "treespec_namedtuple_fields": _fields_of_namedtuples(program),
        },
        "opset_version": {"aten": 10, **(opset_version or {})},
        "range_constraints": ranges,
        "schema_version": {"major": MAJOR, "minor": MINOR},
        "verifiers": [program.dialect or "ATEN"],
        "torch_version": str(rushlight.__version__),
        "guards_code": [],
    }


def _fields_of_namedtuples(program: ExportedProgram) -> dict[str, Any]:
    """The fields of the named tuples among inputs and outputs, by name of their class."""
    found: dict[str, Any] = {}

    def walk(spec: Any) -> None:
        if spec.type is pytree.namedtuple and spec.context is not None:
            kind = spec.context
            found[f"{kind.__module__}.{kind.__qualname__}"] = {"field_names": list(kind._fields)}
        for child in spec.children():
            walk(child)

    for entry in program.module_call_graph:
        if entry.signature is not None:
            walk(entry.signature.in_spec)
            walk(entry.signature.out_spec)
    return found
