"""`python -m gen --out DIR` writes all generated files; `python -m gen show OP` prints what an op expands to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gen import column, declarations, derivatives, kernels, modules, python, stubs, table, wrappers


def write(folder: Path, files: dict[str, str]) -> None:
    """Writes what changed and removes generated files that are no longer made, so builds stay incremental."""
    for path, text in files.items():
        target = folder / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for old in (
        p for kind in ("include", "src", "isa", "cuda", "python", "package") for p in (folder / kind).rglob("*")
    ):
        if old.is_file() and str(old.relative_to(folder)) not in files:
            old.unlink()


def everything(ops: list[table.Op]) -> dict[str, str]:
    files = modules.generate()
    for part in (declarations, kernels, column, wrappers, python, stubs):
        files |= part.generate(ops)
    return files


def show(ops: list[table.Op], name: str) -> str:
    """All that an op expands to in C++."""
    found = [op for op in ops if op.name == name]
    if not found:
        raise SystemExit(f"no op is named {name!r}")
    parts = []
    for op in found:
        parts.append(f"// {op.text}\n// family {op.family}; kind {op.kind}; {op.doc}")
        parts += [f"{declarations.signature(op, form, defaults=True)};" for form in op.forms]
        parts += [f"{result} Tensor::{method}(…) const;" for result, method, _, _ in declarations.methods([op])]
        if op.kind == "kernel":
            parts.append(f"{kernels.declaration(op)};  // the kernel")
        if kernels.has_shape_function(op):
            parts.append(f"{kernels.shape_function(op)};")
        parts.append(wrappers.wrappers_source([op], wrappers.places(ops)))
        if (plan := derivatives.plan(op)) is not None:
            parts.append("// saved: " + (", ".join(f"{s.name} ({s.kind})" for s in plan.saved) or "nothing"))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gen", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder to write the generated files into")
    parser.add_argument("command", nargs="*", help="show OP")
    options = parser.parse_args()
    ops = table.load()
    if options.out is not None:
        write(options.out, everything(ops))
    elif len(options.command) == 2 and options.command[0] == "show":
        print(show(ops, options.command[1]))
    else:
        parser.print_help()
        sys.exit(2)


if __name__ == "__main__":
    main()
