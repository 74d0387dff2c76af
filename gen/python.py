"""Python's functions and methods in C++: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gen import signatures
from gen.schema import Arg, default, owned, shown_default, spelt
from gen.signatures import FUNCTIONS, INPLACE, METHODS, Python
from gen.table import Op
from gen.text import block, commas, each, flag, lines, only, pieces, source, when
from ops.deprecated import ORDERS

NAMES_PER_FILE = 24


def literal(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


def accessor(rows: list[Arg], arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method, given = spelt(arg.type).accessor, default(arg)
    if arg.type.undefined_is_none or (arg.type.optional and given == "{}"):
        given = ""
    elif given and arg.type.is_list and not given.startswith("{"):
        given = "{" + given + "}"
    optional = "optional_" * (arg.type.optional and not arg.type.undefined_is_none)
    place = [row.name for row in rows].index("dtype" if arg.name == "options" else arg.name)
    return f"const auto& {arg.name} = a.{optional}{method}({commas(str(place), given)});"


def run_case(p: Python, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where this is a reordering of it: what is not bound keeps its default.
    """
    op = p.op
    bound, name, arguments = {arg.name for arg in op.args}, op.name, original.call()
    left_out = [a for a in original.args if a.name not in bound]
    given = f"finish_given(a, a.object({op.receiver}), [&] {{ rushlight::{op.inplace_name}({arguments}); }})"
    inplace = [form for form in p.forms if form in INPLACE]
    alone = inplace and inplace == p.forms
    names = commas(literal(r.name) for r in op.results if len(op.results) > 1 and r.name and not alone)
    named = f', named_result(type, "{name}", {{{names}}})' if names else ""
    call = f"rushlight::{name}({arguments})"
    result = given if alone else f"finish(a, [&] {{ return {call}; }}{named})"
    if not op.results and op.on_list:
        result = f"finish_given(a, a.object(0), [&] {{ {call}; }})"
    elif op.kind == "view":  # nothing to release the GIL for
        result = f"wrap_result({call})"
    out = len(p.rows) - 1 if p.out and "FunctionForm" in p.forms else None
    outs, written = commas(f"const Tensor& {o}" for o in op.outs), commas(op.outs, arguments)
    write = f"[&]({outs}) {{ rushlight::{name}_out({written}); }}"
    finish = f'finish_out<{len(op.results)}>(a, {out}, "{name}", {write}{named})'
    return lines(f"""
        {only(names)}static PyTypeObject* type = nullptr;
        {each(accessor(p.rows, arg) for arg in p.taken)}
        {each(f"const {owned(a.type)} {a.name} = {default(a)};" for a in left_out)}
        {when(inplace and not alone, "if (a.inplace())", f"return {given};")}
        {when(out is not None, f"if (a.given({out}))", f"return {finish};")}
        return {result};
    """)


def param(row: Arg) -> str:
    """A row of a signature's table."""
    flags = row.type.optional or row.default in ("None", "[]"), row.keyword_only, row.name == "out"
    said = commas(map(flag, flags), literal(shown_default(row)))
    return f"{{{literal(row.name)}, Kind::{spelt(row.type).kind}, {said}}},"


def reordered(op: Op, order: str) -> Op:
    """A deprecated order: the op with these arguments, all positional, in place of its own; it has no out=."""
    by_name = {a.name: a for a in op.args}
    args = [replace(by_name[n], default=None, keyword_only=False) for n in order.split(", ")]
    return replace(op, args=args, variants=op.variants - {"out"})


def owner(op: Op, *words: str) -> str:
    """The module that the words of an entry choose."""
    return next((f"{word}_owner" for word in words if any(w.partition(".")[0] == word for w in op.python)), "")


def name_source(name: str, overloads: list[Op]) -> list[str]:
    """The tables and the calls of a name."""
    tables, rows_of, cases, first = [], [], [], overloads[0]
    old = [(reordered(first, order), first) for order in ORDERS.get(name, [])]
    for k, (op, original) in enumerate([*((op, op) for op in overloads), *old]):
        p = Python(op)
        tables += [f"constexpr Param {name}_params_{k}[] = {{", *(f"    {param(row)}" for row in p.rows), "};"]
        flags = f"{op.receiver}, {flag(p.varargs)}, {flag(op is not original)}"
        rows_of.append(f"{{{name}_params_{k}, {' | '.join(p.forms)}, {flags}}},")
        cases += block(f"case {k}:", run_case(p, original))
    words = ["functional"] if first.functional_name else ["nn", "wrapped"]
    said = f'"{first.functional_name or name}", {name}_signatures, {len(rows_of)}, {name}_run'
    made = lines(f"""
        // ---- {name} ----

        {each(tables)}
        constexpr Signature {name}_signatures[] = {{
            {each(rows_of)}
        }};
        PyObject* {name}_run([[maybe_unused]] const Arguments& a) {{
          switch (a.signature()) {{
            {each(cases)}
          }}
          Py_UNREACHABLE();
        }}
        constexpr Parser {name}_parser = {{{said}, &{owner(first, *words) or "ops_owner"}}};
    """)
    return [*made, ""]


def entries(name: str, overloads: list[Op]) -> list[str]:
    """The functions and methods of a name."""
    found, first = [], overloads[0]
    for form in (*FUNCTIONS, *METHODS):
        if any(form in Python(op).forms for op in overloads):
            shown = Python(first).name(form) if form in INPLACE else first.functional_name or name
            also = owner(first, "functional", "listed") if form in FUNCTIONS else ""
            head = f"{shown}{signatures.text_signature(overloads, form)}\n--\n\n"
            text = literal(head + signatures.docstring(overloads, form))
            found.append(f'RL_BINDING({name}_parser, {form}, "{shown}", {f"&{also}" if also else "nullptr"}, {text}),')
    return found


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {}
    includes = ["<rushlight/ops.h>", "", "python/bindings.h", "python/parser.h"]
    named = list(signatures.by_name(ops).items())
    for family, part in pieces(named, NAMES_PER_FILE, lambda named: named[1][0].family):
        inside = lines(f"""
            namespace {{

            {each(line for name, overloads in part for line in name_source(name, overloads))}
            Binding rows[] = {{
                {each(line for name, overloads in part for line in entries(name, overloads))}
            }};
            const Bindings bindings(rows);

            }}  // namespace
        """)
        files[f"python/ops_{family}.cpp"] = source(includes, "rushlight::python", inside)
    return files
