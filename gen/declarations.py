"""What C++ programs see of the ops: ops.h and the methods of class Tensor.

A form of an op is functional, inplace or out. What its kernels look like stands in kernels.py, what the functions do
in wrappers.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gen import types
from gen.table import Op, Type
from gen.text import HEADER, block, commas, header, source

NAMESPACES = ("fft", "linalg", "special")  # what Python has as modules of functions


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
        return "Tensor&"
    return "Tensor&" if len(op.results) == 1 else f"std::tuple<{commas(['Tensor&'] * len(op.results))}>"


def signature(op: Op, form: str, *, defaults: bool = False, name: str | None = None) -> str:
    """`Tensor add(const Tensor& self, …)`: the form as a free function."""
    outs = [f"const Tensor& {o}" for o in out_parameters(op)] if form == "out" else []
    parameters = commas(outs, types.parameters(op.args, defaults=defaults))
    return f"{result_of(op, form)} {name or name_of(op, form)}({parameters})"


def call_arguments(op: Op, **instead: str) -> str:
    return commas([instead.get(a.name, a.name) for a in op.args])


def with_numbers(op: Op, tensors: set[str]) -> Iterator[tuple[Op, dict[str, str]]]:
    """The op, and the op with numbers where it says Tensor|Scalar, but for `tensors`; how those are passed on."""
    names = [a.name for a in op.args if a.type.number and a.name not in tensors]
    for bits in range(1 << len(names)):
        passed = {name: f"make_number({name})" for i, name in enumerate(names) if bits >> i & 1}
        if not passed or not all(a.name in passed for a in op.tensors):
            args = [replace(a, type=Type("Scalar")) if a.name in passed else a for a in op.args]
            yield replace(op, args=args), passed


# ---- ops.h ----


def functions(op: Op, form: str) -> Iterator[str]:
    for taking, passed in with_numbers(op, {"self"} if form == "inplace" else set()):
        head = signature(taking, form, defaults=True)
        call = commas(out_parameters(op) if form == "out" else [], call_arguments(op, **passed))
        yield f"inline {head} {{ return {name_of(op, form)}({call}); }}" if passed else f"RL_API {head};"


def options_sooner(op: Op) -> Iterator[str]:
    """`randn(size, options)`: options stand right behind the last argument that is given, as libtorch has them."""
    names = [a.name for a in op.args]
    last = names.index("options") if "options" in names else 0
    first = next((i for i in reversed(range(last)) if not types.default(op.args[i])), -1) + 1
    for kept in range(first, last):
        left_out = {a.name: types.default(a) for a in op.args[kept:last]}
        args = [replace(a, default=None) if a.name == "options" else a for a in op.args if a.name not in left_out]
        args = [replace(a, default=None) if i < kept else a for i, a in enumerate(args)]
        head = signature(replace(op, args=args), "functional", defaults=True)
        yield f"inline {head} {{ return {op.name}({call_arguments(op, **left_out)}); }}"


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
        lines += [line for form in op.forms for line in functions(op, form)]
        lines += options_sooner(op)
    for space in NAMESPACES:
        lines += namespace(space, ops)
    text = header(["<cmath>", "", "<rushlight/tensor.h>"], "rushlight", lines)
    return text + "\n#include <rushlight/operators.h>\n"


# ---- methods ----


def methods(ops: list[Op]) -> Iterator[tuple[str, str, Op, str]]:
    """(result, name, op whose arguments are the method's, arguments of the call) of every method."""
    for op in ops:
        for form in op.forms if "method" in op.variants else []:
            receiver = op.args[op.receiver].name
            for taking, passed in with_numbers(op, {receiver}) if form != "out" else []:
                call = call_arguments(op, **{receiver: "*this"}, **passed)
                yield result_of(op, form), name_of(op, form), taking, call


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


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    return {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": methods_header(ops),
        "src/methods.cpp": methods_source(ops),
    }
