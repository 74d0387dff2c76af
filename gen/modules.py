"""Expands ops/modules.py into the Python classes of nn's stateless modules, one file a family.

They become the package's `nn/modules/_stateless/`, from where nn/modules re-exports them.
"""

from __future__ import annotations

import re

from gen import table
from gen.text import commas, fill

FOLDER = "package/nn/modules/_stateless"  # below the generated files; "package" is laid over the Python package

FAMILY = '''
"""Stateless modules of the family "$family". Generated from ops/modules.py; do not edit."""

from __future__ import annotations

from rushlight import Tensor

from ... import functional as F
$settings
from ..module import Module

__all__ = [
    $names
]
$classes
'''

CLASS = '''
class $name($base):
    """$doc"""

    __module__ = "rushlight.nn.modules.$family"
    $members
'''


def annotation(kind: table.Type) -> str:
    text = kind.base
    if kind.is_list:
        item = f"{text} | None" if kind.element_optional else text
        text = f"{item} | tuple[{item}, ...]"
    return f"{text} | None" if kind.optional else text


def expression(value: str | int | tuple) -> str:
    """What `sets` says: a name, a number, or a rule with what it is given."""
    return f"_{value[0]}({commas([expression(v) for v in value[1:]])})" if isinstance(value, tuple) else str(value)


class Class:
    """One entry with its signature parsed."""

    def __init__(self, entry: dict, known: dict[str, Class]):
        self.entry = entry
        self.name, _, self.args, _ = table.parse_signature(entry["signature"] + " -> ()")
        self.base = known.get(entry.get("base", "Module"))  # None: Module
        known[self.name] = self

    def constructor(self) -> list[str]:
        base = [a.name for a in self.base.args] if self.base else []
        names = [a.name for a in self.args]
        # Without arguments other than its base's, a class has its base's constructor.
        if not names or (self.base and names == base):
            return []
        passed = {name: name for name in base if name in names} | self.entry.get("fixed", {})
        attributes = {name: name for name in names if name not in passed} | self.entry.get("sets", {})
        lines = [f"super().__init__({commas([f'{k}={v}' for k, v in passed.items()])})"]
        buffers = [a.name for a in self.args if a.type.base == "Tensor"]
        for name, value in attributes.items():
            if name in buffers:
                lines += [f'self.register_buffer("{name}", {value})', f"self.{name}: Tensor | None"]
            elif value is not None:
                lines.append(f"self.{name} = {expression(value)}")
        return ["", f"def __init__({self.parameters()}) -> None:", *(f"    {line}" for line in lines)]

    def parameters(self) -> str:
        parts = ["self"]
        for arg in self.args:
            if arg.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(f"{arg.name}: {annotation(arg.type)}" + (f" = {arg.default}" if arg.default else ""))
        return commas(parts)

    def constructor_text(self) -> str:
        """`ReLU(inplace: bool = False)`, for the documentation."""
        owner = self
        while owner.base and not owner.args:
            owner = owner.base
        return f"{self.name}({owner.parameters().removeprefix('self').removeprefix(', ')})"

    def call(self) -> str:
        """The function with its inputs and what is passed besides."""
        inputs = self.inputs()
        function = f"{inputs.pop(0)}." if self.entry.get("method") else "F."
        by_place, _, by_name = self.entry["passes"].partition("*")
        items = [item.strip() for item in by_place.split(",") if item.strip()]
        passed = [item if item.startswith("'") else f"self.{item}" for item in items]
        names = [name.strip() for name in by_name.split(",") if name.strip()]
        passed += [f"{name}=self.{name}" for name in names]
        passed += [f"{name}={value}" for name, value in self.entry.get("python", {}).items()]
        return f"{function}{self.entry['function']}({commas(inputs, passed)})"

    def inputs(self) -> list[str]:
        return self.entry.get("inputs", "input").split(", ")

    def forward(self) -> list[str]:
        if not self.entry["function"]:
            return []
        inputs = [f"{name}: Tensor" for name in self.inputs()]
        return ["", f"def forward(self, {commas(inputs)}) -> Tensor:", f"    return {self.call()}"]

    def extra_repr(self) -> list[str]:
        """What `show` says: `{name}` is an attribute, `{?name}` one that is shown where it is true."""
        if "show" not in self.entry:
            return []
        text = re.sub(r"\{(\w+)", r"{self.\1", self.entry["show"])
        text = re.sub(r"^\{\?(\w+)\}", r"{'\1=True' if self.\1 else ''}", text)
        text = re.sub(r"\{\?(\w+)\}", r"{', \1=True' if self.\1 else ''}", text)
        return ["", "def extra_repr(self) -> str:", f'    return f"{text}"']

    def source(self) -> list[str]:
        members = [*self.constructor(), *self.forward(), *self.extra_repr()]
        base, doc = self.base.name if self.base else "Module", self.entry["doc"]
        return ["", "", *fill(CLASS, name=self.name, base=base, doc=doc, family=self.entry["family"], members=members)]


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    from ops.modules import MODULES

    known: dict[str, Class] = {}
    classes = [Class(entry, known) for entry in MODULES]
    files = {f"{FOLDER}/__init__.py": '"""Generated from ops/modules.py; see nn/modules for what is public."""\n'}
    for family in dict.fromkeys(c.entry["family"] for c in classes):
        members = [c for c in classes if c.entry["family"] == family]
        body = [line for c in members for line in c.source()]
        used = sorted(set(re.findall(r"(?<![\w.])(_[a-z]\w*)\(", "\n".join(body))))
        settings = [f"from ..._arguments import {commas(used)}"] if used else []
        names = [f'"{c.name}",' for c in members]
        text = fill(FAMILY, family=family, settings=settings, names=names, classes=body)
        files[f"{FOLDER}/{family}.py"] = "\n".join([*text, ""])
    return files
