"""`python -m gen --out DIR` writes all generated files; `python -m gen show OP` prints what an op expands to.

`python -m gen rules` says which ops have rules for autocast, forward derivatives and batching.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gen import (
    declarations,
    headers,
    kernels,
    modules,
    modules_cpp,
    python,
    registry,
    rules,
    stubs,
    table,
    tangents,
    wrappers,
)


def write(folder: Path, files: dict[str, str]) -> None:
    """Writes what changed and removes generated files that are no longer made, so builds stay incremental."""
    for path, text in files.items():
        target = folder / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    made = {folder / path for path in files}
    for kind in ("include", "src", "isa", "cuda", "python", "package"):
        for old in (folder / kind).rglob("*"):
            if old.is_file() and old not in made:
                old.unlink()


def everything(ops: list[table.Op]) -> dict[str, str]:
    """Path below the output folder → contents, of all that ops become in C++."""
    files: dict[str, str] = {}
    for part in (declarations, kernels, registry, wrappers, tangents, python):
        files |= part.generate(ops)
    return files


def show(ops: list[table.Op]) -> str:
    """What these ops alone expand to."""
    said = "".join(f"// {op.text}\n// family {op.family}; kind {op.kind}; {op.doc}\n" for op in ops)
    return said + "".join(f"\n// ======== {path}\n{text}" for path, text in everything(ops).items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gen", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write the generated files into")
    parser.add_argument("command", nargs="*", help="show OP, or rules")
    options = parser.parse_args()
    ops = table.load()
    if options.out is not None:
        beside = stubs.generate(ops) | modules.generate() | modules_cpp.generate() | headers.generate()
        write(options.out, everything(ops) | beside)
    elif len(options.command) == 2 and options.command[0] == "show":
        named = [op for op in ops if op.name == options.command[1]]
        if not named:
            raise SystemExit(f"no op is named {options.command[1]!r}")
        print(show(named))
    elif options.command == ["rules"]:
        print(rules.report(ops))
    else:
        parser.print_help()
        sys.exit(2)


if __name__ == "__main__":
    main()
