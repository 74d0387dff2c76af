"""Python's functions and methods in C++: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gen.declarations import out_names
from gen.schema import Arg, default, owned, shown_default, spelt
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
    taken,
    text_signature,
)
from gen.table import Op
from gen.text import commas, fill, flag, pieces, source
from ops.deprecated import ORDERS

NAMES_PER_FILE = 24


def literal(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


# ---- one signature ----


def place(op: Op, name: str) -> int:
    """The row of an argument."""
    return [row.name for row in rows(op)].index("dtype" if name == "options" else name)


def accessor(op: Op, arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method, given = spelt(arg.type).accessor, default(arg)
    if arg.type.undefined_is_none or (arg.type.optional and given == "{}"):
        given = ""
    elif given and arg.type.is_list and not given.startswith("{"):
        given = "{" + given + "}"
    method = f"optional_{method}" if arg.type.optional and not arg.type.undefined_is_none else method
    return f"const auto& {arg.name} = a.{method}({commas(str(place(op, arg.name)), given)});"


CASE = """
case $k: {
  @named static PyTypeObject* type = nullptr;
  $locals
  @both if (a.inplace()) {
  @both   return $given;
  @both }
  @out if (a.given($out)) {
  @out   return finish_out<$count>(a, $out, "$name", [&]($outs) { rushlight::${name}_out($written); }$type);
  @out }
  return $result;
}
"""


def run_case(k: int, op: Op, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where `op` is a reordering of it: what is not bound keeps its default.
    """
    bound = {arg.name for arg in op.args}
    left_out = [a for a in original.args if a.name not in bound]
    arguments, call = original.call(), f"rushlight::{op.name}({original.call()})"
    given = f"finish_given(a, a.object({op.receiver}), [&] {{ rushlight::{op.inplace_name}({arguments}); }})"
    inplace, forms = [form for form in forms_of(op) if form in INPLACE], forms_of(op)
    names = [r.name for r in op.results if len(op.results) > 1 and r.name]
    named = f', named_result(type, "{op.name}", {{{commas([literal(n) for n in names])}}})' if names else ""
    out = op.python_out and "FunctionForm" in forms
    if inplace == forms and inplace:
        result = given
    elif not op.results and op.on_list:
        result = f"finish_given(a, a.object(0), [&] {{ {call}; }})"
    elif op.kind == "view":  # nothing to release the GIL for
        result = f"wrap_result({call})"
    else:
        result = f"finish(a, [&] {{ return {call}; }}{named})"
    return fill(
        CASE,
        k=k,
        named=named and inplace != forms,
        locals=[accessor(op, arg) for arg in taken(op)]
        + [f"const {owned(a.type)} {a.name} = {default(a)};" for a in left_out],
        both=inplace and inplace != forms,
        given=given,
        out=out and place(op, "out"),
        count=len(op.results),
        name=op.name,
        outs=commas([f"const Tensor& {o}" for o in out_names(op)]),
        written=commas(out_names(op), arguments),
        type=named,
        result=result,
    )


def param(row: Arg) -> str:
    """A row of a signature's table."""
    flags = [flag(row.type.optional or row.default in ("None", "[]")), flag(row.keyword_only), flag(row.name == "out")]
    shown = literal(shown_default(row))
    return f"{{{commas(literal(row.name), f'Kind::{spelt(row.type).kind}', flags, shown)}}},"


def reordered(op: Op, order: str) -> Op:
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
    old = [(reordered(overloads[0], order), overloads[0]) for order in ORDERS.get(name, [])]
    for k, (op, original) in enumerate([*((op, op) for op in overloads), *old]):
        tables += fill(PARAMS, name=name, k=k, rows=[param(row) for row in rows(op)])
        flags = commas([flag(has_varargs(op)), flag(op is not original)])
        signatures.append(f"{{{name}_params_{k}, {' | '.join(forms_of(op))}, {op.receiver}, {flags}}},")
        cases += run_case(k, op, original)
    owners = (
        ["functional"] if overloads[0].functional_name else [w for w in ("nn", "wrapped") if w in overloads[0].python]
    )
    return [
        *fill(
            NAME,
            name=name,
            shown=overloads[0].functional_name or name,
            count=len(signatures),
            owner=f"{[*owners, 'ops'][0]}_owner",
            tables=tables,
            signatures=signatures,
            cases=cases,
        ),
        "",
    ]


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
    lines, first = [], overloads[0]
    for form in (*FUNCTIONS, *METHODS):
        if any(form in forms_of(op) for op in overloads):
            shown = python_name(first, form) if form in INPLACE else first.functional_name or name
            owners = [w for w in ("functional", "listed") if form in FUNCTIONS and (w in first.python)]
            owners = ["functional"] if first.functional_name and form in FUNCTIONS else owners
            also = f"&{owners[0]}_owner" if owners else "nullptr"
            text = f"{shown}{text_signature(overloads, form)}\n--\n\n{docstring(overloads, form)}"
            lines.append(f'RL_BINDING({name}_parser, {form}, "{shown}", {also}, {literal(text)}),')
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
