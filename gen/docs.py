"""Documentation of ops: a Markdown page a family, and the docstrings of Python's functions and methods.

What the table knows stands here. What only a run can tell (dtypes, shapes, messages) comes in as `Facts`, which
docs/make.py measures on the samples of the tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from gen import cpp, python, stubs
from gen.table import Op

SETS = {
    "set_Bool": "bool",
    "set_integers": "integers",
    "set_floats": "float32, float64",
    "set_reduced": "float16, bfloat16",
    "set_floating": "floating point",
    "set_complexes": "complex",
    "set_real": "integers, floating point",
    "set_numbers": "integers, floating point, complex",
    "set_all": "all",
}
PROMOTION = {
    "same": "of the type that the inputs promote to",
    "float": "floating point: integers and bool become the default dtype",
    "bool": "bool",
    "real": "of the type that the inputs promote to; real where that is complex",
    "none": "of the first input's type",
    "rest": "of the type that the inputs after the first promote to",
}


INDEX = """
Every op by its family. Functions are in `rushlight`, those of networks in `rushlight.nn.functional`; in C++ they are in
`namespace rushlight`, with the same arguments in the same order. Gradients exist of any order. In derivatives `self` is
the first argument and `grad` the gradient of the result; in examples `x(2, 3)` is a tensor of that shape.
"""


@dataclass
class Facts:
    """What running an op has shown. Calls are texts in which `x(2, 3)` is a tensor of that shape."""

    dtypes: list[str] = field(default_factory=list)
    shapes: list[tuple[str, str]] = field(default_factory=list)  # call, shapes of the results
    errors: list[tuple[str, str, str]] = field(default_factory=list)  # call, exception, message


def by_name(ops: list[Op]) -> dict[str, list[Op]]:
    """The public ops; overloads of a name stand together."""
    names: dict[str, list[Op]] = {}
    for op in ops:
        if not op.name.startswith("_") and python.forms_of(op):
            names.setdefault(op.name, []).append(op)
    return names


def signatures(overloads: list[Op]) -> list[str]:
    """As Python sees them: one line per signature, the function's where there is one."""
    lines = []
    for op in overloads:
        forms = python.forms_of(op)
        if forms:
            lines.append(stubs.signature(op, forms[0], defaults=True))
    return lines


def gradient(op: Op) -> str:
    if op.grad == "none":
        return "none"
    if op.kind == "composite":
        return "through the ops that it is made of"
    if not isinstance(op.grad, dict):
        return "none"
    known = ", ".join(f"`{name}`" for key in op.grad for name in key.split(", "))
    fixed = "".join(f"; `{name}` has none" for name in op.nondiff)
    return f"by {known}{fixed}"


def dtypes(op: Op) -> str:
    """What a formula takes and gives; empty where the table does not know."""
    if op.kernel is None or op.kernel.kind != "pointwise":
        return ""
    return ", ".join(SETS[s] for s in op.kernel.dtypes) + "; the result is " + PROMOTION[op.kernel.promote]


def shapes(op: Op) -> str:
    if op.kind == "view":
        return "a view: the result shares memory with the input"
    if op.kernel is not None and op.kernel.kind == "pointwise" and len(op.tensors) > 1:
        return "the inputs are broadcast to a common shape"
    if op.kernel is not None and op.kernel.kind == "pointwise":
        return "that of the input"
    if op.kernel is not None and op.kernel.kind == "dynamic":
        return "depends on values: not known on meta"
    return ""


RULES = {"Dtypes": dtypes, "Shape": shapes, "Gradient": gradient}


def each(rule: Callable[[Op], str], overloads: list[Op]) -> str:
    """What a rule says of the overloads, each thing once."""
    return "; or ".join(dict.fromkeys(text for op in overloads if (text := rule(op))))


def forms(name: str, overloads: list[Op]) -> str:
    """The ways to call it."""
    found = {form for op in overloads for form in python.forms_of(op)}
    space = "nn.functional." if overloads[0].nn else ""
    written = cpp.inplace_name(overloads[0])
    ways = [
        ("FunctionForm", f"`{space}{name}`"),
        ("MethodForm", f"`Tensor.{name}`"),
        ("InplaceForm", f"`Tensor.{written}`"),
        ("InplaceFunctionForm", f"`{space}{written}`"),
    ]
    texts = [text for form, text in ways if form in found]
    if any(cpp.out_form(op) for op in overloads):
        texts.append("`out=`")
    return ", ".join(texts)


def docstring(name: str, overloads: list[Op]) -> str:
    """What `help` shows of a function or method."""
    rows = [(title, each(rule, overloads)) for title, rule in RULES.items()]
    facts = "\n".join(f"{title}: {text}." for title, text in rows if text)
    return "\n".join([*signatures(overloads), "", overloads[0].doc, "", facts.replace("`", "")])


def section(name: str, overloads: list[Op], facts: Facts) -> list[str]:
    """One op on its family's page."""
    lines = [f"## {name}", "", "```python"]
    lines += [*signatures(overloads), "```", ""]
    lines += [*dict.fromkeys(op.doc for op in overloads), ""]
    lines.append(f"- **Forms:** {forms(name, overloads)}")
    for title, rule in RULES.items():
        if text := each(rule, overloads):
            lines.append(f"- **{title}:** {text}")
    if facts.dtypes and not each(dtypes, overloads):
        lines.append(f"- **Dtypes:** {', '.join(facts.dtypes)}")
    lines += [f"- **Example:** `{name}({call})` → `{result}`" for call, result in facts.shapes]
    for op in overloads:
        if isinstance(op.grad, dict):
            lines += [f"- **Derivative** by `{key}`: `{formula}`" for key, formula in op.grad.items()]
    lines += [f"- **{kind}:** `{name}({call})`: {message}" for call, kind, message in facts.errors]
    if overloads[0].ref:
        lines.append(f"- **Reference:** `{overloads[0].ref}`")
    return [*lines, ""]


def generate(ops: list[Op], facts: dict[str, Facts]) -> dict[str, str]:
    """File name → page: one per family, and README.md, the index."""
    pages: dict[str, list[str]] = {}
    index: dict[str, list[str]] = {}
    for name, overloads in sorted(by_name(ops).items()):
        family = overloads[0].family
        if family not in pages:
            title = (importlib.import_module(f"ops.{family}").__doc__ or family).strip().splitlines()[0]
            pages[family] = [f"# {family}", "", title, "", "[All ops](README.md)", ""]
            index[family] = []
        pages[family] += section(name, overloads, facts.get(name, Facts()))
        index[family].append(f"[{name}]({family}.md#{name})")
    head = ["# Ops", "", *INDEX.strip().splitlines(), ""]
    for family in sorted(index):
        head += [f"**[{family}]({family}.md)**: {', '.join(index[family])}", ""]
    texts = {f"{family}.md": "\n".join(lines) for family, lines in pages.items()}
    return texts | {"README.md": "\n".join(head)}
