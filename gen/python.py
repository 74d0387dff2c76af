"""Python's functions and methods: what it sees of an op, as people read it, as C++ that calls it, as type stubs.

For every op name C++ gets a table of its signatures, their calls and their forms, for `src/python/parser.h`. Stubs are
`_C.pyi` (gen/_C.pyi.in with the methods of tensors), `_functions.pyi`, and those of namespaces: `_linalg.pyi` and its
like.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gen.schema import OPTIONS, Arg, Type, default, owning_type, python_default, spelling
from gen.table import DTYPES, NAMESPACES, Op, load_examples
from gen.text import Pool, array, block, braced, commas, each, flag, lines, only, pieces, source, when
from ops.arguments import describe
from ops.deprecated import ORDERS

FUNCTIONS = ("FunctionForm", "InplaceFunctionForm")
METHODS = ("MethodForm", "InplaceForm")
INPLACE = ("InplaceForm", "InplaceFunctionForm")


def public_name(row: Arg) -> str:
    name = "input" if row.name == "self" else row.name
    return name + "_" if keyword.iskeyword(name) else name


class Python:
    """An op as Python has it."""

    def __init__(self, op: Op) -> None:
        self.op = op
        # The arguments as Python takes them, and the rows of the parser.
        first = op.args[: "number_first" in op.python]
        self.taken = [*(replace(a, type=replace(a.type, number=True)) for a in first), *op.args[len(first) :]]
        self.rows = [row for a in self.taken for row in (OPTIONS if a.type.base == "options" else [a])]
        if op.python_out:
            self.rows.append(Arg("out", Type("Tensor", is_list=len(op.results) > 1, optional=True), "None", True))
        # `view(2, 3)`: a list of ints is the only positional parameter besides self.
        places = [a.type for a in op.args if not a.keyword_only and not (a.name == "self" and a.type.is_tensor)]
        self.varargs = "varargs" in op.python or [(t.base, t.is_list) for t in places] == [("int", True)]
        unary = op.kernel.kind == "pointwise" and len(op.tensors) == 1  # relu_(x) is a function too
        function, as_function = "function" in op.variants, bool(op.python & {"nn", "inplace"})
        method, functional, inplace = "method" in op.variants, "functional" in op.forms, "inplace" in op.forms
        has = {
            "FunctionForm": functional and function,
            "MethodForm": functional and method,
            "InplaceForm": inplace and method,
            "InplaceFunctionForm": inplace and (as_function or (function and (op.inplace_only or unary))),
        }
        self.forms = [form for form, exists in has.items() if exists]

    def name(self, form: str) -> str:
        return self.op.inplace_name if form in INPLACE else self.op.functional_name or self.op.name

    def visible_parameters(self, form: str) -> list[tuple[int, Arg]]:
        """The parameters that a form has beside the tensor that it is a method of."""
        hidden, out = self.op.receiver if form in METHODS else -1, form == "FunctionForm"
        return [(i, row) for i, row in enumerate(self.rows) if i != hidden and (row.name != "out" or out)]

    def parameter_list(self, form: str, one: Callable[[Arg, bool], str], spread: Callable[[Arg], str]) -> list[str]:
        """The parameters of a form; `one` gets to know whether it stands behind a star."""
        parts, star = [], False
        for i, row in self.visible_parameters(form):
            # `zeros(2, 3)` and `x.permute(1, 0)`, but `permute(x, (1, 0))`.
            first = form in METHODS or i == 0 or row.type.is_tensor
            is_spread = self.varargs and not row.keyword_only and row.type.is_list and first
            parts += ["*"] if row.keyword_only and not star else []
            star |= row.keyword_only or is_spread
            parts.append(f"*{spread(row)}" if is_spread else one(row, star))
        return parts

    def signature(self, form: str, *, defaults: bool = False) -> str:
        """The definition of a form as a stub has it, or as people read it."""

        def one(row: Arg, _: bool) -> str:
            none = " | None" if row.type.optional or row.default == "None" else ""
            shown = python_default(row)
            default = "" if shown is None else f" = {shown if defaults else '...'}"
            return f"{public_name(row)}: {spelling(row.type).annotation}{none}{default}"

        def spread(row: Arg) -> str:
            item = spelling(replace(row.type, is_list=False)).annotation
            return f"{row.name}: {item} | Sequence[{item}]"  # view(2, 3) and view((2, 3))

        parts = ["self"] * (form in METHODS) + self.parameter_list(form, one, spread)
        result = "Tensor" if form in INPLACE else self.result(defaults)
        text = f"{self.name(form)}({commas(parts)}) -> {result}"
        return text.replace("builtins.", "") if defaults else f"def {text}: ..."

    def result(self, named: bool) -> str:
        results = self.op.results
        if len(results) == 1:
            return result_annotation(results[0])
        if named or not results:
            return f"({commas([r.name or 'Tensor' for r in results])})" if results else "None"
        whole = f"tuple[{commas([result_annotation(r) for r in results])}]"
        return f"return_types.{self.op.name}" if has_named_results(self.op) else whole


def result_annotation(result: Arg) -> str:
    """The type of a result as a stub has it."""
    kinds = {"Tensor": "Tensor", "Scalar": "Number", "ScalarType": "dtype"}
    name = kinds.get(result.type.base, f"builtins.{result.type.base}")
    return f"tuple[{name}, ...]" if result.type.is_list else name


def has_named_results(op: Op) -> bool:
    """Whether results come as a named tuple of `return_types`."""
    return len(op.results) > 1 and all(r.name for r in op.results)


def by_name(ops: list[Op]) -> dict[str, list[Op]]:
    """The overloads of a name stand together, whatever family they are in."""
    # `div_.mode` is one more signature of the method that `div` has as `div_`.
    with_inplace = {op.name for op in ops if not op.inplace_only and "InplaceForm" in Python(op).forms}
    names: dict[str, list[Op]] = {}
    for op in ops:
        if Python(op).forms:
            shared = op.inplace_only and op.name[:-1] in with_inplace
            names.setdefault(op.name[:-1] if shared else op.name, []).append(op)
    return names


def text_signature(overloads: list[Op], form: str) -> str:
    """The parameters as `inspect.signature` reads them, at the beginning of a docstring in C.

    They are those of the overload that has most, and what others know by name; what one of them does without has a
    default.
    """
    found = [p for p in map(Python, overloads) if form in p.forms]
    most, optional = max(found, key=lambda p: len(p.rows)), False
    in_all = set.intersection(*({public_name(row) for row in p.rows} for p in found))

    def default(row: Arg) -> str | None:
        shown = python_default(row)
        if shown is None:
            return None if public_name(row) in in_all else "None"
        try:  # what Python can read without names: None for `torch.strided`
            ast.literal_eval(shown)
        except ValueError:
            return {"inf": "1e999", "-inf": "-1e999"}.get(shown, "None")
        return shown

    def one(row: Arg, star: bool) -> str:
        nonlocal optional
        given = default(row)
        optional = not star and (optional or given is not None)
        if optional and given is None:  # Python wants a default after another
            given = "None"
        return public_name(row) if given is None else f"{public_name(row)}={given}"

    parts = ["$self"] * (form in METHODS) + most.parameter_list(form, one, public_name)
    known = {public_name(row) for row in most.rows}
    others = {
        public_name(row): row for p in found for _, row in p.visible_parameters(form) if public_name(row) not in known
    }
    parts += ["*"] if others and not any(part.startswith("*") for part in parts) else []
    return f"({commas(parts, [f'{name}={default(row)}' for name, row in others.items()])})"


# ---- docstrings; docs/pages.py writes whole pages ----

PROMOTION = {
    "same": "of the type that the inputs promote to",
    "float": "floating point: integers and bool become the default dtype",
    "bool": "bool",
    "real": "of the type that the inputs promote to; real where that is complex",
    "none": "of the first input's type",
    "rest": "of the type that the inputs after the first promote to",
}


def formula_dtypes(op: Op) -> str:
    """The dtypes that a formula is for."""
    return commas(DTYPES[s] for s in op.kernel.dtypes)


def _facts(op: Op) -> dict[str, str]:
    """What is known by the kind of an op; empty where the table does not know."""
    said: dict[str, str] = {"Dtypes": "", "Shape": "", "Gradient": ""}
    if op.kind == "view":
        said["Shape"] = "a view: the result shares memory with the input"
    elif op.kernel.kind == "dynamic":
        said["Shape"] = "depends on values: not known on meta"
    elif op.kernel.kind == "pointwise":
        said["Dtypes"] = f"{formula_dtypes(op)}; the result is {PROMOTION[op.kernel.promote]}"
        several = "the inputs are broadcast to a common shape"
        said["Shape"] = several if len(op.tensors) > 1 else "that of the input"
    if isinstance(op.grad, dict):
        known = commas(f"`{name}`" for key in op.grad for name in key.split(", "))
        said["Gradient"] = f"by {known}" + "".join(f"; `{name}` has none" for name in op.nondiff)
    else:
        composed = op.kind == "composite" and op.grad != "none"
        said["Gradient"] = "through the ops that it is made of" if composed else "none"
    return said


def facts(overloads: list[Op]) -> dict[str, str]:
    """What is known of the overloads, each thing once."""
    found = [_facts(op) for op in overloads]
    texts = {title: dict.fromkeys(said[title] for said in found) for title in found[0]}
    return {title: "; or ".join(filter(None, said)) for title, said in texts.items() if any(said)}


def in_place(overloads: list[Op], form: str) -> dict[str, str]:
    """What is said instead where the result is written into a tensor."""
    name = "self" if form in METHODS else "input"
    said = {"In place": f"{name} is changed and returned"}
    if formulas := dict.fromkeys(formula_dtypes(op) for op in overloads if op.kernel.kind == "pointwise"):
        others = "; the others are broadcast to it" if any(len(op.tensors) > 1 for op in overloads) else ""
        said |= {"Dtypes": f"{'; or '.join(formulas)}; {name} keeps its own", "Shape": f"{name} keeps its own{others}"}
    return said | ({"Shape": f"{name} becomes the view"} if overloads[0].kind == "view" else {})


def calls(overloads: list[Op], form: str = "") -> list[str]:
    """One line per signature: of a form, or else the function's where there is one."""
    found = [p for p in map(Python, overloads) if (form in p.forms if form else p.forms)]
    return [p.signature(form or p.forms[0], defaults=True) for p in found]


def python_name(op: Op, form: str) -> str:
    """The name of a form as programs write it: `Tensor.NAME_`, `linalg.NAME`, `nn.functional.NAME`."""
    name = Python(op).name(form)
    if form in METHODS:
        return f"Tensor.{name}"
    if op.functional_name or "nn" in op.python:
        return f"nn.functional.{name}"
    return f"{op.space}.{name.removeprefix(f'{op.space}_')}" if op.space else name


def arguments(overloads: list[Op], form: str) -> dict[str, str]:
    """What each argument of a form means (ops/arguments.py)."""
    shown = [(op, row) for op in overloads for _, row in Python(op).visible_parameters(form)]
    return {public_name(row): describe(op.name, op.family, public_name(row).strip("_")) for op, row in shown}


def example(overloads: list[Op], form: str) -> list[str]:
    """The example of a function, or of a method that has no function."""
    op, forms = overloads[0], [f for p in map(Python, overloads) for f in p.forms]
    if form != next(f for f in ("FunctionForm", "MethodForm", "InplaceForm", "InplaceFunctionForm") if f in forms):
        return ["", f"For an example see `{python_name(op, forms[0])}`."]
    text = load_examples().get(op.name)
    return ["", "Example:", *(f"    {line}" for line in text.splitlines())] if text else []


def docstring(overloads: list[Op], form: str) -> str:
    """What `help` shows of a function or method."""
    overloads = [op for op in overloads if form in Python(op).forms]
    said = facts(overloads) | (in_place(overloads, form) if form in INPLACE else {})
    others = dict.fromkeys(python_name(op, f) for op in overloads for f in Python(op).forms if f != form)
    said |= {"See also": commas(others)} if others else {}
    lines = [f"{title}: {text}.".replace("`", "") for title, text in said.items()]
    described = [f"    {name}: {text}." for name, text in arguments(overloads, form).items()]
    head = [*calls(overloads, form), "", overloads[0].doc, *(["", "Args:", *described] if described else [])]
    return "\n".join([*head, *([""] if lines else []), *lines, *example(overloads, form)])


# ---- C++ ----


NAMES_PER_FILE = 24


def literal(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


def accessor(rows: list[Arg], arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method, given = spelling(arg.type).accessor, default(arg)
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
    given = f"finish_with(a, a.object({op.receiver}), [&] {{ rushlight::{op.inplace_name}({arguments}); }})"
    inplace = [form for form in p.forms if form in INPLACE]
    alone = inplace and inplace == p.forms
    names = commas(literal(r.name) for r in op.results if len(op.results) > 1 and r.name and not alone)
    named = f', named_result(type, "{name}", {{{names}}})' if names else ""
    call = f"rushlight::{name}({arguments})"
    result = given if alone else f"finish(a, [&] {{ return {call}; }}{named})"
    if not op.results and op.on_list:
        result = f"finish_with(a, a.object(0), [&] {{ {call}; }})"
    elif op.kind == "view":  # nothing to release the GIL for
        result = f"wrap_result({call})"
    out = len(p.rows) - 1 if op.python_out and "FunctionForm" in p.forms else None
    outs, written = commas(f"const Tensor& {o}" for o in op.outs), commas(op.outs, arguments)
    write = f"[&]({outs}) {{ rushlight::{name}_out({written}); }}"
    finish = f'finish_out<{len(op.results)}>(a, {out}, "{name}", {write}{named})'
    return lines(f"""
        {only(names)}static PyTypeObject* type = nullptr;
        {each(accessor(p.rows, arg) for arg in p.taken)}
        {each(f"const {owning_type(a.type)} {a.name} = {default(a)};" for a in left_out)}
        {when(inplace and not alone, "if (a.inplace())", f"return {given};")}
        {when(out is not None, f"if (a.is_given({out}))", f"return {finish};")}
        return {result};
    """)


def param(row: Arg) -> str:
    """A row of a signature's table."""
    flags = row.type.optional or row.default in ("None", "[]"), row.keyword_only, row.name == "out"
    shown = python_default(row)
    return braced([literal(row.name), f"Kind::{spelling(row.type).kind}", *map(flag, flags), literal(shown)])


def reorder(op: Op, order: str) -> Op:
    """A deprecated order: the op with these arguments, all positional, in place of its own; it has no out=."""
    by_name = {a.name: a for a in op.args}
    args = [replace(by_name[n], default=None, keyword_only=False) for n in order.split(", ")]
    return replace(op, args=args, variants=op.variants - {"out"})


def owner(op: Op, *words: str) -> str:
    """The module that the words of an entry choose."""
    return next((f"{word}_owner" for word in words if any(w.partition(".")[0] == word for w in op.python)), "")


def params(op: Op) -> tuple[str, ...]:
    """The rows of a signature."""
    return tuple(map(param, Python(op).rows))


def signatures(name: str, overloads: list[Op]) -> list[tuple[Op, Op]]:
    """The ops that a name stands for, each with that whose arguments in another order it takes, or itself."""
    first = overloads[0]
    return [*((op, op) for op in overloads), *((reorder(first, order), first) for order in ORDERS.get(name, []))]


def name_source(name: str, overloads: list[Op], tables: Pool) -> list[str]:
    """The signatures and the calls of a name."""
    rows_of, cases, first = [], [], overloads[0]
    for op, original in signatures(name, overloads):
        p = Python(op)
        flags = [str(op.receiver), flag(p.varargs), flag(op is not original)]
        rows_of.append(braced([tables.part(params(op)), " | ".join(p.forms), *flags]))
        cases.append(run_case(p, original))
    words = ["functional"] if first.functional_name else ["nn", "wrapped"]
    said = f'"{first.functional_name or name}", {name}_signatures, {len(rows_of)}, {name}_run'
    # The last signature is what is left.
    *others, last = cases
    chosen = [line for k, body in enumerate(others) for line in block(f"if (a.signature() == {k})", body)]
    return lines(f"""
        {each(array(f"constexpr Signature {name}_signatures[]", rows_of))}
        {each(block(f"PyObject* {name}_run([[maybe_unused]] const Arguments& a)", [*chosen, *last]))}
        constexpr Parser {name}_parser = {{{said}, &{owner(first, *words) or "ops_owner"}}};

    """)


def entries(name: str, overloads: list[Op]) -> list[str]:
    """The functions and methods of a name."""
    found, first = [], overloads[0]
    for form in (*FUNCTIONS, *METHODS):
        if any(form in Python(op).forms for op in overloads):
            shown = Python(first).name(form) if form in INPLACE else first.functional_name or name
            also = owner(first, "functional", "listed") if form in FUNCTIONS else ""
            head = f"{shown}{text_signature(overloads, form)}\n--\n\n"
            text = literal(head + docstring(overloads, form))
            found.append(f'RL_BINDING({name}_parser, {form}, "{shown}", {f"&{also}" if also else "nullptr"}, {text}),')
    return found


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    files = {}
    includes = ["<rushlight/ops.h>", "", "python/bindings.h", "python/parser.h"]
    named = list(by_name(ops).items())
    for family, part in pieces(named, NAMES_PER_FILE, lambda named: named[1][0].family):
        tables = Pool("Param", "params", (params(op) for n, said in part for op, _ in signatures(n, said)))
        inside = lines(f"""
            namespace {{

            {each(tables.definition())}
            {each(line for name, overloads in part for line in name_source(name, overloads, tables))}
            Binding rows[] = {{
                {each(line for name, overloads in part for line in entries(name, overloads))}
            }};
            const Bindings bindings(rows);

            }}  // namespace
        """)
        files[f"python/ops_{family}.cpp"] = source(includes, "rushlight::python", inside)
    return files


# ---- stubs ----


HEAD = """# Generated from the op table by `python -m gen`. Do not edit.
import builtins
from collections.abc import Sequence
from typing import Any, overload

from rushlight._C import Generator, Number, device, dtype, layout, memory_format, return_types
from rushlight._tensor import Tensor
"""


def definitions(ops: list[Op], forms: tuple[str, ...]) -> list[str]:
    found: dict[str, list[str]] = {}
    for p in map(Python, ops):
        for form in p.forms:
            if form in forms and not keyword.iskeyword(p.name(form)):
                found.setdefault(p.name(form), []).append(p.signature(form))
    marks = {name: ["@overload"] * (len(texts) > 1) for name, texts in found.items()}
    return [line for name, texts in found.items() for text in texts for line in (*marks[name], text)]


def result_types(ops: list[Op]) -> list[str]:
    """The lines of `return_types`: a named tuple for each name whose results have names."""
    named: dict[str, list[str]] = {}
    for op in filter(has_named_results, ops):
        fields = [f"    {r.name}: {result_annotation(r)}" for r in op.results]
        named[op.name] = [f"class {op.name}(NamedTuple):", *fields]
    return [line for lines_of in named.values() for line in lines_of]


def stubs(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    public = [op for op in ops if not (op.python & {"nn", "wrapped"} or op.functional_name)]
    layers = [op for op in ops if any(word.partition(".")[0] == "functional" for word in op.python)]
    functions = {"_functions": definitions(public, FUNCTIONS), "_functional": definitions(layers, FUNCTIONS)}
    for space in NAMESPACES:
        own = definitions([op for op in ops if op.space == space], FUNCTIONS)
        functions[f"_{space}"] = [text.replace(f"def {space}_", "def ", 1) for text in own]
    files = {f"stubs/{name}.pyi": "\n".join([HEAD, *texts, ""]) for name, texts in functions.items()}
    methods = "\n".join(f"    {line}" for line in definitions(ops, METHODS))
    named = "\n".join(f"    {line}" for line in result_types(ops))
    whole = (Path(__file__).parent / "_C.pyi.in").read_text()
    return files | {"stubs/_C.pyi": whole.replace("    $methods", methods).replace("    $named", named)}
