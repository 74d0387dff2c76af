"""Writes docs/compatibility.md of the results of all programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HEAD = """# Compatibility

What packages that are made for PyTorch do with rushlight in its place, unchanged and as pip installs them: small programs (`tests/compat/programs/`) build,
train, save and load with each, once with rushlight and once with PyTorch, and print numbers. Written by `./dev compat --torch PATH --page`.

| word | meaning |
|---|---|
| same | it ran, and all numbers are PyTorch's up to rounding |
| ran | it ran; there is nothing to compare with |
| different | it ran, with other numbers |
| failed | it ended with the error that is told |
| skipped | the package could not be had, or the program fails beside PyTorch as well |

The time is that of the whole process, imports included, as a part of PyTorch's.

"""


def write(path: Path, cases: list[Any], results: dict[str, Any], versions: dict, projects: dict):
    """The page: a table of packages, then what does not run."""
    rows: dict[str, list] = {}
    for case in cases:
        names = [projects.get(p, p).lower().replace("_", "-") for p in case.packages]
        names += case.repositories
        told = ", ".join(f"{n} {versions[n]}" if n in versions else n for n in names)
        rows.setdefault((told, case.program.stem), []).append(results[case.name])
    text = HEAD + "| packages | program | same | ran | different | failed | skipped | time |\n"
    text += "|---|---|---|---|---|---|---|---|\n"
    for (told, program), found in sorted(rows.items()):
        count = [
            sum(r.verdict == v for r in found)
            for v in ("same", "ran", "different", "failed", "skipped")
        ]
        ratios = sorted(r.ratio for r in found if r.ratio is not None and r.verdict == "same")
        ratio = f"{ratios[len(ratios) // 2]:.2f}" if ratios else ""
        cells = " | ".join(str(n) if n else "" for n in count)
        text += f"| {told} | {program} | {cells} | {ratio} |\n"
    text += "\n## What does not run\n\n| program | why |\n|---|---|\n"
    for case in cases:
        result = results[case.name]
        if result.verdict in ("failed", "different"):
            why = re.sub(r"\s+", " ", result.reason).replace("|", "/")[:160]
            text += f"| {case.name} | {why} |\n"
    path.write_text(text)
