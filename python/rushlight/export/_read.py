"""From the records of a `.pt2` file to an exported program. Nothing of the file is run."""

from __future__ import annotations

import keyword
import math
import operator
import re
from typing import Any

import rushlight
from rushlight import nn
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.export._expressions import parse
from rushlight.export._guards import range_guards, static_guards
from rushlight.export._schema import (
    DTYPES,
    FORMATS,
    LAYOUTS,
    MAJOR,
    MINOR,
    bool_of,
    device_of,
    fake_tensor,
    int_of,
)
from rushlight.export._sizes import FloatRange, Range, SizeFloat, int_oo
from rushlight.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from rushlight.export.graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.utils._pytree import treespec_loads

__all__ = ["program_of"]

_OPERATORS = {
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "pow",
    "neg",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "getitem",
}
_NUMBERS: dict[str, Any] = {
    "as_sym_int": SymIntArgument,
    "as_sym_float": SymFloatArgument,
    "as_sym_bool": SymBoolArgument,
}
_SYMBOLIC = {"sym_max", "sym_min", "sym_float", "sym_int", "sym_not", "sym_ite", "sym_sqrt"}
_NAME = re.compile(r"[A-Za-z_]\w*")

_BY_CODE = {
    kind: {code: value for value, code in table.items()}
    for kind, table in (
        ("as_scalar_type", DTYPES),
        ("as_layout", LAYOUTS),
        ("as_memory_format", FORMATS),
    )
}


def _float(value: Any) -> float:
    named = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
    return named[value] if isinstance(value, str) else float(value)


def _only(record: dict[str, Any]) -> tuple[str, Any]:
    """The one entry of a record that says of which kind its value is."""
    if not isinstance(record, dict) or len(record) != 1:
        raise ValueError(f"a .pt2 file has {str(record)[:80]} where one kind of value is wanted")
    return next(iter(record.items()))


def function_of(name: str) -> Any:
    """The function of a name in a file, None if there is none."""
    parts = name.split(".")
    if name.startswith("_operator.") and parts[1] in _OPERATORS:
        return getattr(operator, parts[1])
    if parts[0] == "torch" and len(parts) == 2 and parts[1] in _SYMBOLIC:
        return getattr(rushlight, parts[1])
    if name.startswith("torch.ops.higher_order.") and len(parts) == 4:
        from rushlight._higher_order_ops import operators

        return operators.BY_NAME.get(parts[3])
    if name.startswith("torch.ops.") and len(parts) in (4, 5):
        try:
            packet = getattr(getattr(rushlight.ops, parts[2]), parts[3])
            return getattr(packet, parts[4] if len(parts) == 5 else "default")
        except AttributeError:
            return None
    return None


class _GraphReader:
    """Builds one graph."""

    def __init__(self, record: dict[str, Any], mode: FakeTensorMode, symbols: dict[str, int]):
        self.record, self.mode, self.symbols = record, mode, symbols
        self.graph, self.root = Graph(), nn.Module()
        self.nodes: dict[str, Node] = {}

    # ---- values ----

    def node(self, name: str) -> Node:
        """The node of a name."""
        if name not in self.nodes:
            raise ValueError(f"a .pt2 file uses {name!r} before it is computed")
        return self.nodes[name]

    def argument(self, record: dict[str, Any]) -> Any:
        """An argument of a node."""
        kind, value = _only(record)
        if kind in ("as_none", "as_string", "as_bool", "as_strings", "as_bools"):
            return None if kind == "as_none" else value
        if kind in _BY_CODE:
            return _BY_CODE[kind][value]
        if kind in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return self.symbolic(value)
        if kind in ("as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self.symbolic(v) for v in value]
        if kind == "as_optional_tensors":
            return [self.argument(v) for v in value]
        simple = {
            "as_int": int,
            "as_float": _float,
            "as_ints": lambda v: [int(n) for n in v],
            "as_floats": lambda v: [_float(n) for n in v],
            "as_int_lists": lambda v: [[int(n) for n in part] for part in v],
            "as_device": device_of,
            "as_complex": lambda v: complex(_float(v["real"]), _float(v["imag"])),
            "as_operator": function_of,
            "as_graph": self.subgraph,
            "as_nested_tensors": lambda v: [[self.symbolic(t) for t in part] for part in v],
        }
        if kind not in simple:
            raise NotImplementedError(
                f"a .pt2 file has an argument of kind {kind}, which is not read"
            )
        return simple[kind](value)

    def symbolic(self, record: dict[str, Any]) -> Any:
        """The node that a record names, or a number."""
        if "name" in record or "as_name" in record:
            return self.node(record["name"] if "name" in record else record["as_name"])
        return self.argument(record)

    def subgraph(self, record: dict[str, Any]) -> Node:
        """A graph that an op takes as a function, read as an attribute."""
        inner = _GraphReader(record["graph"], self.mode, self.symbols)
        module = inner.module()
        name = record["name"] if _NAME.fullmatch(record["name"]) else "subgraph"
        while hasattr(self.root, name):
            name += "_"
        setattr(self.root, name, module)
        return self.graph.create_node("get_attr", name)

    def known(self, name: str) -> Any:
        """What the file says of the value of a node."""
        record = self.record
        if name in record["tensor_values"]:
            return fake_tensor(self.mode, record["tensor_values"][name], self.symbols)
        if name in record["sym_int_values"]:
            return int_of(record["sym_int_values"][name], self.symbols)
        if name in record.get("sym_bool_values", {}):
            return bool_of(record["sym_bool_values"][name])
        if name in record.get("sym_float_values", {}):
            told = record["sym_float_values"][name].get("as_expr", {})
            hint = (told.get("hint") or {}).get("as_float", math.nan)
            return SizeFloat(_float(hint), parse(told["expr_str"]) if told else None)
        return None

    def place(self, node: Node, name: str) -> None:
        """Remember a node under the name that the file gives it."""
        node.meta["val"] = self.known(name)
        self.nodes[name] = node

    # ---- nodes ----

    def inputs(self, names: list[str] | None = None) -> None:
        """The placeholders."""
        for i, record in enumerate(self.record["inputs"]):
            kind, value = _only(record)
            if kind in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
                name = value.get("name", value.get("as_name"))
                node = self.graph.create_node("placeholder", str(name))
                node.target = node.name  # a name that code can have
                self.place(node, name)
            elif kind == "as_custom_obj":
                raise NotImplementedError("a .pt2 file has an object of a class, which is not read")
            else:
                name = names[i] if names else f"input_{i}"
                node = self.graph.create_node("placeholder", str(name))
                node.target = node.name
                node.meta["val"] = self.argument(record)

    def call(self, record: dict[str, Any], function: Any) -> None:
        """A call of a function, and what takes its results out."""
        schema = getattr(function, "_schema", None)
        only = {a.name for a in schema.arguments if a.kwarg_only} if schema else set()
        args, kwargs = [], {}
        for given in record["inputs"]:
            value = self.argument(given["arg"])
            by_name = given["kind"] == 2 if given.get("kind") else given["name"] in only
            if by_name:
                known = (a.name for a in schema.arguments) if schema else ()
                if given["name"] not in known:
                    raise ValueError(f"a .pt2 file passes {given['name']!r} to {record['target']}")
                kwargs[given["name"]] = value
            elif schema and len(args) < len(schema.arguments):
                self.fill(args, schema, given["name"])
                args.append(value)
            else:
                args.append(value)
        outputs = record["outputs"]
        name = record.get("name") or self.name_of(outputs, function)
        node = self.graph.create_node("call_function", function, tuple(args), kwargs, name)
        _set_meta(node, record.get("metadata") or {})
        several = schema is not None and len(schema.returns) > 1
        if record.get("is_hop_single_tensor_return") is False:
            several = True
        self.results(node, outputs, several)

    @staticmethod
    def fill(args: list[Any], schema: Any, name: str) -> None:
        """Defaults for positional arguments that the file leaves out before this one."""
        names = [a.name for a in schema.arguments]
        at = names.index(name) if name in names else len(args)
        while len(args) < at:
            args.append(schema.arguments[len(args)].default_value)

    @staticmethod
    def name_of(outputs: list[Any], function: Any) -> str | None:
        kind, value = _only(outputs[0]) if len(outputs) == 1 else ("", {})
        if kind in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            return value.get("name", value.get("as_name"))
        return getattr(getattr(function, "overloadpacket", None), "__name__", None)

    def results(self, node: Node, outputs: list[Any], several: bool) -> None:
        """Give the results of a call their names."""
        if len(outputs) == 1 and not several:
            kind, value = _only(outputs[0])
            if kind == "as_tensors":
                self.items(node, value)
            elif kind != "as_none":
                self.place(node, value.get("name", value.get("as_name")))
        elif outputs:
            self.items(node, [None if "as_none" in o else _only(o)[1] for o in outputs])

    def items(self, node: Node, records: list[Any]) -> None:
        """Nodes that take the results of a call out one by one."""
        values = []
        for i, record in enumerate(records):
            if record is None:
                values.append(None)
                continue
            name = record.get("name", record.get("as_name"))
            target = operator.getitem
            item = self.graph.create_node("call_function", target, (node, i), {}, name)
            item.meta.update({k: v for k, v in node.meta.items() if k != "val"})
            self.place(item, name)
            values.append(item.meta["val"])
        node.meta["val"] = values

    def build(self, names: list[str] | None = None) -> Graph:
        """The whole graph.

        Raises:
            NotImplementedError: ops are not there; all of them are named.
        """
        wanted = dict.fromkeys(n["target"] for n in self.record["nodes"])
        functions = {name: function_of(name) for name in wanted}
        missing = [name for name, function in functions.items() if function is None]
        if missing:
            raise NotImplementedError(
                f"a .pt2 file calls what rushlight does not have: {', '.join(missing)}"
            )
        self.inputs(names)
        for record in self.record["nodes"]:
            self.call(record, functions[record["target"]])
        values = tuple(self.argument(o) for o in self.record["outputs"])
        single = self.record.get("is_single_tensor_return") and len(values) == 1
        self.graph.output(values[0] if single else values)
        return self.graph

    def module(self) -> GraphModule:
        """The graph as a module."""
        return GraphModule(self.root, self.build())


def _set_meta(node: Node, metadata: dict[str, str]) -> None:
    if metadata.get("stack_trace"):
        node.meta["stack_trace"] = metadata["stack_trace"]
    stack = {}
    for entry in filter(None, metadata.get("nn_module_stack", "").split(";")):
        key, _, rest = entry.partition(",")
        name, _, kind = rest.rpartition(",")
        stack[key] = (name, kind)
    if stack:
        node.meta["nn_module_stack"] = stack


# ---- signature ----


def _is_name(name: Any) -> bool:
    """Whether code can have a parameter of that name."""
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def _path(name: Any) -> str:
    """A dotted name in a module, which reaches nothing but what the file brings."""
    parts = str(name).split(".")
    if any(
        not _PART.fullmatch(part) or part.startswith("__") or part in _RESERVED for part in parts
    ):
        raise ValueError(f"a .pt2 file has the name {name!r}, which a module cannot have")
    return str(name)


_PART = re.compile(r"[\w@-]{1,200}")
_RESERVED = {"forward", "training", "_parameters", "_buffers", "_modules"}


def _input_spec(record: dict[str, Any]) -> InputSpec:
    kind, value = _only(record)
    if kind == "user_input":
        form, named = _only(value["arg"])
        if form == "as_tensor":
            return InputSpec(InputKind.USER_INPUT, TensorArgument(named["name"]), None)
        if form == "as_sym_int":
            return InputSpec(InputKind.USER_INPUT, SymIntArgument(named["as_name"]), None)
        raise NotImplementedError(f"a .pt2 file has an input of kind {form}, which is not read")
    if kind == "constant_input":
        argument = ConstantArgument(value["name"], _constant(value["value"]))
        return InputSpec(InputKind.USER_INPUT, argument, None)
    lifted = {
        "parameter": (InputKind.PARAMETER, "parameter_name"),
        "buffer": (InputKind.BUFFER, "buffer_name"),
        "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
    }
    if kind not in lifted:
        raise NotImplementedError(f"a .pt2 file has an input of kind {kind}, which is not read")
    which, field = lifted[kind]
    persistent = bool(value.get("persistent", True)) if kind == "buffer" else None
    return InputSpec(which, TensorArgument(value["arg"]["name"]), _path(value[field]), persistent)


def _constant(record: dict[str, Any]) -> Any:
    kind, value = _only(record)
    if kind == "as_none":
        return None
    return _float(value) if kind == "as_float" else value


def _output_spec(record: dict[str, Any]) -> OutputSpec:
    kind, value = _only(record)
    if kind == "user_output":
        form, named = _only(value["arg"])
        if form == "as_tensor":
            return OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(named["name"]), None)
        if form in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            if "as_name" in named:
                return OutputSpec(OutputKind.USER_OUTPUT, _NUMBERS[form](named["as_name"]), None)
            form, named = _only(named)
        return OutputSpec(
            OutputKind.USER_OUTPUT, ConstantArgument("", _constant({form: named})), None
        )
    changed = {
        "loss_output": (OutputKind.LOSS_OUTPUT, None),
        "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
        "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
        "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
        "gradient_to_parameter": (OutputKind.GRADIENT_TO_PARAMETER, "parameter_name"),
        "gradient_to_user_input": (OutputKind.GRADIENT_TO_USER_INPUT, "user_input_name"),
    }
    if kind not in changed:
        raise NotImplementedError(f"a .pt2 file has an output of kind {kind}, which is not read")
    which, field = changed[kind]
    return OutputSpec(which, TensorArgument(value["arg"]["name"]), value[field] if field else None)


def _specs_of(records: list[dict[str, Any]]) -> list[ArgumentSpec]:
    return [
        TensorArgument(v["name"]) if k == "as_tensor" else ConstantArgument("", _constant({k: v}))
        for k, v in map(_only, records)
    ]


def _call_entry(record: dict[str, Any]) -> ModuleCallEntry:
    told = record.get("signature")
    if not told:
        return ModuleCallEntry(record["fqn"], None)
    inputs, outputs = _specs_of(told["inputs"]), _specs_of(told["outputs"])
    specs = (treespec_loads(told["in_spec"]), treespec_loads(told["out_spec"]))
    names = told.get("forward_arg_names")
    keywords = (specs[0].children()[1].context or ()) if len(specs[0].children()) == 2 else ()
    if not all(_is_name(n) for n in (*(names or ()), *keywords)):
        raise ValueError(f"a .pt2 file has arguments called {names} and {list(keywords)}")
    return ModuleCallEntry(record["fqn"], ModuleCallSignature(inputs, outputs, *specs, names))


def program_of(
    model: dict[str, Any],
    state: dict[str, Any],
    constants: dict[str, Any],
    example_inputs: Any,
) -> ExportedProgram:
    """The program of a model's record and its tensors.

    Raises:
        RuntimeError: the record is of another version.
        ValueError: it contradicts itself.
        NotImplementedError: it has ops or arguments that are not known.
    """
    version = model.get("schema_version") or {}
    if version.get("major") != MAJOR:
        raise RuntimeError(
            f"a .pt2 file of schema {version.get('major')}.{version.get('minor')} is not read; "
            f"this is version {MAJOR}.{MINOR}"
        )
    record = model["graph_module"]
    specs = [_input_spec(s) for s in record["signature"]["input_specs"]]
    outputs = [_output_spec(s) for s in record["signature"]["output_specs"]]
    symbols: dict[str, int] = {}
    reader = _GraphReader(record["graph"], FakeTensorMode(allow_non_fake_inputs=True), symbols)
    graph = reader.build([s.arg.name for s in specs])
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    if len(inputs) != len(specs) or len(record["graph"]["outputs"]) != len(outputs):
        raise ValueError("the signature of a .pt2 file does not fit its graph")
    _rename(specs, outputs, reader.nodes)
    ranges = {symbol_of(k): _range(k, v) for k, v in (model.get("range_constraints") or {}).items()}
    users = [n for n, s in zip(inputs, specs, strict=True) if s.kind is InputKind.USER_INPUT]
    guards = [g for n in users for g in static_guards(n.name, n.meta["val"])]
    guards += range_guards(users, ranges)
    verifier = (model.get("verifiers") or ["TRAINING"])[0]
    return ExportedProgram(
        reader.root,
        graph,
        ExportGraphSignature(specs, outputs),
        state,
        ranges,
        [_call_entry(e) for e in record["module_call_graph"]],
        example_inputs,
        constants,
        guards=guards,
        dialect=str(verifier),
    )


def _rename(specs: list[Any], outputs: list[Any], nodes: dict[str, Node]) -> None:
    """Names that a graph here cannot have are others."""
    for spec in (*specs, *outputs):
        if spec.arg.name in nodes:
            spec.arg.name = nodes[spec.arg.name].name


def symbol_of(text: str) -> Any:
    """The expression of a range: mostly a symbol."""
    from rushlight.export._expressions import Expression

    if _NAME.fullmatch(text):
        return Expression.symbol(text)
    return text


def _range(name: str, record: dict[str, Any]) -> Range:
    lower, upper = record.get("min_val"), record.get("max_val")
    if name.startswith("zuf"):
        return FloatRange(-int_oo if lower is None else lower, int_oo if upper is None else upper)
    least = -int_oo if name.startswith(("u", "zu")) else 0
    return Range(least if lower is None else int(lower), int_oo if upper is None else int(upper))
