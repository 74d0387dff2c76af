"""Expands ops/modules.py into the Python classes of nn's stateless modules, one file a family.

They become the package's `nn/_stateless/`, from where nn/modules re-exports them.
"""

from __future__ import annotations

import re

from gen import table

_ANNOTATIONS = {"int": "int", "float": "float", "bool": "bool", "str": "str", "Tensor": "Tensor"}


def _annotation(kind: table.Type) -> str:
    text = _ANNOTATIONS[kind.base]
    if kind.is_list:
        item = f"{text} | None" if kind.element_optional else text
        text = f"{item} | tuple[{item}, ...]"
    return f"{text} | None" if kind.optional else text


class _Class:
    """One entry with its signature parsed."""

    def __init__(self, entry: dict, known: dict[str, _Class]):
        self.entry = entry
        self.name, _, self.args, _ = table.parse_signature(entry["signature"] + " -> ()")
        self.base: _Class | None = None
        base = entry.get("base", "Module")
        if base != "Module":
            self.base = known[base]
        known[self.name] = self
        # Without arguments other than its base's, a class has its base's constructor.
        names = [a.name for a in self.args]
        self.inherits = self.base is not None and names in ([], [a.name for a in self.base.args])
        self.transient = entry.get("transient", ())
        self.sets = entry.get("sets", {})
        self.family: str = entry["family"]

    def all_attributes(self) -> set[str]:
        own = {a.name for a in self.args} - set(self.transient) | set(self.sets)
        return own | (self.base.all_attributes() if self.base else set())

    def parameters(self) -> str:
        names, star = {a.name for a in self.args}, False
        parts = ["self"]
        for arg in self.args:
            if arg.keyword_only and not star:
                parts.append("*")
                star = True
            # A default that names another argument means "as that one", which None stands for.
            default = "None" if arg.default in names else arg.default
            parts.append(
                f"{arg.name}: {_annotation(arg.type)}" + (f" = {default}" if default else "")
            )
        return ", ".join(parts)

    def constructor(self) -> list[str]:
        own = {a.name: a for a in self.args}
        passed = []
        if self.base is not None:
            passed = [f"{a.name}={a.name}" for a in self.base.args if a.name in own]
            passed += [f"{k}={v}" for k, v in self.entry.get("fixed", {}).items()]
            inherited = {text.partition("=")[0] for text in passed}
        else:
            inherited = set()
        lines = [
            f"    def __init__({self.parameters()}) -> None:",
            f"        super().__init__({', '.join(passed)})",
        ]
        for name, arg in own.items():
            if name in inherited or name in self.transient or name in self.sets:
                continue
            value = name
            if arg.default in own:
                value = f"{arg.default} if {name} is None else {name}"
            if name in self.entry.get("spread", ()):
                value = f"_repeated({value}, {arg.type.size})"
            if arg.type.base == "Tensor":
                lines += [
                    f'        self.register_buffer("{name}", {value})',
                    f"        self.{name}: Tensor | None",
                ]
            else:
                lines.append(f"        self.{name} = {value}")
        for name, value in self.sets.items():
            if name not in inherited:
                lines.append(f"        self.{name} = {value}")
        return lines

    def forward(self) -> list[str]:
        inputs = self.entry.get("inputs", "input")
        names = (self.all_attributes() | {"training"}) - set(inputs.split(", "))
        call = re.sub(
            r"(?<![\w.'])([A-Za-z_]\w*)(?!\w|\s*=|\(|')",
            lambda m: f"self.{m[1]}" if m[1] in names else m[1],
            self.entry["call"],
        )
        typed = ", ".join(f"{name}: Tensor" for name in inputs.split(", "))
        prefix = "" if call.startswith("input.") else "F."
        return [f"    def forward(self, {typed}) -> Tensor:", f"        return {prefix}{call}"]

    def extra_repr(self) -> list[str]:
        text = self.entry["show"]
        lines = ["    def extra_repr(self) -> str:"]
        for flag in re.findall(r"\{\?(\w+)\}", text):
            comma = "" if text.startswith("{?") else ", "
            lines.append(f'        {flag} = "{comma}{flag}=True" if self.{flag} else ""')
        text = re.sub(r"\{(\w+)", r"{self.\1", text).replace("{?", "{")
        lines.append(
            f'        return f"{text}"' if lines[1:] or text != "" else '        return ""'
        )
        return lines

    def source(self) -> str:
        base = self.base.name if self.base else "Module"
        lines = [f"class {self.name}({base}):", f'    """{self.entry["doc"]}"""', ""]
        lines += [f'    __module__ = "rushlight.nn.modules.{self.family}"']
        if self.args and not self.inherits:
            lines += ["", *self.constructor()]
        if self.entry["call"]:
            lines += ["", *self.forward()]
        if "show" in self.entry:
            lines += ["", *self.extra_repr()]
        return "\n".join(lines) + "\n"


_HEADER = '''"""Stateless modules of the family "{family}". Generated from ops/modules.py; do not edit."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
{settings}from ..modules.module import Module

__all__ = {names}
'''


FOLDER = (
    "package/nn/_stateless"  # below the generated files; "package" is laid over the Python package
)


def generate() -> dict[str, str]:
    """Path to text, for every family."""
    from ops import modules

    known: dict[str, _Class] = {}
    families: dict[str, list[_Class]] = {}
    for entry in modules.MODULES:
        item = _Class(entry, known)
        families.setdefault(item.family, []).append(item)
    files = {
        f"{FOLDER}/__init__.py": '"""Generated from ops/modules.py; see nn/modules for what is public."""\n'
    }
    for family, classes in families.items():
        names = "[\n" + "".join(f'    "{c.name}",\n' for c in classes) + "]"
        body = "\n\n".join(c.source() for c in classes)
        used = sorted(set(re.findall(r"(?<![\w.])(_[a-z]\w*)\(", body)))
        settings = f"from ..modules._settings import {', '.join(used)}\n" if used else ""
        header = _HEADER.format(family=family, names=names, settings=settings)
        files[f"{FOLDER}/{family}.py"] = header + "\n\n" + body
    return files
