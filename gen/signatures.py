"""What Python sees of an op: its parameters, its forms, and how people and stubs read them."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable
from dataclasses import replace

from gen import types
from gen.table import DTYPES, Arg, Op, Type
from gen.text import commas

OPTIONS = [
    Arg("dtype", Type("ScalarType", optional=True), "None", True),
    Arg("layout", Type("Layout", optional=True), "torch.strided", True),
    Arg("device", Type("Device", optional=True), "None", True),
    Arg("pin_memory", Type("bool", optional=True), "False", True),
    Arg("requires_grad", Type("bool", optional=True), "False", True),
]
FUNCTIONS = ("FunctionForm", "InplaceFunctionForm")
METHODS = ("MethodForm", "InplaceForm")
INPLACE = ("InplaceForm", "InplaceFunctionForm")


def python_arguments(op: Op) -> list[Arg]:
    """The arguments as Python takes them."""
    first = op.args[:1] if op.number_first else []
    return [*(replace(a, type=replace(a.type, number=True)) for a in first), *op.args[len(first) :]]


def rows(op: Op) -> list[Arg]:
    """The parameters."""
    args = [row for a in python_arguments(op) for row in (OPTIONS if a.type.base == "options" else [a])]
    out = Arg("out", Type("Tensor", is_list=len(op.results) > 1, optional=True), "None", True)
    return [*args, out] if op.python_out else args


def forms_of(op: Op) -> list[str]:
    function, functional, inplace = "function" in op.variants, "functional" in op.forms, "inplace" in op.forms
    unary = op.kernel.kind == "pointwise" and len(op.tensors) == 1  # relu_(x) is a function too
    has = {
        "FunctionForm": functional and function,
        "MethodForm": functional and "method" in op.variants,
        "InplaceForm": inplace and "method" in op.variants,
        "InplaceFunctionForm": inplace and (op.nn or op.inplace_function or (function and (op.inplace_only or unary))),
    }
    return [form for form, exists in has.items() if exists]


def python_name(op: Op, form: str) -> str:
    return op.inplace_name if form in INPLACE else op.functional_name or op.name


def has_varargs(op: Op) -> bool:
    """`view(2, 3)`: a list of ints is the only positional parameter besides self; or `varargs=True`."""
    positional = [a for a in op.args if not a.keyword_only and not (a.name == "self" and a.type.is_tensor)]
    ints = len(positional) == 1 and positional[0].type.base == "int" and positional[0].type.is_list
    return op.varargs or ints


def _is_spread(op: Op, form: str, place: int, row: Arg) -> bool:
    """`zeros(2, 3)` and `x.permute(1, 0)`, but `permute(x, (1, 0))`."""
    first = form in METHODS or place == 0 or row.type.is_tensor
    return has_varargs(op) and not row.keyword_only and row.type.is_list and first


def by_name(ops: list[Op]) -> dict[str, list[Op]]:
    """The overloads of a name stand together, whatever family they are in."""
    # `div_.mode` is one more signature of the method that `div` has as `div_`.
    with_inplace = {op.name for op in ops if not op.inplace_only and "InplaceForm" in forms_of(op)}
    names: dict[str, list[Op]] = {}
    for op in ops:
        if "python" not in op.manual and forms_of(op):
            shared = op.inplace_only and op.name[:-1] in with_inplace
            names.setdefault(op.name[:-1] if shared else op.name, []).append(op)
    return names


def signature(op: Op, form: str, *, defaults: bool = False) -> str:
    """The definition of a form as a stub has it, or as people read it."""
    bound = form in METHODS
    parts = ["self"] if bound else []
    star = False
    for i, row in _parameters_of_form(op, form):
        if _is_spread(op, form, i, row):
            item = types.spelling(replace(row.type, is_list=False)).annotation
            parts.append(f"*{row.name}: {item} | Sequence[{item}]")  # view(2, 3) and view((2, 3))
            star = True
            continue
        if row.keyword_only and not star:
            parts.append("*")
            star = True
        name = _public_name(row)
        none = " | None" if row.type.optional or row.default == "None" else ""
        shown = types.python_default(row)
        default = "" if shown is None else f" = {shown if defaults else '...'}"
        parts.append(f"{name}: {types.spelling(row.type).annotation}{none}{default}")
    text = f"{python_name(op, form)}({commas(parts)}) -> "
    if not defaults:
        return f"def {text}{_result(op, form)}: ..."
    if len(op.results) > 1 and form not in INPLACE:
        return text.replace("builtins.", "") + f"({commas([r.name or 'Tensor' for r in op.results])})"
    return (text + _result(op, form)).replace("builtins.", "")


def text_signature(overloads: list[Op], form: str) -> str:
    """The parameters as `inspect.signature` reads them, at the beginning of a docstring in C.

    They are those of the overload that has most, and what others know by name; what one of them does without has a
    default.
    """
    overloads = [op for op in overloads if form in forms_of(op)]
    most = max(overloads, key=lambda op: len(rows(op)))
    in_all = set.intersection(*({_public_name(row) for row in rows(op)} for op in overloads))
    parts, star, optional = ["$self"] if form in METHODS else [], False, False
    for i, row in _parameters_of_form(most, form):
        if _is_spread(most, form, i, row):
            parts.append(f"*{_public_name(row)}")
            star = True
            continue
        if row.keyword_only and not star:
            parts.append("*")
            star = True
        default = _default(row, in_all)
        optional = not star and (optional or default is not None)
        if optional and default is None:  # Python wants a default after another
            default = "None"
        parts.append(_public_name(row) if default is None else f"{_public_name(row)}={default}")
    known = {_public_name(row) for row in rows(most)}
    seen = [row for op in overloads for _, row in _parameters_of_form(op, form)]
    others = {_public_name(row): row for row in seen if _public_name(row) not in known}
    if others and not star:
        parts.append("*")
    parts += [f"{name}={_default(row, in_all)}" for name, row in others.items()]
    return f"({commas(parts)})"


def _parameters_of_form(op: Op, form: str) -> list[tuple[int, Arg]]:
    """The parameters that a form has beside the tensor that it is a method of."""
    hidden = op.receiver if form in METHODS else -1
    return [(i, r) for i, r in enumerate(rows(op)) if i != hidden and (r.name != "out" or form == "FunctionForm")]


def _public_name(row: Arg) -> str:
    name = "input" if row.name == "self" else row.name
    return name + "_" if keyword.iskeyword(name) else name


def _default(row: Arg, in_all: set[str]) -> str | None:
    shown = types.python_default(row)
    return "None" if shown is None and _public_name(row) not in in_all else _literal(shown)


def _literal(default: str | None) -> str | None:
    """A default as Python can read it without names: None for `torch.strided`."""
    if default is None:
        return None
    try:
        ast.literal_eval(default)
    except ValueError:
        return "1e999" if default == "inf" else "-1e999" if default == "-inf" else "None"
    return default


def _result(op: Op, form: str) -> str:
    if form in INPLACE:
        return "Tensor"
    if len(op.results) != 1:
        return "Any" if op.results else "None"  # named results have more than a tuple
    result = op.results[0].type
    kinds = {"Tensor": "Tensor", "Scalar": "Number", "ScalarType": "dtype"}
    name = kinds.get(result.base, f"builtins.{result.base}")
    return f"tuple[{name}, ...]" if result.is_list else name


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
    return commas([DTYPES[s] for s in op.kernel.dtypes])


def dtypes(op: Op) -> str:
    """What a formula takes and gives; empty where the table does not know."""
    if op.kernel.kind != "pointwise":
        return ""
    return f"{formula_dtypes(op)}; the result is {PROMOTION[op.kernel.promote]}"


def shapes(op: Op) -> str:
    if op.kind == "view":
        return "a view: the result shares memory with the input"
    if op.kernel.kind == "pointwise":
        return "the inputs are broadcast to a common shape" if len(op.tensors) > 1 else "that of the input"
    return "depends on values: not known on meta" if op.kernel.kind == "dynamic" else ""


def gradient(op: Op) -> str:
    if op.kind == "composite" and op.grad != "none":
        return "through the ops that it is made of"
    if not isinstance(op.grad, dict):
        return "none"
    known = commas([f"`{name}`" for key in op.grad for name in key.split(", ")])
    return f"by {known}" + "".join(f"; `{name}` has none" for name in op.nondiff)


RULES: dict[str, Callable[[Op], str]] = {"Dtypes": dtypes, "Shape": shapes, "Gradient": gradient}


def facts(overloads: list[Op]) -> dict[str, str]:
    """What the rules say of the overloads, each thing once."""
    said = {title: dict.fromkeys(rule(op) for op in overloads) for title, rule in RULES.items()}
    return {title: "; or ".join(filter(None, texts)) for title, texts in said.items() if any(texts)}


def in_place(overloads: list[Op], form: str) -> dict[str, str]:
    """What is said instead where the result is written into a tensor."""
    name = "self" if form in METHODS else "input"
    said = {"In place": f"{name} is changed and returned"}
    formulas = dict.fromkeys(formula_dtypes(op) for op in overloads if op.kernel.kind == "pointwise")
    if formulas:
        said["Dtypes"] = f"{'; or '.join(formulas)}; {name} keeps its own"
        others = "; the others are broadcast to it" if any(len(op.tensors) > 1 for op in overloads) else ""
        said["Shape"] = f"{name} keeps its own{others}"
    if overloads[0].kind == "view":
        said["Shape"] = f"{name} becomes the view"
    return said


def calls(overloads: list[Op], form: str = "") -> list[str]:
    """One line per signature: of a form, or else the function's where there is one."""
    shown = [(op, form or forms_of(op)[0]) for op in overloads if forms_of(op)]
    return [signature(op, shape, defaults=True) for op, shape in shown if shape in forms_of(op)]


def docstring(overloads: list[Op], form: str) -> str:
    """What `help` shows of a function or method."""
    overloads = [op for op in overloads if form in forms_of(op)]
    said = facts(overloads) | (in_place(overloads, form) if form in INPLACE else {})
    lines = [f"{title}: {text}.".replace("`", "") for title, text in said.items()]
    return "\n".join([*calls(overloads, form), "", overloads[0].doc, "", *lines])
