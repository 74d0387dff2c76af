"""`python -m gen --out DIR` writes all generated files; `python -m gen show OP` prints what an op expands to.

`python -m gen rules` says which ops have rules for autocast, forward derivatives and batching.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gen import (
    declarations,
    headers,
    kernels,
    modules,
    overloads,
    python,
    reductions,
    registry,
    rules,
    steps,
    tangents,
    wrappers,
)
from gen.table import Op, load


def write(folder: Path, files: dict[str, str]) -> None:
    """Writes what changed and removes generated files that are no longer made, so builds stay incremental."""
    for path, text in files.items():
        target = folder / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for kind in ("include", "src", "isa", "cuda", "python", "package"):
        for old in (folder / kind).rglob("*"):
            if old.is_file() and str(old.relative_to(folder)) not in files:
                old.unlink()


def everything(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents, of all that ops become in C++."""
    parts = (declarations, kernels, reductions, steps, registry, overloads, wrappers, tangents, python)
    return {path: text for part in parts for path, text in part.generate(ops).items()}


def show(ops: list[Op]) -> str:
    """What these ops alone expand to."""
    said = "".join(f"// {op.text}\n// family {op.family}; kind {op.kind}; {op.doc}\n" for op in ops)
    return said + "".join(f"\n// ======== {path}\n{text}" for path, text in everything(ops).items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gen", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write the generated files into")
    parser.add_argument("command", nargs="*", help="show OP, or rules")
    options = parser.parse_args()
    ops = load()
    match options.command:
        case [] if options.out is not None:
            beside = python.stubs(ops) | modules.generate() | headers.generate()
            write(options.out, everything(ops) | beside)
        case ["show", name] if found := [op for op in ops if op.name == name]:
            print(show(found))
        case ["show", name]:
            parser.error(f"no op is named {name!r}")
        case ["rules"]:
            print(rules.report(ops))
        case _:
            parser.error("say --out=, show or rules")


if __name__ == "__main__":
    main()
