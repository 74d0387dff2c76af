"""Ops by overload in C++: the types of `at::_ops`, and `NAME_outf`, whose outputs come last.

They are called as boxed ops (include/rushlight/overload.h), by their row of the registry.
"""

from __future__ import annotations

from gen.declarations import forms
from gen.registry import Overload, all_rows
from gen.schema import Type, owning_type, parameter
from gen.table import Op
from gen.text import commas, each, header, lines, source


def taken(t: Type) -> str:
    """What the function is given, as libtorch has it: what need not be there is a std::optional."""
    if t.is_tensor and t.written:
        return "Tensor&"
    if t.optional and not t.is_list and t.base in ("Tensor", "Generator"):
        return "const std::optional<Tensor>&" if t.is_tensor else "std::optional<Generator>"
    return parameter(t)


def signature(o: Overload) -> str:
    """Its type as a function. An op named std hides the namespace from what follows it."""
    given = ["Tensor&" if r.type.written else owning_type(r.type) for r in o.results]
    result = given[0] if len(given) == 1 else f"std::tuple<{commas(given)}>" if given else "void"
    return f"{result}({commas(taken(a.type) for a in o.args)})".replace("std::", "::std::")


def symbol(o: Overload) -> str:
    return f"{o.name}_{o.overload}" if o.overload else o.name


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    own = {form.function for op in ops if op.own for form in forms(op)}
    known = [(row, o, form) for row, (o, form, _) in enumerate(all_rows(ops)) if form.function not in own]
    written: dict[str, list[str]] = {}
    for _, o, form in known:
        if form.kind == "out":
            written.setdefault(o.name, []).append(f"_ops::{symbol(o)}")
    objects = {name: f"OutForms<{commas(types)}> {name}_outf" for name, types in written.items()}
    declared = lines(f"""
        namespace _ops {{
        {each(f"using {symbol(o)} = Overload<{row}, {signature(o)}>;" for row, o, _ in known)}
        }}  // namespace _ops

        #pragma GCC visibility push(default)
        {each(f"extern const {text};" for text in objects.values())}
        #pragma GCC visibility pop
    """)
    defined = [f"const {text}{{}};" for text in objects.values()]
    return {
        "include/rushlight/overloads.h": header(["<rushlight/overload.h>"], "rushlight", declared),
        "src/overloads.cpp": source(["<rushlight/overloads.h>"], "rushlight", defined),
    }
