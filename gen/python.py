"""Python's functions and methods in C++: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gen import types
from gen.declarations import out_parameters
from gen.signatures import (
    FUNCTIONS,
    INPLACE,
    METHODS,
    by_name,
    docstring,
    forms_of,
    has_varargs,
    python_arguments,
    python_name,
    rows,
    text_signature,
)
from gen.table import Arg, Op
from gen.text import block, commas, fill, flag, pieces, source
from ops.deprecated import ORDERS

NAMES_PER_FILE = 24


# ---- one signature ----


def place(op: Op, name: str) -> int:
    """The row of an argument."""
    return [row.name for row in rows(op)].index("dtype" if name == "options" else name)


def accessor(op: Op, arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method, default = types.spelling(arg.type).accessor, types.default(arg)
    if arg.type.base in types.UNDEFINED_IS_NONE:
        default = ""
    elif arg.type.optional:
        method = f"optional_{method}"
        default = "" if default == "{}" else default
    if default and arg.type.is_list and not default.startswith("{"):
        default = "{" + default + "}"
    return f"const auto& {arg.name} = a.{method}({commas(str(place(op, arg.name)), default)});"


def run_case(op: Op, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where `op` is a reordering of it: what is not bound keeps its default.
    """
    bound = {arg.name for arg in op.args}
    lines = [accessor(op, arg) for arg in python_arguments(op)]
    lines += [
        f"const {types.owning_type(arg.type)} {arg.name} = {types.default(arg)};"
        for arg in original.args
        if arg.name not in bound
    ]
    arguments = commas([arg.name for arg in original.args])
    forms = forms_of(op)
    inplace = [form for form in forms if form in INPLACE]
    if inplace:
        call = f"[&] {{ rushlight::{op.inplace_name}({arguments}); }}"
        given = [f"return finish_with(a, a.object({op.receiver}), {call});"]
        if inplace == forms:
            return lines + given
        lines += block("if (a.inplace())", given)
    if not op.results and op.on_list:
        return [*lines, f"return finish_with(a, a.object(0), [&] {{ rushlight::{op.name}({arguments}); }});"]
    names, named = [r.name for r in op.results], ""
    if len(names) > 1 and all(names):
        lines.insert(0, "static PyTypeObject* type = nullptr;")
        named = f'named_result(type, "{op.name}", {{{commas([c_string(n) for n in names])}}})'
    if op.python_out and "FunctionForm" in forms:
        i = place(op, "out")
        outs = commas([f"const Tensor& {o}" for o in out_parameters(op)])
        call = f"[&]({outs}) {{ rushlight::{op.name}_out({commas(out_parameters(op), arguments)}); }}"
        finish = f"finish_out<{len(names)}>({commas(f'a, {i}', c_string(op.name), call, named)})"
        lines += block(f"if (a.is_given({i}))", [f"return {finish};"])
    if op.kind == "view":  # nothing to release the GIL for
        return [*lines, f"return wrap_result(rushlight::{op.name}({arguments}));"]
    call = f"[&] {{ return rushlight::{op.name}({arguments}); }}"
    return [*lines, f"return finish({commas('a', call, named)});"]


def c_string(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


def param(row: Arg) -> str:
    """A row of a signature's table."""
    flags = [flag(row.type.optional or row.default in ("None", "[]")), flag(row.keyword_only), flag(row.name == "out")]
    shown = c_string(types.python_default(row))
    return f"{{{commas(c_string(row.name), f'Kind::{types.spelling(row.type).kind}', flags, shown)}}},"


def reorder(op: Op, order: str) -> Op:
    """A deprecated order: the op with these arguments, all positional, in place of its own; it has no out=."""
    by_name = {a.name: a for a in op.args}
    args = [replace(by_name[n], default=None, keyword_only=False) for n in order.split(", ")]
    return replace(op, args=args, variants=op.variants - {"out"})


# ---- one name ----

PARAMS = """
constexpr Param ${name}_params_$k[] = {
    $rows
};
"""

NAME = """
// ---- $name ----

$tables
constexpr Signature ${name}_signatures[] = {
    $signatures
};
PyObject* ${name}_run([[maybe_unused]] const Arguments& a) {
  switch (a.signature()) {
    $cases
  }
  Py_UNREACHABLE();
}
constexpr Parser ${name}_parser = {"$shown", ${name}_signatures, $count, ${name}_run, &$owner};

"""


def name_source(name: str, overloads: list[Op]) -> list[str]:
    """The tables and the calls of a name."""
    tables, signatures, cases = [], [], []
    old = [(reorder(overloads[0], order), overloads[0]) for order in ORDERS.get(name, [])]
    for k, (op, original) in enumerate([*((op, op) for op in overloads), *old]):
        tables += fill(PARAMS, name=name, k=k, rows=[param(row) for row in rows(op)])
        flags = commas([flag(has_varargs(op)), flag(op is not original)])
        signatures.append(f"{{{name}_params_{k}, {' | '.join(forms_of(op))}, {op.receiver}, {flags}}},")
        cases += block(f"case {k}:", run_case(op, original))
    first = overloads[0]
    count, shown, owner = len(signatures), name, "ops_owner"
    if first.functional_name:
        shown, owner = first.functional_name, "functional_owner"
    elif first.nn or first.wrapped:
        owner = "nn_owner" if first.nn else "wrapped_owner"
    lists = {"tables": tables, "signatures": signatures, "cases": cases}
    return [*fill(NAME, name=name, shown=shown, count=count, owner=owner, **lists), ""]


# ---- files ----

FAMILY = """
namespace {

$calls
Binding rows[] = {
    $rows
};
const Bindings bindings(rows);

}  // namespace
"""


def entries(name: str, overloads: list[Op]) -> list[str]:
    """The functions and methods of a name."""
    lines = []
    for form in (*FUNCTIONS, *METHODS):
        if any(form in forms_of(op) for op in overloads):
            first = overloads[0]
            shown = python_name(first, form) if form in INPLACE else first.functional_name or name
            other = "functional_owner" if first.functional else "listed_owner" if first.listed else ""
            also = f"&{other}" if other and form in FUNCTIONS else "nullptr"
            text = f"{shown}{text_signature(overloads, form)}\n--\n\n{docstring(overloads, form)}"
            lines.append(f'RL_BINDING({name}_parser, {form}, "{shown}", {also}, {c_string(text)}),')
    return lines


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {}
    includes = ["<rushlight/ops.h>", "", "python/bindings.h", "python/parser.h"]
    for family, part in pieces(list(by_name(ops).items()), NAMES_PER_FILE, lambda named: named[1][0].family):
        calls = [line for name, overloads in part for line in name_source(name, overloads)]
        rows = [line for name, overloads in part for line in entries(name, overloads)]
        text = source(includes, "rushlight::python", fill(FAMILY, calls=calls, rows=rows))
        files[f"python/ops_{family}.cpp"] = text
    return files
