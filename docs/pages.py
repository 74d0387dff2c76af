"""The documentation of ops: a Markdown page a family.

What the table knows comes from gen/python.py, as do the docstrings of Python's functions and
methods. What only a run can tell (dtypes, shapes, messages) comes in as `Facts`, which docs/make.py
measures on the samples of the tests.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field

from gen import declarations, python, rules
from gen.modules import classes
from gen.table import Op, load_examples

INDEX = """
# Ops

Every op by its family. Functions are in `rushlight`, those of networks in
`rushlight.nn.functional`; in C++ they are in `namespace rushlight`, which is `torch` and `at` for
programs that include `<torch/torch.h>`. [Modules](modules.md) without state have a page of their
own. Gradients exist of any order. In derivatives `self` is the first argument and `grad` the
gradient of the result; where shapes are said, `x(2, 3)` is a tensor of that shape.
"""


@dataclass
class Facts:
    """What running an op has shown. Calls are texts; `x(2, 3)` is a tensor of that shape."""

    dtypes: list[str] = field(default_factory=list)
    shapes: list[tuple[str, str]] = field(default_factory=list)  # call, shapes of the results
    errors: list[tuple[str, str, str]] = field(default_factory=list)  # call, exception, message


def by_name(ops: list[Op]) -> dict[str, list[Op]]:
    """The public ops; overloads of a name stand together."""
    names: dict[str, list[Op]] = {}
    for op in ops:
        if not op.name.startswith("_") and python.Python(op).forms:
            names.setdefault(op.name, []).append(op)
    return names


def forms(overloads: list[Op]) -> str:
    """The ways to call it."""
    space = "nn.functional." if "nn" in overloads[0].python else ""
    places = {
        "FunctionForm": space,
        "MethodForm": "Tensor.",
        "InplaceForm": "Tensor.",
        "InplaceFunctionForm": space,
    }
    found = {form for op in overloads for form in python.Python(op).forms}
    texts = [
        f"`{place}{python.Python(overloads[0]).name(form)}`"
        for form, place in places.items()
        if form in found
    ]
    if any("out" in op.forms for op in overloads):
        texts.append("`out=`")
    return ", ".join(texts)


def is_plain(call: str) -> bool:
    """Whether a sample is tensors `x(2, 3)` and numbers; other makers are known to tests alone."""
    return set(re.findall(r"[A-Za-z_]\w*(?=[.(])", call)) <= {"x"}


def in_python(call: str) -> str:
    """A sample as one writes it."""
    return re.sub(r"\bm\.", "torch.", call)


def section(name: str, overloads: list[Op], facts: Facts) -> list[str]:
    """One op on its family's page."""
    known = python.facts(overloads)
    lines = [f"## {name}", "", "```python", *python.calls(overloads), "```", ""]
    lines += ["```cpp", *declarations.calls(overloads), "```", ""]
    lines += [*dict.fromkeys(op.doc for op in overloads), ""]
    lines.append(f"- **Forms:** {forms(overloads)}")
    lines += [f"- **{title}:** {text}" for title, text in known.items()]
    if facts.dtypes and "Dtypes" not in known:
        lines.append(f"- **Dtypes:** {', '.join(facts.dtypes)}")
    said = {pair for op in overloads for pair in rules.autocast(op).items()}
    if said:
        casts = ", ".join(f"{rule} on {device}" for device, rule in sorted(said))
        lines.append(f"- **Autocast:** {casts}")
    plain = [(call, result) for call, result in facts.shapes if is_plain(call)]
    shown = [f"`{name}({call})` gives `{result}`" for call, result in plain]
    lines += [f"- **Shapes:** {', '.join(shown)}"] * bool(shown)
    for op in overloads:
        if isinstance(op.grad, dict):
            lines += [
                f"- **Derivative** by `{key}`: `{formula}`" for key, formula in op.grad.items()
            ]
    lines += [
        f"- **{kind}:** `{name}({in_python(call)})`: {message}"
        for call, kind, message in facts.errors
    ]
    if overloads[0].ref:
        lines.append(f"- **Reference:** `{overloads[0].ref}`")
    example = next((e for op in overloads if (e := load_examples().get(op.name))), "")
    lines += ["", "```pycon", example, "```"] if example else []
    return [*lines, ""]


def modules() -> str:
    """The page of modules without state, in both languages."""
    lines = ["# modules", "", "Modules without state, by their names in `rushlight.nn`.", ""]
    lines += ["[All ops](README.md)", ""]
    for module in classes():
        lines += [f"## nn::{module.name}", "", module.doc, ""]
        lines += ["```python", f"nn.{module.made}", "```", ""]
        lines += ["```cpp", *module.calls(), "```", ""]
        for kind, option, default in module.rows:
            given = "" if default is None else f", `{default}` by default"
            lines.append(f"- **Option** `{option}`: `{kind}`{given}")
        lines.append("")
    return "\n".join(lines)


def generate(ops: list[Op], facts: dict[str, Facts]) -> dict[str, str]:
    """File name → page: one per family, modules.md, and README.md, the index."""
    pages: dict[str, list[str]] = {}
    index: dict[str, list[str]] = {}
    for name, overloads in sorted(by_name(ops).items()):
        family = overloads[0].family
        if family not in pages:
            module = importlib.import_module(f"ops.{family}")
            title = (module.__doc__ or family).strip().splitlines()[0]
            pages[family] = [f"# {family}", "", title, "", "[All ops](README.md)", ""]
            index[family] = []
        pages[family] += section(name, overloads, facts.get(name, Facts()))
        index[family].append(f"[{name}]({family}.md#{name})")
    head = [*INDEX.strip().splitlines(), ""]
    for family in sorted(index):
        head += [f"**[{family}]({family}.md)**: {', '.join(index[family])}", ""]
    texts = {f"{family}.md": "\n".join(lines) for family, lines in pages.items()}
    return texts | {"modules.md": modules(), "README.md": "\n".join(head)}
