"""`python -m gen --out DIR` writes all generated files; `python -m gen show OP` prints what an op expands to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gen import column, cpp, derivatives, modules, python, stubs, table


def write(folder: Path, files: dict[str, str]) -> None:
    """Writes what changed and removes generated files that are no longer made, so builds stay incremental."""
    for path, text in files.items():
        target = folder / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for old in (p for kind in ("include", "src", "isa", "cuda", "python", "package") for p in (folder / kind).rglob("*")):
        if old.is_file() and str(old.relative_to(folder)) not in files:
            old.unlink()


def everything(ops: list[table.Op]) -> dict[str, str]:
    files = cpp.generate(ops) | column.generate(ops) | python.generate(ops)
    return files | stubs.generate(ops) | modules.generate()


def show(ops: list[table.Op], name: str) -> str:
    """All that an op expands to in C++."""
    found = [op for op in ops if op.name == name]
    if not found:
        raise SystemExit(f"no op is named {name!r}")
    index = {(n, op.overload): i for i, (n, op, _) in enumerate(cpp.registry(ops))}
    parts = []
    for op in found:
        parts.append(f"// {op.text}\n// family {op.family}; kind {op.kind}; {op.doc}")
        parts += [f"{cpp.signature(op, form, defaults=True)};" for form in cpp.forms(op)]
        parts += [f"{result} Tensor::{op.name}(…) const;" for _, result in cpp.method_forms(op)]
        if op.kind == "kernel":
            parts.append(f"{cpp.kernel_result(op)} {op.symbol}({cpp.kernel_parameters(op)});  // the kernel")
        if cpp.has_shape_function(op):
            parts.append(f"{cpp.spec_type(op)} shape::{op.symbol}({cpp.shape_parameters(op)});")
        parts.append(cpp.wrappers_source([op], index))
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
