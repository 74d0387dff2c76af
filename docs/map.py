"""The maps of the code: `python docs/map.py` writes docs/map.md and tests/README.md.

A line is the first sentence of a file's own head, so that a fact stands in one place: whoever finds
a line unclear mends the docstring and runs this again. A test compares the pages with the files.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 110

PACKAGE_HEAD = """# Map of the Python package

This page says what each package and each private module of `python/rushlight` holds.

Public modules stand where PyTorch has them and are not listed, but for those of packages that have
modules of our own. `python docs/map.py` writes this page from the first sentences of the files'
heads. Where to look first:

- A rule of an op (its checks, gradient, batching, autocast) stands in the table `ops/`, and its C++
  in `src/ops` and `src/cpu` ([architecture.md](architecture.md)); Python has no ops of its own.
- What all ops share is C++ in `src/core` (dtypes of results, broadcasting, memory, threads, random
  numbers) and `src/autograd` (backward, views, writes in place, hooks).
- What the argument parser, the tensor type and the base of `nn.Module` do (what an assignment to a
  module registers) is C++ in `src/python` ([python.md](python.md)); programs of TorchScript run in
  `src/script` and `src/graph` ([graphs.md](graphs.md)).
- What ops do with nested, masked and quantised tensors stands in the tables of `_rules`, with
  distributed ones in `distributed.tensor`, under `vmap` and with sparse tensors in C++
  ([architecture.md](architecture.md)).
- A name of PyTorch's that is accepted without effect, is refused, or lies in another module stands
  in the tables of `foreign` ([python.md](python.md)).
"""

TESTS_HEAD = """# Tests

`./dev test` builds, runs the C++ tests and all of `tests/` (about 15 minutes on two cores). After a
build, single files run alone and without building:

```sh
PYTHONPATH=python .venv/bin/python -m pytest -q tests/python/test_optim.py
PYTHONPATH=python .venv/bin/python -m pytest -q tests/ops/test_table.py -k "softmax"
ctest --test-dir build/release -R test_value
```

`tests/parity` compares with PyTorch and is skipped where that is not installed
(`pip install --group parity --target build/parity`, then `PYTHONPATH=python:build/parity`). Skips
need a reason that `allowed_skips.txt` lists. `python docs/map.py` writes this page from the files'
heads.
"""


def first_sentence(path: Path) -> str:
    """Of a file's head: up to the first full stop that ends a sentence."""
    if path.suffix == ".py":
        head = ast.get_docstring(ast.parse(path.read_text())) or ""
    else:
        lines = path.read_text().splitlines()
        head = " ".join(line.removeprefix("//").strip() for line in lines[: _comment_end(lines)])
    paragraph = " ".join(head.partition("\n\n")[0].split())
    found = re.match(r"(.*?[^.\s])\.(?:\s+[A-Z`].*|$)", paragraph)
    return found[1] if found else paragraph.removesuffix(":")


def is_written(path: Path) -> bool:
    """Whether a file of the package was written by hand, not by the generator."""
    return not first_sentence(path).startswith("Generated from")


def _comment_end(lines: list[str]) -> int:
    return next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))


def wrap_index(text: str, indent: str = "") -> str:
    """The text in lines, broken at blanks."""
    how = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, **how)


def entry(name: str, path: Path) -> str:
    """A list item."""
    return wrap_index(f"- `{name}`: {first_sentence(path)}", "  ")


# Packages that have public modules where PyTorch has none.
OWN = {
    "ao",
    "cuda",
    "foreign",
    "foreign.tables",
    "language",
    "nn.modules",
    "onnx",
    "serve",
    "utils.data.datapipes.map",
    "vision.datasets",
    "vision.models.detection",
    "vision.ops",
}


def has_own_names(package: Path) -> bool:
    """Whether modules of a package are ours to name: all of them are listed then."""
    parts = package.relative_to(ROOT / "python/rushlight").parts
    return not parts or ".".join(parts) in OWN or any(part.startswith("_") for part in parts)


def package_page() -> str:
    """docs/map.md."""
    root = ROOT / "python/rushlight"
    parts = [PACKAGE_HEAD]
    packages = sorted(p.parent for p in root.rglob("__init__.py") if is_written(p))
    for package in packages:
        name = ".".join(package.relative_to(root.parent).parts)
        pattern = "*.py" if has_own_names(package) else "_*.py"
        private = sorted(
            p for p in package.glob(pattern) if not p.name.startswith("__") and is_written(p)
        )
        items = [entry(p.stem, p) for p in private]
        head = wrap_index(first_sentence(package / "__init__.py") + ".")
        parts.append(f"\n## {name}\n\n{head}\n" + ("\n" + "\n".join(items) + "\n" if items else ""))
    return "".join(parts)


def tests_page() -> str:
    """tests/README.md."""
    parts = [TESTS_HEAD]
    folders = ["tests", *(f"tests/{name}" for name in ("ops", "python", "parity", "cpp", "fuzz"))]
    for folder in folders:
        files = sorted(p for p in (ROOT / folder).iterdir() if p.suffix in (".py", ".cpp"))
        items = [entry(p.name, p) for p in files if p.name != "__init__.py"]
        parts.append(f"\n## {folder}\n\n" + "\n".join(items) + "\n")
    return "".join(parts)


PAGES = {"docs/map.md": package_page, "tests/README.md": tests_page}


def main() -> None:
    """Writes both pages."""
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()
