"""Expands ops/modules.py into the Python classes of nn's stateless modules, one file a family.

They become the package's `nn/_stateless/`, from where nn/modules re-exports them.
"""

from __future__ import annotations

import re

from gen import table
from gen.text import commas, fill

FOLDER = "package/nn/_stateless"  # below the generated files; "package" is laid over the Python package

FAMILY = '''
"""Stateless modules of the family "$family". Generated from ops/modules.py; do not edit."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
$settings
from ..modules.module import Module

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


class Class:
    """One entry with its signature parsed."""

    def __init__(self, entry: dict, known: dict[str, Class]):
        self.entry = entry
        self.name, _, self.args, _ = table.parse_signature(entry["signature"] + " -> ()")
        self.base = known.get(entry.get("base", "Module"))  # None: Module
        self.sets = entry.get("sets", {})
        known[self.name] = self

    def own_attributes(self) -> set[str]:
        return {a.name for a in self.args} - set(self.entry.get("transient", ())) | set(self.sets)

    def attributes(self) -> set[str]:
        return self.own_attributes() | (self.base.attributes() if self.base else {"training"})

    def constructor(self) -> list[str]:
        base = self.base.args if self.base else []
        names = [a.name for a in self.args]
        # Without arguments other than its base's, a class has its base's constructor.
        if not names or (self.base and names == [a.name for a in base]):
            return []
        passed = {a.name: a.name for a in base if a.name in names}
        if self.base:
            passed |= self.entry.get("fixed", {})
        lines = []
        for arg in self.args:
            name, kind = arg.name, arg.type
            if name in passed or name in self.sets or name not in self.own_attributes():
                continue
            # A default that names another argument means "as that one", which None stands for.
            value = f"{arg.default} if {name} is None else {name}" if arg.default in names else name
            if name in self.entry.get("spread", ()):
                value = f"_repeated({value}, {kind.size})"
            if kind.base == "Tensor":
                lines += [f'self.register_buffer("{name}", {value})', f"self.{name}: Tensor | None"]
            else:
                lines.append(f"self.{name} = {value}")
        lines += [f"self.{name} = {value}" for name, value in self.sets.items() if name not in passed]
        call = f"super().__init__({commas([f'{k}={v}' for k, v in passed.items()])})"
        return [
            "",
            f"def __init__({self.parameters(names)}) -> None:",
            f"    {call}",
            *(f"    {line}" for line in lines),
        ]

    def parameters(self, names: list[str]) -> str:
        parts = ["self"]
        for arg in self.args:
            if arg.keyword_only and "*" not in parts:
                parts.append("*")
            default = "None" if arg.default in names else arg.default
            parts.append(f"{arg.name}: {annotation(arg.type)}" + (f" = {default}" if default else ""))
        return commas(parts)

    def forward(self) -> list[str]:
        if not self.entry["call"]:
            return []
        inputs = self.entry.get("inputs", "input").split(", ")
        names = self.attributes() - set(inputs)
        call = re.sub(
            r"(?<![\w.'])([A-Za-z_]\w*)(?!\w|\s*=|\(|')",
            lambda m: f"self.{m[1]}" if m[1] in names else m[1],
            self.entry["call"],
        )
        call = call if call.startswith("input.") else f"F.{call}"
        typed = commas([f"{name}: Tensor" for name in inputs])
        return ["", f"def forward(self, {typed}) -> Tensor:", f"    return {call}"]

    def extra_repr(self) -> list[str]:
        """What `show` says: `{name}` is an attribute, `{?name}` one that is shown where it is true."""
        if "show" not in self.entry:
            return []
        text = self.entry["show"]
        comma = "" if text.startswith("{?") else ", "
        flags = [f'    {f} = "{comma}{f}=True" if self.{f} else ""' for f in re.findall(r"\{\?(\w+)\}", text)]
        text = re.sub(r"\{(\w+)", r"{self.\1", text).replace("{?", "{")
        return ["", "def extra_repr(self) -> str:", *flags, f'    return {"f" if text else ""}"{text}"']

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
        settings = [f"from ..modules._settings import {commas(used)}"] if used else []
        names = [f'"{c.name}",' for c in members]
        text = fill(FAMILY, family=family, settings=settings, names=names, classes=body)
        files[f"{FOLDER}/{family}.py"] = "\n".join([*text, ""])
    return files
