"""The Python half: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against. One file per family, and
`bindings.cpp`, which lists the functions and methods of all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from gen import cpp, types
from gen.table import Arg, Op
from ops.deprecated import ORDERS

HEADER = "// Generated from the op table by `python -m gen`. Do not edit.\n"
NAMES_PER_FILE = 24
OPTIONS = ("dtype", "layout", "device", "pin_memory", "requires_grad")
OPTION_KINDS = {"dtype": "Dtype", "layout": "Layout", "device": "Device"}
OPTION_DEFAULTS = {"layout": "torch.strided", "pin_memory": "False", "requires_grad": "False"}


@dataclass(frozen=True)
class Param:
    """A row of a C++ parameter table."""

    name: str
    kind: str
    none: bool = False
    keyword_only: bool = False
    out: bool = False
    shown: str | None = None


# (base, is it a list) → the kind of a parameter, and the accessor of class Arguments that reads it.
_KINDS = {
    ("Tensor", False): ("Tensor", "tensor"),
    ("Tensor", True): ("TensorList", "tensors"),
    ("Scalar", False): ("Scalar", "scalar"),
    ("Scalar", True): ("ScalarList", "scalars"),
    ("int", False): ("Int", "integer"),
    ("int", True): ("IntList", "ints"),
    ("float", False): ("Float", "number"),
    ("float", True): ("FloatList", "numbers"),
    ("bool", False): ("Bool", "boolean"),
    ("str", False): ("String", "string"),
    ("ScalarType", False): ("Dtype", "dtype"),
    ("Device", False): ("Device", "device"),
    ("Layout", False): ("Layout", "layout"),
    ("MemoryFormat", False): ("MemoryFormat", "memory_format"),
    ("Generator", False): ("Generator", "generator"),
    ("options", False): ("", "options"),
}


def read_by(arg: Arg) -> tuple[str, str]:
    """The kind of an argument's parameter and its accessor."""
    if arg.type.number:
        return "TensorOrNumber", "tensor_or_number"
    if arg.type.element_optional:
        return "OptionalTensorList", "optional_tensors"
    return _KINDS[arg.type.base, arg.type.is_list]


def kind_of(arg: Arg) -> str:
    return read_by(arg)[0]


def shown_default(arg: Arg) -> str | None:
    """As Python writes it."""
    if arg.default is None:
        return None
    if arg.type.base == "MemoryFormat":
        names = {"Contiguous": "contiguous_format", "Preserve": "preserve_format"}
        return "torch." + names.get(arg.default, arg.default)
    if arg.type.is_list and arg.default.startswith("["):
        return "(" + arg.default[1:-1] + ")"
    return arg.default


def params(op: Op) -> list[Param]:
    """The rows of an op: its arguments, options spelt out, `out` last."""
    rows = []
    for arg in op.args:
        if arg.type.base == "options":
            for name in OPTIONS:
                default = OPTION_DEFAULTS.get(name, "None")
                rows.append(Param(name, OPTION_KINDS.get(name, "Bool"), True, True, shown=default))
        else:
            none = arg.type.optional or arg.default == "None"
            rows.append(
                Param(arg.name, kind_of(arg), none, arg.keyword_only, shown=shown_default(arg))
            )
    if cpp.out_form(op):
        kind = "Tensor" if len(op.results) == 1 else "TensorList"
        rows.append(Param("out", kind, True, True, True, "None"))
    return rows


def place(op: Op, name: str) -> int:
    """The row of an argument."""
    return [p.name for p in params(op)].index("dtype" if name == "options" else name)


def is_unary(op: Op) -> bool:
    """Pointwise on one tensor: relu_(x) is a function too."""
    return op.kernel is not None and op.kernel.kind == "pointwise" and len(op.tensors) == 1


def forms_of(op: Op) -> list[str]:
    forms = []
    method = "method" in op.variants and op.receiver >= 0
    if cpp.functional(op):
        if "function" in op.variants:
            forms.append("FunctionForm")
        if method:
            forms.append("MethodForm")
    if cpp.inplace(op):
        if method:
            forms.append("InplaceForm")
        if op.nn or ("function" in op.variants and (op.inplace_only or is_unary(op))):
            forms.append("InplaceFunctionForm")
    return forms


def has_varargs(op: Op) -> bool:
    """`view(2, 3)`: a list of ints is the only positional parameter besides self."""
    positional = [
        a
        for a in op.args
        if not a.keyword_only
        and a.type.base != "options"
        and not (a.name == "self" and a.type.is_tensor)
    ]
    return len(positional) == 1 and kind_of(positional[0]) == "IntList"


# ---- deprecated orders of arguments ----


def reordered(op: Op, order: str) -> Op:
    """The op with these arguments, all positional, in place of its own; it has no out=."""
    by_name = {a.name: a for a in op.args}
    args = [replace(by_name[n], default=None, keyword_only=False) for n in order.split(", ")]
    return replace(op, args=args, variants=op.variants - {"out"})


# ---- conversion of one argument ----


def accessor(op: Op, arg: Arg) -> str:
    """Declares the local that the C++ call takes: a parameter that was not passed has its default."""
    method = read_by(arg)[1]
    default = types.default(arg).removeprefix(" = ")
    if arg.type.base in ("Tensor", "Generator", "options"):  # undefined where there is none
        default = ""
    elif arg.type.optional:
        method = f"optional_{method}"
        default = "" if default == "{}" else default
    if default and arg.type.is_list and not default.startswith("{"):
        default = "{" + default + "}"
    given = f", {default}" if default else ""
    return f"const auto& {arg.name} = a.{method}({place(op, arg.name)}{given});"


def passed(arg: Arg) -> str:
    """The local as the C++ function takes it."""
    if arg.type.is_list and arg.type.optional and arg.type.base == "float":
        return f"({arg.name} ? std::optional(ArrayRef<double>(*{arg.name})) : std::nullopt)"
    return arg.name


# ---- one signature ----


def run_case(op: Op, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where `op` is a reordering of it: what is not bound keeps its default.
    """
    lines = [accessor(op, arg) for arg in op.args]
    names = {arg.name for arg in op.args}
    for arg in original.args:
        if arg.name not in names:
            lines.append(f"const {types.owned(arg.type)} {arg.name}{types.default(arg)};")
    arguments = ", ".join(passed(arg) for arg in original.args)
    forms = forms_of(op)
    inplace = [f for f in forms if f.startswith("Inplace")]
    functional = [f for f in forms if not f.startswith("Inplace")]
    if inplace:
        name = cpp.inplace_name(op)
        given = op.receiver
        call = f"rushlight::{name}({arguments});"
        target = f"a.object({given})" if given >= 0 else "Py_None"
        result = f"finish_given(a, {target}, [&] {{ {call} }})"
        if functional:
            lines += ["if (a.inplace()) {", f"  return {result};", "}"]
        else:
            lines.append(f"return {result};")
            return lines
    names = [r.name for r in op.results]
    named = "nullptr"
    if len(names) > 1 and all(names):
        fields = ", ".join(f'"{n}"' for n in names)
        lines.insert(0, "static PyTypeObject* type = nullptr;")
        named = f'named_result(type, "{op.name}", {{{fields}}})'
    if cpp.out_form(op) and "FunctionForm" in forms:
        i = place(op, "out")
        lines.append(f"if (a.given({i})) {{")
        if len(op.results) == 1:
            lines.append(f"  const Tensor& out = a.tensor({i});")
            lines.append(
                f"  return finish_given(a, a.object({i}), "
                f"[&] {{ rushlight::{op.name}_out(out, {arguments}); }});"
            )
        else:
            n = len(op.results)
            outs = ", ".join(f"out[{k}]" for k in range(n))
            kinds = ", ".join(["Tensor"] * n)
            lines.append(f'  const std::vector<Tensor> out = a.out_tensors({i}, {n}, "{op.name}");')
            lines.append(f"  return finish_named(a, {named}, [&]() -> std::tuple<{kinds}> {{")
            lines.append(f"    return rushlight::{op.name}_out({outs}, {arguments});")
            lines.append("  });")
        lines.append("}")
    call = f"rushlight::{op.name}({arguments});"
    if not op.results:
        lines.append(f"return finish_given(a, Py_None, [&] {{ {call} }});")
    elif len(op.results) > 1:
        lines.append(f"return finish_named(a, {named}, [&] {{ return {call} }});")
    else:
        lines.append(f"return finish(a, [&] {{ return {call} }});")
    return lines


def quoted(text: str | None) -> str:
    return "nullptr" if text is None else json.dumps(text, ensure_ascii=False)


def table(op: Op, symbol: str) -> list[str]:
    lines = [f"const Param {symbol}[] = {{"]
    for p in params(op):
        flags = ", ".join(str(v).lower() for v in (p.none, p.keyword_only, p.out))
        lines.append(f'    {{"{p.name}", Kind::{p.kind}, {flags}, {quoted(p.shown)}}},')
    lines.append("};")
    return lines


# ---- one name ----

_ENTRY_POINTS = {
    "FunctionForm": ("function", "nullptr"),
    "MethodForm": ("method", "self"),
    "InplaceForm": ("inplace", "self"),
    "InplaceFunctionForm": ("inplace_function", "nullptr"),
}


def name_source(name: str, overloads: list[Op]) -> list[str]:
    """The tables, the calls and the entry points of a name."""
    lines = [f"// ---- {name} ----", ""]
    rows, cases, forms = [], [], []
    old = [(reordered(overloads[0], order), overloads[0]) for order in ORDERS.get(name, [])]
    signatures = [(op, op) for op in overloads] + old
    for k, (op, original) in enumerate(signatures):
        count = len(params(op))
        if count > 24:
            raise ValueError(f"{name}: more than 24 parameters")
        if count:
            lines += [*table(op, f"{name}_params_{k}"), ""]
        own = forms_of(op)
        forms += [f for f in own if f not in forms]
        varargs = str(has_varargs(op)).lower()
        deprecated = str(op is not original).lower()
        table_name = f"{name}_params_{k}" if count else "nullptr"
        rows.append(
            f"    {{{table_name}, {count}, {' | '.join(own)}, {op.receiver}, {varargs}, {deprecated}}},"
        )
        cases += [
            f"    case {k}: {{",
            *("      " + line for line in run_case(op, original)),
            "    }",
        ]
    lines += [f"const Signature {name}_signatures[] = {{", *rows, "};", ""]
    lines += [
        f"PyObject* {name}_run([[maybe_unused]] const Arguments& a) {{",
        "  switch (a.signature()) {",
    ]
    lines += [*cases, "  }", "  Py_UNREACHABLE();", "}", ""]
    owner = "nn_owner" if overloads[0].nn else "ops_owner"
    lines += [
        f'const Parser {name}_parser = {{"{name}", {name}_signatures, {len(rows)}, '
        f"{name}_run, &{owner}}};",
        "",
    ]
    for form in forms:
        suffix, target = _ENTRY_POINTS[form]
        receiver = "PyObject* self" if target == "self" else "PyObject*"
        lines += [
            f"PyObject* {name}_{suffix}({receiver}, PyObject* const* args, Py_ssize_t nargs, "
            "PyObject* names) {",
            f"  return {name}_parser.call({form}, {target}, args, nargs, names);",
            "}",
            "",
        ]
    return lines


def entries(names: dict[str, list[Op]], wanted: tuple[str, ...]) -> list[str]:
    """Rows of PyMethodDef for the forms in `wanted`."""
    from gen import docs  # which reads the parameter tables of this module

    rows = []
    for name, overloads in names.items():
        for form in _ENTRY_POINTS:
            if form in wanted and any(form in forms_of(op) for op in overloads):
                suffix = _ENTRY_POINTS[form][0]
                python_name = cpp.inplace_name(overloads[0]) if form.startswith("Inplace") else name
                rows.append(
                    f'    {{"{python_name}", as_function({name}_{suffix}), '
                    "METH_FASTCALL | METH_KEYWORDS,\n"
                    f"     {quoted(docs.docstring(name, overloads))}}},"
                )
    return rows


def family_source(symbol: str, names: dict[str, list[Op]]) -> str:
    lines = [
        HEADER,
        "#include <rushlight/ops.h>",
        "",
        '#include "python/bindings.h"',
        '#include "python/parser.h"',
        "",
    ]
    lines += ["namespace rushlight::python {", "", "namespace {", ""]
    for name, overloads in names.items():
        lines += name_source(name, overloads)
    nn = {n: o for n, o in names.items() if o[0].nn}
    plain = {n: o for n, o in names.items() if not o[0].nn}
    functions = ("FunctionForm", "InplaceFunctionForm")
    lines += ["PyMethodDef functions[] = {", *entries(plain, functions), "    {},", "};"]
    lines += ["PyMethodDef nn_functions[] = {", *entries(nn, functions), "    {},", "};"]
    lines += [
        "const PyMethodDef methods[] = {",
        *entries(names, ("MethodForm", "InplaceForm")),
        "    {},",
        "};",
    ]
    lines += ["", "}  // namespace", ""]
    lines += [f"extern const Bindings bindings_{symbol};"]
    lines += [f"const Bindings bindings_{symbol} = {{functions, nn_functions, methods}};", ""]
    lines += ["}  // namespace rushlight::python", ""]
    return "\n".join(lines)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    from gen import stubs  # which reads the parameter tables of this module

    families: dict[str, dict[str, list[Op]]] = {}
    home: dict[str, str] = {}  # overloads of a name stand together, whatever family they are in
    for op in ops:
        if "python" in op.manual or not forms_of(op):
            continue
        family = home.setdefault(op.name, op.family)
        families.setdefault(family, {}).setdefault(op.name, []).append(op)
    files = {}
    symbols = []
    for family, names in families.items():
        items = list(names.items())
        for k in range(0, len(items), NAMES_PER_FILE):
            symbol = f"{family}_{k // NAMES_PER_FILE}"
            symbols.append(symbol)
            files[f"python/ops_{symbol}.cpp"] = family_source(
                symbol, dict(items[k : k + NAMES_PER_FILE])
            )
    lines = [HEADER, '#include "python/bindings.h"', "", "namespace rushlight::python {", ""]
    lines += [f"extern const Bindings bindings_{s};" for s in symbols]
    lines += [
        "",
        "const Bindings* const all_bindings[] = {",
        *(f"    &bindings_{s}," for s in symbols),
        "    nullptr,",
        "};",
    ]
    lines += ["", "}  // namespace rushlight::python", ""]
    files["python/bindings.cpp"] = "\n".join(lines)
    return files | stubs.generate(ops)
