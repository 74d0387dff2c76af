"""Type stubs: `_C.pyi` (gen/_C.pyi.in with the methods of tensors) and `_functions.pyi`."""

from __future__ import annotations

import keyword
from pathlib import Path

from gen import cpp, python
from gen.table import Op

HEADER = "# Generated from the op table by `python -m gen`. Do not edit.\n"
_TYPES = {
    "TensorList": "Sequence[Tensor]",
    "OptionalTensorList": "Sequence[Tensor | None]",
    "Tensor": "Tensor",
    "TensorOrNumber": "Tensor | Number",
    "Scalar": "Number | Tensor",
    "ScalarList": "Sequence[Number]",
    "Int": "builtins.int",
    "IntList": "builtins.int | Sequence[builtins.int]",
    "Float": "builtins.float",
    "FloatList": "builtins.float | Sequence[builtins.float]",
    "Bool": "builtins.bool",
    "String": "builtins.str",
    "Dtype": "dtype | type",
    "Device": "device | builtins.str | builtins.int",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
}


def _parameter(row: python.Param, defaults: bool) -> str:
    name = "input" if row.name == "self" else row.name
    name += "_" if keyword.iskeyword(name) else ""
    text = f"{name}: {_TYPES[row.kind]}" + (" | None" if row.none else "")
    if row.shown is None and not row.out:
        return text
    return f"{text} = {row.shown if defaults else '...'}"


def _result(op: Op, form: str) -> str:
    if form.startswith("Inplace"):
        return "Tensor"
    kinds = {"Tensor": "Tensor", "Scalar": "Number", "ScalarType": "dtype"}
    names = []
    for r in op.results:
        base = kinds.get(r.type.base, f"builtins.{r.type.base}")
        names.append(f"tuple[{base}, ...]" if r.type.is_list else base)
    if len(names) == 1:
        return names[0]
    return "Any" if names else "None"  # named results have more than a tuple


def signature(op: Op, form: str, *, defaults: bool = False) -> str:
    """The definition of a form as a stub has it, or as people read it."""
    bound = form in ("MethodForm", "InplaceForm")
    skip = op.receiver if bound else -1
    parts = ["self"] if bound else []
    star = False
    rows = [
        r
        for i, r in enumerate(python.params(op))
        if i != skip and (not r.out or form == "FunctionForm")
    ]
    for row in rows:
        if python.has_varargs(op) and row.kind == "IntList" and not row.keyword_only:
            # view(2, 3) and view((2, 3))
            parts.append(f"*{row.name}: builtins.int | Sequence[builtins.int]")
            star = True
            continue
        if row.keyword_only and not star:
            parts.append("*")
            star = True
        parts.append(_parameter(row, defaults))
    name = cpp.inplace_name(op) if form.startswith("Inplace") else op.name
    result = _result(op, form)
    if not defaults:
        return f"def {name}({', '.join(parts)}) -> {result}: ..."
    if result == "Any":
        result = f"({', '.join(r.name or 'Tensor' for r in op.results)})"
    return f"{name}({', '.join(parts)}) -> {result}".replace("builtins.", "")


def _definitions(ops: list[Op], forms: tuple[str, ...]) -> list[str]:
    found: dict[str, list[str]] = {}
    for op in ops:
        for form in python.forms_of(op):
            if form in forms and "python" not in op.manual:
                line = signature(op, form)
                found.setdefault(line[4 : line.index("(")], []).append(line)
    lines = []
    for name, overloads in found.items():
        if not keyword.iskeyword(name):
            lines += [
                t for o in overloads for t in (["@overload"] if len(overloads) > 1 else []) + [o]
            ]
    return lines


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    template = (Path(__file__).parent / "_C.pyi.in").read_text()
    methods = "\n".join("    " + line for line in _definitions(ops, ("MethodForm", "InplaceForm")))
    functions = _definitions(
        [op for op in ops if not op.nn], ("FunctionForm", "InplaceFunctionForm")
    )
    head = [
        HEADER + "# mypy: ignore-errors",
        "import builtins",
        "from collections.abc import Sequence",
        "from typing import Any, overload",
        "",
        "from rushlight._C import Generator, Number, device, dtype, layout, memory_format",
        "from rushlight._tensor import Tensor",
        "",
    ]
    return {
        "stubs/_C.pyi": HEADER + template.replace("    # generated: methods", methods),
        "stubs/_functions.pyi": "\n".join([*head, *functions, ""]),
    }
