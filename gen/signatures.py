"""What Python sees of an op: its parameters, its forms, and how people and stubs read them."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable
from dataclasses import replace

from gen.schema import OPTIONS, Arg, Type, shown_default, spelt
from gen.table import DTYPES, Op
from gen.text import commas

FUNCTIONS = ("FunctionForm", "InplaceFunctionForm")
METHODS = ("MethodForm", "InplaceForm")
INPLACE = ("InplaceForm", "InplaceFunctionForm")


def shown_name(row: Arg) -> str:
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
        self.out = "out" in op.forms and "out" in op.variants
        if self.out:
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

    def seen(self, form: str) -> list[tuple[int, Arg]]:
        """The parameters that a form has beside the tensor that it is a method of."""
        hidden, out = self.op.receiver if form in METHODS else -1, form == "FunctionForm"
        return [(i, row) for i, row in enumerate(self.rows) if i != hidden and (row.name != "out" or out)]

    def listed(self, form: str, one: Callable[[Arg, bool], str], spread: Callable[[Arg], str]) -> list[str]:
        """The parameters of a form; `one` gets to know whether it stands behind a star."""
        parts, star = [], False
        for i, row in self.seen(form):
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
            shown = shown_default(row)
            default = "" if shown is None else f" = {shown if defaults else '...'}"
            return f"{shown_name(row)}: {spelt(row.type).annotation}{none}{default}"

        def spread(row: Arg) -> str:
            item = spelt(replace(row.type, is_list=False)).annotation
            return f"{row.name}: {item} | Sequence[{item}]"  # view(2, 3) and view((2, 3))

        parts = ["self"] * (form in METHODS) + self.listed(form, one, spread)
        result = "Tensor" if form in INPLACE else self.result(defaults)
        text = f"{self.name(form)}({commas(parts)}) -> {result}"
        return text.replace("builtins.", "") if defaults else f"def {text}: ..."

    def result(self, named: bool) -> str:
        results = self.op.results
        if len(results) != 1:
            names = f"({commas([r.name or 'Tensor' for r in results])})"
            return (names if named else "Any") if results else "None"  # named results have more than a tuple
        base, kinds = results[0].type.base, {"Tensor": "Tensor", "Scalar": "Number", "ScalarType": "dtype"}
        name = kinds.get(base, f"builtins.{base}")
        return f"tuple[{name}, ...]" if results[0].type.is_list else name


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
    in_all = set.intersection(*({shown_name(row) for row in p.rows} for p in found))

    def default(row: Arg) -> str | None:
        shown = shown_default(row)
        if shown is None:
            return None if shown_name(row) in in_all else "None"
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
        return shown_name(row) if given is None else f"{shown_name(row)}={given}"

    parts = ["$self"] * (form in METHODS) + most.listed(form, one, shown_name)
    known = {shown_name(row) for row in most.rows}
    others = {shown_name(row): row for p in found for _, row in p.seen(form) if shown_name(row) not in known}
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


def computed(op: Op) -> str:
    """The dtypes that a formula is for."""
    return commas(DTYPES[s] for s in op.kernel.dtypes)


def _facts(op: Op) -> dict[str, str]:
    """What is known by the kind of an op; empty where the table does not know."""
    said = dict.fromkeys(("Dtypes", "Shape", "Gradient"), "")
    if op.kind == "view":
        said["Shape"] = "a view: the result shares memory with the input"
    elif op.kernel.kind == "dynamic":
        said["Shape"] = "depends on values: not known on meta"
    elif op.kernel.kind == "pointwise":
        said["Dtypes"] = f"{computed(op)}; the result is {PROMOTION[op.kernel.promote]}"
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
    if formulas := dict.fromkeys(computed(op) for op in overloads if op.kernel.kind == "pointwise"):
        others = "; the others are broadcast to it" if any(len(op.tensors) > 1 for op in overloads) else ""
        said |= {"Dtypes": f"{'; or '.join(formulas)}; {name} keeps its own", "Shape": f"{name} keeps its own{others}"}
    return said | ({"Shape": f"{name} becomes the view"} if overloads[0].kind == "view" else {})


def calls(overloads: list[Op], form: str = "") -> list[str]:
    """One line per signature: of a form, or else the function's where there is one."""
    found = [p for p in map(Python, overloads) if (form in p.forms if form else p.forms)]
    return [p.signature(form or p.forms[0], defaults=True) for p in found]


def docstring(overloads: list[Op], form: str) -> str:
    """What `help` shows of a function or method."""
    overloads = [op for op in overloads if form in Python(op).forms]
    said = facts(overloads) | (in_place(overloads, form) if form in INPLACE else {})
    lines = [f"{title}: {text}.".replace("`", "") for title, text in said.items()]
    return "\n".join([*calls(overloads, form), "", overloads[0].doc, "", *lines])
