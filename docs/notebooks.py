"""Writes the chapters of the tutorial as notebooks: `python docs/notebooks.py OUT`.

A chapter is a page of Markdown. Its blocks of Python become cells of code, with what they print and
draw; its blocks of commands become cells of a shell; all else is text.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs import execute

CHAPTERS = Path(__file__).resolve().parent / "tutorial"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def text_cell(text: str) -> list[dict[str, Any]]:
    """A cell of text, or none where there is only space."""
    lines = text.strip("\n").splitlines(keepends=True)
    return [{"cell_type": "markdown", "metadata": {}, "source": lines}] if lines else []


def code_cell(code: str, count: int, printed: str, drawn: str) -> dict[str, Any]:
    """A cell of code with what it prints, and the picture that it draws as SVG."""
    outputs: list[dict[str, Any]] = []
    if printed:
        text = f"{printed}\n".splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if drawn:
        data = {"image/svg+xml": drawn.splitlines(keepends=True)}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    source = code.strip("\n").splitlines(keepends=True)
    cell = {"cell_type": "code", "metadata": {}, "execution_count": count, "source": source}
    return {**cell, "outputs": outputs}


def notebook(page: str) -> dict[str, Any]:
    """The notebook of a page, whose programs run in the current folder."""
    cells, names, place, count = [], {"__name__": "__main__"}, 0, 0
    for match in BLOCK.finditer(page):
        cells += text_cell(page[place : match.start()])
        place, count = match.end(), count + 1
        if match[1] == "sh":
            cells.append(code_cell(f"%%sh\n{match[2]}", count, "", ""))
            continue
        printed, folder = execute.run(match[2], names), Path.cwd()
        drawn = execute.picture(folder, "drawn.svg")
        cells.append(code_cell(match[2], count, printed, drawn and (folder / drawn).read_text()))
    cells += text_cell(page[place:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell{number}"
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def with_link(page: str, file: str) -> str:
    """The page, which says below its first paragraph where its notebook is."""
    title, first, rest = page.split("\n\n", 2)
    link = f'<a class="notebook" href="{file}" download>This chapter as a notebook</a>'
    return f"{title}\n\n{first}\n\n{link}\n\n{rest}"


def write(out: Path) -> list[Path]:
    """Runs the chapters and writes their notebooks into a folder; their files."""
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for page in sorted(CHAPTERS.glob("*.md")):
        with tempfile.TemporaryDirectory() as folder, execute.inside(Path(folder)):
            text = json.dumps(notebook(page.read_text()), indent=1, ensure_ascii=False)
        made.append(out / f"{page.stem}.ipynb")
        made[-1].write_text(text + "\n")
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ.setdefault("MPLBACKEND", "agg")
    for file in write(Path(sys.argv[1]).resolve()):
        print(file)
