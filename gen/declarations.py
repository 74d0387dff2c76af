"""What C++ programs see of the ops: ops.h, the methods of class Tensor, and the boxed registry.

A form of an op is functional, inplace or out. What its kernels look like stands in kernels.py, what the functions do
in wrappers.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

from gen import types
from gen.table import Op, Type
from gen.text import HEADER, block, commas, fill, header, pieces, source

NAMESPACES = ("fft", "linalg", "special")  # what Python has as modules of functions
HAND_WRITTEN_METHODS = {"item", "size", "stride", "is_contiguous", "requires_grad_", "retain_grad"}
CALLS_PER_FILE = 60


def schema_hash(ops: list[Op]) -> str:
    return hashlib.sha256("\n".join(op.text for op in ops).encode()).hexdigest()[:16]


# ---- forms ----


def name_of(op: Op, form: str) -> str:
    return {"functional": op.name, "inplace": op.inplace_name, "out": op.name + "_out"}[form]


def out_parameters(op: Op) -> list[str]:
    if len(op.results) == 1:
        return ["out"]
    return ["out_" + (r.name or f"out{i}") for i, r in enumerate(op.results)]


def result_of(op: Op, form: str) -> str:
    if form == "functional":
        return types.result_type(op.results)
    if form == "inplace":
        return "Tensor&" if op.on_self else "void"  # what writes into lists of tensors gives nothing
    return "Tensor&" if len(op.results) == 1 else f"std::tuple<{commas(['Tensor&'] * len(op.results))}>"


def signature(op: Op, form: str, *, defaults: bool = False, name: str | None = None) -> str:
    """`Tensor add(const Tensor& self, …)`: the form as a free function."""
    outs = [f"const Tensor& {o}" for o in out_parameters(op)] if form == "out" else []
    parameters = commas(outs, types.parameters(op.args, defaults=defaults))
    return f"{result_of(op, form)} {name or name_of(op, form)}({parameters})"


def call_arguments(op: Op, **instead: str) -> str:
    return commas([instead.get(a.name, a.name) for a in op.args])


def taking_numbers(op: Op, names: set[str]) -> Op:
    """The op with numbers in place of these arguments."""
    return replace(op, args=[replace(a, type=Type("Scalar")) if a.name in names else a for a in op.args])


# ---- ops.h ----


def number_overloads(op: Op, form: str) -> list[str]:
    """Where a schema says Tensor|Scalar, overloads that take the number."""
    numbers = [a.name for a in op.args if a.type.number]
    lines = []
    for bits in range(1, 1 << len(numbers)):
        chosen = {name for i, name in enumerate(numbers) if bits >> i & 1}
        if chosen >= {a.name for a in op.tensors} or (form == "inplace" and "self" in chosen):
            continue
        outs = out_parameters(op) if form == "out" else []
        call = commas(outs, call_arguments(op, **{n: f"make_number({n})" for n in chosen}))
        head = signature(taking_numbers(op, chosen), form, defaults=True)
        lines.append(f"inline {head} {{ return {name_of(op, form)}({call}); }}")
    return lines


def namespace(space: str, ops: list[Op]) -> list[str]:
    """The ops named after a namespace, under their short names there: linalg_svd is linalg::svd."""
    lines = []
    for op in ops:
        if op.name.startswith(space + "_") and "functional" in op.forms:
            head = signature(op, "functional", defaults=True, name=op.name.removeprefix(space + "_"))
            lines.append(f"inline {head} {{ return rushlight::{op.name}({call_arguments(op)}); }}")
    return ["", f"namespace {space} {{", *lines, f"}}  // namespace {space}"] if lines else []


def ops_header(ops: list[Op]) -> str:
    lines = []
    for op in ops:
        lines.append(f"// {op.text}")
        for form in op.forms:
            lines += [f"RL_API {signature(op, form, defaults=True)};", *number_overloads(op, form)]
    for space in NAMESPACES:
        lines += namespace(space, ops)
    lines += ["", f'inline constexpr const char* schema_hash = "{schema_hash(ops)}";']
    text = header(["<cmath>", "", "<rushlight/tensor.h>"], "rushlight", lines)
    return text + "\n#include <rushlight/operators.h>\n"


# ---- methods ----


def methods(ops: list[Op]) -> Iterator[tuple[str, str, Op, str]]:
    """(result, name, op whose arguments are the method's, arguments of the call) of every method."""
    for op in ops:
        if "method" not in op.variants or op.receiver < 0 or op.name in HAND_WRITTEN_METHODS:
            continue
        receiver = op.args[op.receiver].name
        number = next((a.name for a in op.args if a.type.number and a.name != receiver), None)
        for form in op.forms:
            if form == "functional" or (form == "inplace" and op.args[0].name == "self"):
                name, result = name_of(op, form), result_of(op, form)
                yield result, name, op, call_arguments(op, **{receiver: "*this"})
                if number is not None:
                    call = call_arguments(op, **{receiver: "*this", number: f"make_number({number})"})
                    yield result, name, taking_numbers(op, {number}), call


def methods_header(ops: list[Op]) -> str:
    lines = [
        f"{result} {name}({types.method_parameters(op, defaults=True)}) const;\n"
        for result, name, op, _ in methods(ops)
    ]
    return HEADER + "".join(lines)


def methods_source(ops: list[Op]) -> str:
    lines = []
    for result, name, op, call in methods(ops):
        head = f"{result} Tensor::{name}({types.method_parameters(op)}) const"
        lines += block(head, [f"return rushlight::{name}({call});"])
    return source(["<rushlight/ops.h>"], "rushlight", lines)


# ---- the boxed registry ----


def registry(ops: list[Op]) -> list[tuple[str, Op, str]]:
    """(name, op, form) of every boxed entry, sorted by name."""
    entries = [(name_of(op, form), op, form) for op in ops for form in op.forms if form != "out"]
    return sorted(entries, key=lambda e: e[0])


REGISTRY = """
namespace boxed {
$declarations
}  // namespace boxed

extern const OpInfo op_infos[];
const OpInfo op_infos[] = {
    $rows
};

ArrayRef<OpInfo> all_ops() { return {op_infos, $count}; }
"""


def registry_sources(entries: list[tuple[str, Op, str]]) -> Iterator[str]:
    head = "std::vector<Value> call_{}(const std::vector<Value>& a)"
    calls, rows = [], []
    for i, (name, op, form) in enumerate(entries):
        pointer = signature(op, form, name="(*)")
        calls += block(head.format(i), [f"return call_boxed(static_cast<{pointer}>({name}), a);"])
        schema = op.text if name == op.name else op.text.replace(op.name, name, 1)
        rows.append(f'{{"{name}", "{op.overload}", {json.dumps(schema)}, {len(op.args)}, boxed::call_{i}}},')
    declarations = [head.format(i) + ";" for i in range(len(entries))]
    table = fill(REGISTRY, declarations=declarations, rows=rows, count=len(entries))
    yield source(["<rushlight/mode.h>"], "rushlight", table)
    for _, part in pieces(calls, 3 * CALLS_PER_FILE):
        yield source(["<rushlight/ops.h>", "", "ops/wrappers.h"], "rushlight::boxed", part)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": methods_header(ops),
        "src/methods.cpp": methods_source(ops),
    }
    return files | {f"src/registry_{i}.cpp": text for i, text in enumerate(registry_sources(registry(ops)))}
