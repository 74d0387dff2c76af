"""Runs the programs of a page and puts what they print behind them, pictures too.

All blocks of Python on a page are one program. What a block prints stands behind it, and so does
the picture that a block draws with matplotlib.
"""

import ast
import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def inside(folder: Path | str) -> Iterator[None]:
    """Runs a block in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run(code: str, names: dict) -> str:
    """What a block prints, and the value of an expression at its end, as an interpreter does."""
    *body, last = ast.parse(code).body
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Module(body, []), "page", "exec"), names)
        single = ast.Interactive([last]) if isinstance(last, ast.Expr) else ast.Module([last], [])
        exec(compile(single, "page", "single" if isinstance(last, ast.Expr) else "exec"), names)
    return out.getvalue().rstrip("\n")


def picture(folder: Path, name: str) -> str:
    """Saves what matplotlib has drawn; the name of the file, or nothing."""
    import sys

    if "matplotlib.pyplot" not in sys.modules:
        return ""
    from matplotlib import pyplot

    if not pyplot.get_fignums():
        return ""
    pyplot.savefig(folder / name, bbox_inches="tight")
    pyplot.close("all")
    return name


def page(text: str, folder: Path, stem: str) -> str:
    """The page with what its programs print."""
    names: dict = {"__name__": "__main__"}

    def with_output(match: re.Match) -> str:
        printed = run(match[1], names)
        drawn = picture(folder, f"{stem}-{match.start()}.svg")
        output = f"\n```text\n{printed}\n```\n" if printed else ""
        return match[0] + output + (f"\n![what the program draws]({drawn})\n" if drawn else "")

    return BLOCK.sub(with_output, text)
