"""Python's functions and methods in C++: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gen import types
from gen.signatures import (
    FUNCTIONS,
    INPLACE,
    METHODS,
    by_name,
    docstring,
    forms_of,
    has_varargs,
    python_name,
    rows,
)
from gen.table import Arg, Op
from gen.text import block, commas, fill, flag, pieces, source
from ops.deprecated import ORDERS

NAMES_PER_FILE = 24
MOST_PARAMETERS = 24  # class Arguments has room for so many


# ---- one signature ----


def place(op: Op, name: str) -> int:
    """The row of an argument."""
    return [row.name for row in rows(op)].index("dtype" if name == "options" else name)


def accessor(op: Op, arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method, default = types.spelt(arg.type).accessor, types.default(arg)
    if arg.type.base in types.UNDEFINED_IS_NONE:
        default = ""
    elif arg.type.optional:
        method = f"optional_{method}"
        default = "" if default == "{}" else default
    if default and arg.type.is_list and not default.startswith("{"):
        default = "{" + default + "}"
    return f"const auto& {arg.name} = a.{method}({commas(str(place(op, arg.name)), default)});"


def passed(arg: Arg) -> str:
    """The local as the C++ function takes it."""
    if arg.type.is_list and arg.type.optional and arg.type.base == "float":
        return f"({arg.name} ? std::optional(ArrayRef<double>(*{arg.name})) : std::nullopt)"
    return arg.name


def given_out(op: Op, named: str, arguments: str) -> list[str]:
    """The statements of a call with out=."""
    i, n = place(op, "out"), len(op.results)
    if n == 1:
        given = f"const Tensor& out = a.tensor({i});"
        finish = f"finish_given(a, a.object({i}), [&] {{ rushlight::{op.name}_out(out, {arguments}); }})"
    else:
        given = f'const std::vector<Tensor> out = a.out_tensors({i}, {n}, "{op.name}");'
        call = f"rushlight::{op.name}_out({commas([f'out[{k}]' for k in range(n)], arguments)})"
        finish = f"finish_named(a, {named}, [&]() -> std::tuple<{commas(['Tensor'] * n)}> {{ return {call}; }})"
    return block(f"if (a.given({i}))", [given, f"return {finish};"])


def run_case(op: Op, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where `op` is a reordering of it: what is not bound keeps its default.
    """
    bound = {arg.name for arg in op.args}
    lines = [accessor(op, arg) for arg in op.args]
    lines += [
        f"const {types.owned(arg.type)} {arg.name} = {types.default(arg)};"
        for arg in original.args
        if arg.name not in bound
    ]
    arguments = commas([passed(arg) for arg in original.args])
    forms = forms_of(op)
    inplace = [form for form in forms if form in INPLACE]
    if inplace:
        target = f"a.object({op.receiver})" if op.receiver >= 0 else "Py_None"
        given = [f"return finish_given(a, {target}, [&] {{ rushlight::{op.inplace_name}({arguments}); }});"]
        if inplace == forms:
            return lines + given
        lines += block("if (a.inplace())", given)
    names = [r.name for r in op.results]
    named = "nullptr"
    if len(names) > 1 and all(names):
        lines.insert(0, "static PyTypeObject* type = nullptr;")
        named = f'named_result(type, "{op.name}", {{{commas([quoted(n) for n in names])}}})'
    if "out" in op.forms and "FunctionForm" in forms:
        lines += given_out(op, named, arguments)
    finish = {0: "finish_given(a, Py_None", 1: "finish(a"}.get(len(names), f"finish_named(a, {named}")
    return [*lines, f"return {finish}, [&] {{ return rushlight::{op.name}({arguments}); }});"]


def quoted(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


def table(op: Op, symbol: str) -> list[str]:
    lines = []
    for row in rows(op):
        none = row.type.optional or row.default == "None"
        flags = commas([flag(none), flag(row.keyword_only), flag(row.name == "out")])
        kind = types.spelt(row.type).kind
        lines.append(f'{{"{row.name}", Kind::{kind}, {flags}, {quoted(types.shown_default(row))}}},')
    return fill("const Param $symbol[] = {\n    $lines\n};", symbol=symbol, lines=lines) if lines else []


def reordered(op: Op, order: str) -> Op:
    """A deprecated order: the op with these arguments, all positional, in place of its own; it has no out=."""
    by_name = {a.name: a for a in op.args}
    args = [replace(by_name[n], default=None, keyword_only=False) for n in order.split(", ")]
    return replace(op, args=args, variants=op.variants - {"out"})


# ---- one name ----

NAME = """
// ---- $name ----

$tables
const Signature ${name}_signatures[] = {
    $signatures
};
PyObject* ${name}_run([[maybe_unused]] const Arguments& a) {
  switch (a.signature()) {
    $cases
  }
  Py_UNREACHABLE();
}
const Parser ${name}_parser = {"$name", ${name}_signatures, $count, ${name}_run, &$owner};

"""


def name_source(name: str, overloads: list[Op]) -> list[str]:
    """The tables and the calls of a name."""
    tables, signatures, cases = [], [], []
    old = [(reordered(overloads[0], order), overloads[0]) for order in ORDERS.get(name, [])]
    for k, (op, original) in enumerate([*((op, op) for op in overloads), *old]):
        count = len(rows(op))
        if count > MOST_PARAMETERS:
            raise ValueError(f"{name}: more than {MOST_PARAMETERS} parameters")
        symbol = f"{name}_params_{k}" if count else "nullptr"
        tables += table(op, symbol)
        flags = commas([flag(has_varargs(op)), flag(op is not original)])
        signatures.append(f"{{{symbol}, {count}, {' | '.join(forms_of(op))}, {op.receiver}, {flags}}},")
        cases += block(f"case {k}:", run_case(op, original))
    owner = "nn_owner" if overloads[0].nn else "ops_owner"
    return [
        *fill(NAME, name=name, tables=tables, signatures=signatures, cases=cases, count=len(signatures), owner=owner),
        "",
    ]


# ---- files ----

FAMILY = """
namespace {

$calls
PyMethodDef functions[] = {
    $functions
    {},
};
PyMethodDef nn_functions[] = {
    $nn_functions
    {},
};
const PyMethodDef methods[] = {
    $methods
    {},
};

}  // namespace

extern const Bindings bindings_$symbol;
const Bindings bindings_$symbol = {functions, nn_functions, methods};
"""

BINDINGS = """
$declarations
const Bindings* const all_bindings[] = {
    $rows
    nullptr,
};
"""


def entries(
    names: list[tuple[str, list[Op]]], forms: tuple[str, ...], nn: tuple[bool, ...] = (False, True)
) -> list[str]:
    """Rows of PyMethodDef for what has one of these forms."""
    lines = []
    for name, overloads in names:
        for form in forms:
            if overloads[0].nn in nn and any(form in forms_of(op) for op in overloads):
                shown = python_name(overloads[0], form) if form in INPLACE else name
                function = f"as_function(entry<{name}_parser, {form}>)"
                lines.append(f'{{"{shown}", {function}, METH_FASTCALL | METH_KEYWORDS,')
                lines.append(f" {quoted(docstring(overloads))}}},")
    return lines


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents; bindings.cpp lists the functions and methods of all families."""
    files, symbols = {}, []
    names = by_name(ops)
    for family in dict.fromkeys(op.family for op in ops):
        members = [(name, overloads) for name, overloads in names.items() if overloads[0].family == family]
        for k, part in pieces(members, NAMES_PER_FILE):
            symbols.append(f"{family}_{k}")
            lines = fill(
                FAMILY,
                calls=[line for name, overloads in part for line in name_source(name, overloads)],
                functions=entries(part, FUNCTIONS, nn=(False,)),
                nn_functions=entries(part, FUNCTIONS, nn=(True,)),
                methods=entries(part, METHODS),
                symbol=symbols[-1],
            )
            includes = ["<rushlight/ops.h>", "", "python/bindings.h", "python/parser.h"]
            files[f"python/ops_{symbols[-1]}.cpp"] = source(includes, "rushlight::python", lines)
    lines = fill(
        BINDINGS,
        declarations=[f"extern const Bindings bindings_{s};" for s in symbols],
        rows=[f"&bindings_{s}," for s in symbols],
    )
    return files | {"python/bindings.cpp": source(["python/bindings.h"], "rushlight::python", lines)}
