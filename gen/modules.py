"""Stateless modules as data, which ops/modules.py declares, and the Python classes that they become.

The files become the package's `nn/modules/_stateless/`, from where nn/modules re-exports the classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from gen.schema import Arg, parse_signature, parts
from gen.text import commas, each, flat, lines, only

FOLDER = "package/nn/modules/_stateless"  # below the generated files; "package" is laid over the Python package


@dataclass
class Module:
    """An entry of ops/modules.py, which says what the keys mean."""

    name: str
    args: list[Arg]
    family: str
    function: str
    passes: str
    doc: str
    base: Module | None = None  # None: Module
    inputs: str = "input"
    sets: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    show: str | None = None  # not said
    prints: str | None = "as Python"
    method: bool = False
    python: dict[str, Any] = field(default_factory=dict)
    trains: str = ""
    functional_only: str = ""


MODULES: dict[str, Module] = {}


def module(signature: str, family: str, function: str = "", passes: str = "", base: str = "", **keys) -> None:
    """Declares a module."""
    name, _, args, _ = parse_signature(f"{signature} -> ()")
    MODULES[name] = Module(name, args, family, function, passes, base=MODULES.get(base), **keys)


def load() -> list[Module]:
    import ops.modules  # noqa: F401

    return list(MODULES.values())


def passed(passes: str) -> tuple[list[str], list[str]]:
    """What a call passes besides inputs: by place and by name."""
    by_place, _, by_name = passes.partition("*")
    return parts(by_place), parts(by_name)


# ---- Python ----


def expression(value: Any) -> str:
    """What `sets` says: a name, a number, or a rule with what it is given."""
    return f"_{value[0]}({commas(map(expression, value[1:]))})" if isinstance(value, tuple) else str(value)


def parameters(m: Module) -> str:
    star, said = next((a.name for a in m.args if a.keyword_only), ""), []
    for a in m.args:
        item = f"{a.type.base} | None" if a.type.element_optional else a.type.base
        kind = f"{item} | tuple[{item}, ...]" if a.type.is_list else a.type.base
        none, given = " | None" if a.type.optional else "", f" = {a.default}" if a.default else ""
        said.append(f"{'*, ' * (a.name == star)}{a.name}: {kind}{none}{given}")
    return commas(said)


def made(m: Module) -> str:
    """`ReLU(inplace: bool = False)`, for the documentation."""
    owner = m
    while owner.base and not owner.args:
        owner = owner.base
    return f"{m.name}({parameters(owner)})"


def constructor(m: Module) -> list[str]:
    base, names = [a.name for a in m.base.args] if m.base else [], [a.name for a in m.args]
    # Without arguments other than its base's, a class has its base's constructor.
    if not names or (m.base and names == base):
        return []
    passed = {name: name for name in base if name in names} | m.fixed
    attributes = {name: name for name in names if name not in passed} | m.sets
    buffers = [a.name for a in m.args if a.type.base == "Tensor"]
    sets = []
    for name, value in attributes.items():
        plain = [] if value is None else [f"self.{name} = {expression(value)}"]
        buffer = [f'self.register_buffer("{name}", {value})', f"self.{name}: Tensor | None"]
        sets += buffer if name in buffers else plain
    given = commas(f"{name}={value}" for name, value in passed.items())
    head = f"def __init__({commas('self', parameters(m))}) -> None:"
    return ["", head, *(f"    {line}" for line in [f"super().__init__({given})", *sets])]


def python_class(m: Module) -> list[str]:
    # A call gives the inputs to the function, or calls it on the first of them, and then what is passed besides.
    inputs, (by_place, by_name) = parts(m.inputs), passed(m.passes)
    given = [item if item.startswith("'") else f"self.{item}" for item in by_place]
    given += [f"{name}=self.{name}" for name in by_name] + [f"{name}={value}" for name, value in m.python.items()]
    takes, owner = commas(f"{name}: Tensor" for name in inputs), inputs.pop(0) if m.method else "F"
    call = f"{owner}.{m.function}({commas(inputs, given)})"
    forward = ["", f"def forward(self, {takes}) -> Tensor:", f"    return {call}"] if m.function else []
    # `{name}` is an attribute, `{?name}` one that is shown where it is true.
    text = re.sub(r"\{(\w+)", r"{self.\1", m.show or "")
    text = re.sub(r"^\{\?(\w+)\}", r"{'\1=True' if self.\1 else ''}", text)
    text = re.sub(r"\{\?(\w+)\}", r"{', \1=True' if self.\1 else ''}", text)
    shown = [] if m.show is None else ["", "def extra_repr(self) -> str:", f'    return f"{text}"']
    return lines(f'''
        class {m.name}({m.base.name if m.base else "Module"}):
            """{m.doc}"""

            __module__ = "rushlight.nn.modules.{m.family}"
            {each([*constructor(m), *forward, *shown])}
    ''')


def family_source(family: str, members: list[Module]) -> str:
    body = flat(["", "", *python_class(m)] for m in members)
    used = sorted(set(re.findall(r"(?<![\w.])(_[a-z]\w*)\(", "\n".join(body))))
    head = lines(f'''
        """Stateless modules of the family "{family}". Generated from ops/modules.py; do not edit."""

        from __future__ import annotations

        from rushlight import Tensor

        from ... import functional as F
        {only(used)}from ..._arguments import {commas(used)}
        from ..module import Module

        __all__ = [
            {each(f'"{m.name}",' for m in members)}
        ]
    ''')
    return "\n".join([*head, *body, ""])


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    families: dict[str, list[Module]] = {}
    for m in load():
        families.setdefault(m.family, []).append(m)
    files = {f"{FOLDER}/{family}.py": family_source(family, members) for family, members in families.items()}
    head = '"""Generated from ops/modules.py; see nn/modules for what is public."""\n'
    return files | {f"{FOLDER}/__init__.py": head}
