"""Writes docs/compatibility.md of the results of all programs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from tests.compat import suites

HEAD = """# Compatibility

This page shows which packages that are made for PyTorch run with rushlight, unchanged and as pip installs
them.

Small programs (`tests/compat/programs/`) build, train, save and load with each package, once with rushlight
and once with PyTorch, and print numbers. `./dev compat --torch PATH --page` writes this page.

| word | meaning |
|---|---|
| same | it ran, and all numbers are PyTorch's up to rounding |
| ran | it ran; there is nothing to compare with |
| different | it ran, with other numbers |
| failed | it ended with an error, which the page shows |
| skipped | the package could not be installed, or the program fails with PyTorch as well |

The time is that of the whole process, with imports, divided by PyTorch's.

"""

SUITES = "\n## Packages' own tests\n"

SUITES_HEAD = """
The tests of packages' repositories, on the packages that pip installed, run with rushlight
(`pytest -p rushlight.as_torch`). `./dev compat --suites '' --torch PATH --page` writes these tables. A test
that failed was run again with PyTorch in the same environment, without a network and without the packages
that tests compare with; it counts as a failure only if it passes there. Tests that could not be run again in
time are open, and the share leaves them out. Each run has a time limit, and tests that it did not reach are
not counted, so these numbers are samples. Of large suites every n-th test was taken, by a hash of its name.

| package | tests of | selection | pass | pass only with PyTorch | open | share |
|---|---|---|---|---|---|---|
"""


def write_programs(
    path: Path, cases: list[Any], results: dict[str, Any], versions: dict, projects: dict
):
    """The part about programs: a table of packages, then what does not run."""
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
    text += "\n## What fails or differs\n\n| program | why |\n|---|---|\n"
    for case in cases:
        result = results[case.name]
        if result.verdict in ("failed", "different"):
            why = re.sub(r"\s+", " ", result.reason).replace("|", "/")[:160]
            text += f"| {case.name} | {why} |\n"
    path.write_text(text + SUITES + path.read_text().partition(SUITES)[2])


def write_suites(path: Path, told: list[suites.Told], versions: dict) -> None:
    """The part about packages' own tests."""
    of = {suite.project: suite for suite in suites.SUITES}
    text = path.read_text().partition(SUITES)[0] + SUITES + SUITES_HEAD
    for t in told:
        suite = of[t.project]
        chosen = suite.arguments.replace("tests/", "").replace(" ", ", ")
        chosen += f", 1 in {t.part}" if t.part > 1 else ""
        share = f"{100 * t.passed / t.counted:.1f} %" if t.counted else ""
        version = versions.get(t.project, "")
        if suite.module in [Path(name).name for name in suite.copied.split()]:
            version = "of the repository"
        cells = (
            f"{t.project} {version}",
            t.tests,
            chosen,
            t.passed,
            len(t.failing),
            t.open or "",
            share,
        )
        text += f"| {' | '.join(map(str, cells))} |\n"
    text += "\nTests that pass only with PyTorch:\n\n| package | tests | error |\n|---|---|---|\n"
    for t in told:
        for why, n in Counter(why for _, why in t.failing).most_common():
            why = re.sub(r"\s+", " ", why).replace("|", "/")[:140]
            text += f"| {t.project} | {n} | {why} |\n"
    path.write_text(text)
