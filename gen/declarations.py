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

VISIBLE = "#pragma GCC visibility push(default)"
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


def heads(op: Op, form: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The functions of a form, one for each choice of tensors and numbers; how numbers are passed on."""
    for taking, passed in with_numbers(op, {"self"} if form == "inplace" else set()):
        yield signature(taking, form, defaults=True), passed


def functions(op: Op, form: str) -> Iterator[str]:
    for head, passed in heads(op, form):
        call = commas(out_parameters(op) if form == "out" else [], call_arguments(op, **passed))
        yield f"inline {head} {{ return {name_of(op, form)}({call}); }}" if passed else f"{head};"


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


def distinguish(ops: list[Op]) -> Iterator[tuple[Op, Op]]:
    """Each op, and as it is declared: a call that fits an earlier overload of its name too, since what would tell
    them apart is left out, means that one. Arguments of other names are other things, which the call must say.
    """
    earlier: dict[str, list[Op]] = {}
    for op in ops:
        args = op.args
        for other in earlier.setdefault(op.name, []):
            pairs = zip(op.args, other.args, strict=False)
            same = [types.parameter(a.type) == types.parameter(b.type) for a, b in pairs]
            shared = same.index(False) if False in same else len(same)
            named = all(a.name == b.name for a, b in zip(op.args[1:shared], other.args[1:shared], strict=True))
            optional = all(a.default is not None for a in op.args[shared:] + other.args[shared:])
            if named and optional and shared < len(op.args):
                args = [replace(a, default=None) if i <= shared else a for i, a in enumerate(args)]
        earlier[op.name].append(op)
        yield op, replace(op, args=args)


def namespace(space: str, ops: list[Op], *, defined: bool) -> list[str]:
    """The ops named after a namespace, under their short names there: linalg_svd is linalg::svd."""
    lines = []
    for op, declared in distinguish(ops):
        for form in op.forms if op.name.startswith(space + "_") else []:
            name = name_of(op, form)
            head = signature(declared, form, defaults=not defined, name=name.removeprefix(space + "_"))
            call = commas(out_parameters(op) if form == "out" else [], call_arguments(op))
            lines += block(head, [f"return rushlight::{name}({call});"]) if defined else [head + ";"]
    return ["", f"namespace {space} {{", *lines, f"}}  // namespace {space}"] if lines else []


def ops_header(ops: list[Op]) -> str:
    lines = ["// Said once rather than for each (RL_API), which costs every program memory to compile.", VISIBLE]
    for op, declared in distinguish(ops):
        lines.append(f"// {op.text}")
        lines += [line for form in op.forms for line in functions(declared, form)]
        lines += options_sooner(op)
    for space in NAMESPACES:
        lines += namespace(space, ops, defined=False)
    lines.append("#pragma GCC visibility pop")
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
    for space in NAMESPACES:
        lines += namespace(space, ops, defined=True)
    return source(["<rushlight/ops.h>"], "rushlight", lines)


# ---- documentation ----


def calls(overloads: list[Op]) -> list[str]:
    """All that a name is in C++: functions, in which namespace, and methods."""
    lines = []
    for op, declared in distinguish(overloads):
        space = next((s for s in NAMESPACES if op.name.startswith(s + "_")), None)
        for form in op.forms:
            short = f"{space}::{name_of(op, form).removeprefix(space + '_')}" if space else None
            lines += [signature(declared, form, defaults=True, name=short)] if short else []
            lines += [head for head, _ in heads(declared, form)] if not short else []
    for result, name, op, _ in methods(overloads):
        lines.append(f"{result} Tensor::{name}({types.method_parameters(op, defaults=True)}) const")
    return [line + ";" for line in lines]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    return {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": methods_header(ops),
        "src/methods.cpp": methods_source(ops),
    }
