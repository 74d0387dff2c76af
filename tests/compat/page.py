"""Writes docs/compatibility.md of the results of all programs."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.compat import suites

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

SUITES = """
## Packages' own tests

Run with rushlight by `./dev compat --suites '' --torch PATH --page` (`pytest -p rushlight.as_torch`): the tests of the package's repository, on the package that pip
installed. Counted are the tests that pass beside PyTorch in the same environment; `1 in n` is said where not all were run but every n-th, by a hash of its name.

| package | tests of | selection | pass beside PyTorch | of them pass here | |
|---|---|---|---|---|---|
"""


def keep(folder: Path, results: list[Any]) -> None:
    """Keeps results of programs, so that a page can be made of several runs."""
    (folder / "results").mkdir(exist_ok=True)
    for result in results:
        name = re.sub(r"\W", "-", result.name)
        (folder / "results" / f"{name}.json").write_text(json.dumps(result._asdict()))


def write(path: Path, cases: list[Any], folder: Path, versions: dict, projects: dict):
    """The page: a table of packages, what does not run, and packages' own tests."""
    files = (folder / "results").glob("*.json")
    told = [SimpleNamespace(**json.loads(file.read_text())) for file in files]
    results = {result.name: result for result in told}
    cases = [case for case in cases if case.name in results]
    rows: dict[tuple[str, str], list] = {}
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
    path.write_text(text + _suites(folder, versions))


def _suites(folder: Path, versions: dict) -> str:
    told = suites.kept(folder)
    part = {suite.project: suite for suite in suites.SUITES}
    text = SUITES
    for t in told:
        chosen = part[t.project].arguments.replace("tests/", "").replace(" ", ", ")
        chosen += f", 1 in {t.part}" if t.part > 1 else ""
        share = f"{100 * t.same / t.passed:.1f} %" if t.passed else ""
        package = f"{t.project} {versions.get(t.project, '')}"
        text += f"| {package} | {t.tests} | {chosen} | {t.passed} | {t.same} | {share} |\n"
    text += "\nWhat the others say:\n\n| package | tests | error |\n|---|---|---|\n"
    for t in told:
        for why, n in Counter(why for _, why in t.failing).most_common():
            why = re.sub(r"\s+", " ", why).replace("|", "/")[:140]
            text += f"| {t.project} | {n} | {why} |\n"
    return text
