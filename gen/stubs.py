"""Type stubs: `_C.pyi` (gen/_C.pyi.in with the methods of tensors), `_functions.pyi`, and those of
namespaces: `_linalg.pyi` and its like."""

from __future__ import annotations

import keyword
from pathlib import Path

from gen.signatures import FUNCTIONS, METHODS, Python
from gen.table import NAMESPACES, Op

HEAD = """# Generated from the op table by `python -m gen`. Do not edit.
import builtins
from collections.abc import Sequence
from typing import Any, overload

from rushlight._C import Generator, Number, device, dtype, layout, memory_format
from rushlight._tensor import Tensor
"""


def definitions(ops: list[Op], forms: tuple[str, ...]) -> list[str]:
    found: dict[str, list[str]] = {}
    for p in map(Python, ops):
        for form in p.forms:
            if form in forms and not keyword.iskeyword(p.name(form)):
                found.setdefault(p.name(form), []).append(p.signature(form))
    marks = {name: ["@overload"] * (len(texts) > 1) for name, texts in found.items()}
    return [line for name, texts in found.items() for text in texts for line in (*marks[name], text)]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    public = [op for op in ops if not (op.python & {"nn", "wrapped"} or op.functional_name)]
    functions = {"_functions": definitions(public, FUNCTIONS)}
    for space in NAMESPACES:
        own = definitions([op for op in ops if op.space == space], FUNCTIONS)
        functions[f"_{space}"] = [text.replace(f"def {space}_", "def ", 1) for text in own]
    files = {f"stubs/{name}.pyi": "\n".join([HEAD, *texts, ""]) for name, texts in functions.items()}
    methods = "\n".join(f"    {line}" for line in definitions(ops, METHODS))
    whole = (Path(__file__).parent / "_C.pyi.in").read_text().replace("    $methods", methods)
    return files | {"stubs/_C.pyi": whole}
