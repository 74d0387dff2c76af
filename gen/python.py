"""The Python half: for every op name a table of its signatures, their calls and their forms.

`src/python/parser.h` is what the generated code is written against. One file per family, and
`bindings.cpp`, which lists the functions and methods of all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from gen import cpp, types
from gen.table import Arg, Op
from gen.text import block, source
from ops.deprecated import ORDERS

NAMES_PER_FILE = 24
MOST_PARAMETERS = 24  # class Arguments has room for so many
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


def out_case(op: Op, named: str, arguments: str) -> list[str]:
    """The statements of a call with out=."""
    i = place(op, "out")
    n = len(op.results)
    if n == 1:
        call = f"[&] {{ rushlight::{op.name}_out(out, {arguments}); }}"
        given = f"const Tensor& out = a.tensor({i});"
        return block(f"if (a.given({i}))", [given, f"return finish_given(a, a.object({i}), {call});"])
    outs = ", ".join(f"out[{k}]" for k in range(n))
    kinds = ", ".join(["Tensor"] * n)
    call = f"[&]() -> std::tuple<{kinds}> {{ return rushlight::{op.name}_out({outs}, {arguments}); }}"
    given = f'const std::vector<Tensor> out = a.out_tensors({i}, {n}, "{op.name}");'
    return block(f"if (a.given({i}))", [given, f"return finish_named(a, {named}, {call});"])


def run_case(op: Op, original: Op) -> list[str]:
    """The statements that convert the bound arguments of a signature and make the call.

    `original` is the op where `op` is a reordering of it: what is not bound keeps its default.
    """
    lines = [accessor(op, arg) for arg in op.args]
    bound = {arg.name for arg in op.args}
    for arg in original.args:
        if arg.name not in bound:
            lines.append(f"const {types.owned(arg.type)} {arg.name}{types.default(arg)};")
    arguments = ", ".join(passed(arg) for arg in original.args)
    forms = forms_of(op)
    if any(form.startswith("Inplace") for form in forms):
        target = f"a.object({op.receiver})" if op.receiver >= 0 else "Py_None"
        call = f"[&] {{ rushlight::{cpp.inplace_name(op)}({arguments}); }}"
        result = [f"return finish_given(a, {target}, {call});"]
        if all(form.startswith("Inplace") for form in forms):
            return lines + result
        lines += block("if (a.inplace())", result)
    names = [r.name for r in op.results]
    named = "nullptr"
    if len(names) > 1 and all(names):
        fields = ", ".join(f'"{n}"' for n in names)
        lines.insert(0, "static PyTypeObject* type = nullptr;")
        named = f'named_result(type, "{op.name}", {{{fields}}})'
    if cpp.out_form(op) and "FunctionForm" in forms:
        lines += out_case(op, named, arguments)
    call = f"[&] {{ return rushlight::{op.name}({arguments}); }}"
    finish = {0: "finish_given(a, Py_None, ", 1: "finish(a, "}.get(len(names), f"finish_named(a, {named}, ")
    return [*lines, f"return {finish}{call});"]


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


def name_source(name: str, overloads: list[Op]) -> list[str]:
    """The tables and the calls of a name."""
    lines = [f"// ---- {name} ----", ""]
    rows, cases = [], []
    old = [(reordered(overloads[0], order), overloads[0]) for order in ORDERS.get(name, [])]
    signatures = [(op, op) for op in overloads] + old
    for k, (op, original) in enumerate(signatures):
        count = len(params(op))
        if count > MOST_PARAMETERS:
            raise ValueError(f"{name}: more than {MOST_PARAMETERS} parameters")
        lines += table(op, f"{name}_params_{k}") if count else []
        rows_of = f"{name}_params_{k}" if count else "nullptr"
        flags = ", ".join(str(v).lower() for v in (has_varargs(op), op is not original))
        rows.append(f"    {{{rows_of}, {count}, {' | '.join(forms_of(op))}, {op.receiver}, {flags}}},")
        cases += block(f"case {k}:", run_case(op, original))
    run = [*block("switch (a.signature())", cases), "Py_UNREACHABLE();"]
    owner = "nn_owner" if overloads[0].nn else "ops_owner"
    return [
        *lines,
        *(f"const Signature {name}_signatures[] = {{", *rows, "};"),
        *block(f"PyObject* {name}_run([[maybe_unused]] const Arguments& a)", run),
        f'const Parser {name}_parser = {{"{name}", {name}_signatures, {len(rows)}, {name}_run, &{owner}}};',
        "",
    ]


FUNCTIONS = ("FunctionForm", "InplaceFunctionForm")
METHODS = ("MethodForm", "InplaceForm")


def entries(head: str, names: dict[str, list[Op]], wanted: tuple[str, ...]) -> list[str]:
    """An array of PyMethodDef with a row for every form in `wanted`."""
    from gen import docs  # which reads the parameter tables of this module

    rows = []
    for name, overloads in names.items():
        for form in wanted:
            if any(form in forms_of(op) for op in overloads):
                python_name = cpp.inplace_name(overloads[0]) if form.startswith("Inplace") else name
                rows += [
                    f'    {{"{python_name}", as_function(entry<{name}_parser, {form}>), METH_FASTCALL | METH_KEYWORDS,',
                    f"     {quoted(docs.docstring(name, overloads))}}},",
                ]
    return [f"{head}[] = {{", *rows, "    {},", "};"]


def family_source(symbol: str, names: dict[str, list[Op]]) -> str:
    nn = {n: o for n, o in names.items() if o[0].nn}
    plain = {n: o for n, o in names.items() if not o[0].nn}
    lines = [
        *("namespace {", ""),
        *(line for name, overloads in names.items() for line in name_source(name, overloads)),
        *entries("PyMethodDef functions", plain, FUNCTIONS),
        *entries("PyMethodDef nn_functions", nn, FUNCTIONS),
        *entries("const PyMethodDef methods", names, METHODS),
        *("", "}  // namespace", ""),
        f"extern const Bindings bindings_{symbol};",
        f"const Bindings bindings_{symbol} = {{functions, nn_functions, methods}};",
    ]
    includes = ["<rushlight/ops.h>", "", "python/bindings.h", "python/parser.h"]
    return source(includes, "rushlight::python", lines)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    families: dict[str, dict[str, list[Op]]] = {}
    home: dict[str, str] = {}  # overloads of a name stand together, whatever family they are in
    # `div_.mode` is one more signature of the method that `div` has as `div_`.
    with_inplace = {op.name for op in ops if not op.inplace_only and "InplaceForm" in forms_of(op)}
    for op in ops:
        if "python" in op.manual or not forms_of(op):
            continue
        name = op.name[:-1] if op.inplace_only and op.name[:-1] in with_inplace else op.name
        family = home.setdefault(name, op.family)
        families.setdefault(family, {}).setdefault(name, []).append(op)
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
    lines = [f"extern const Bindings bindings_{s};" for s in symbols]
    lines += ["const Bindings* const all_bindings[] = {", *(f"    &bindings_{s}," for s in symbols), "    nullptr,", "};"]
    files["python/bindings.cpp"] = source(["python/bindings.h"], "rushlight::python", lines)
    return files
