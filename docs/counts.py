"""Counts what public names have: arguments described, an example, exact types.

`python docs/counts.py` prints a row for the names that programs use most, of the survey in
tests/python/most_used.csv, and one for all; `--lacking` also prints which names lack what. Types
are what pyright knows of a name (`pip install pyright`): exact where no parameter and no result is
unknown to it, and the result is not just anything.
"""

from __future__ import annotations

import csv
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from docs import docstrings  # noqa: E402

MOST_USED = ROOT / "tests" / "python" / "most_used.csv"
# What a call gives is what a file, a program or another function says.
ANYTHING = re.compile(
    r"""load|hub\.(load|load_state_dict_from_url)|jit\.(script|trace|ignore|load|annotate|wait)|compiler\.disable|cond
    |while_loop|func\.functional_call|nn\.parallel\.(data_parallel|gather|scatter)|fx\.annotate
    |utils\.checkpoint\.checkpoint_sequential|utils\.data\.default_(collate|convert)
    |overrides\.handle_torch_function|nn\.functional\.handle_torch_function
    |autograd\.grad|distributed\.new_group|vision\.models\.get_model""",
    re.VERBOSE,
)


def most_used() -> dict[str, Any]:
    """The functions and classes that programs use most, under the names that they use."""
    with MOST_USED.open() as file:
        paths = [row["name"] for row in csv.DictReader(file)]
    found = {}
    for path in paths:
        try:
            thing = pkgutil.resolve_name(f"rushlight.{path}")
        except (ImportError, AttributeError):
            continue
        if docstrings.is_documented(thing):
            found[path] = thing
    return found


def revealed(names: dict[str, Any]) -> dict[str, str]:
    """What pyright says of the type of each name, of a class how it is made."""
    holders = {f"rushlight.{name}".rpartition(".")[0] for name in names}
    modules = sorted({*docstrings.modules(), *(path for path in holders if path in sys.modules)})
    lines = [f"import {path}" for path in modules]
    first = len(lines)
    for name, thing in names.items():
        end = ".__init__" if isinstance(thing, type) else ""
        lines.append(f"reveal_type(rushlight.{name}{end})")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "names.py").write_text("\n".join(lines))
        Path(folder, "pyrightconfig.json").write_text('{"include": ["names.py"]}')
        package = str(Path(sys.modules["rushlight"].__file__ or "").parent.parent)
        run = subprocess.run(
            [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": package},
            capture_output=True,
            text=True,
        )
    said: dict[int, str] = {}
    for entry in json.loads(run.stdout)["generalDiagnostics"]:
        line = entry["range"]["start"]["line"]
        said[line] = said.get(line, "") + entry["message"]
    return {name: said.get(first + n, "Unknown") for n, name in enumerate(names)}


def is_exact(name: str, said: str) -> bool:
    """Whether a type leaves nothing open."""
    if "Unknown" in said:
        return False
    return not re.search(r'(-> | is ")(Any|object)"$', said) or ANYTHING.fullmatch(name) is not None


def lacking(names: dict[str, Any]) -> dict[str, list[str]]:
    """What → the names that lack it."""
    types = revealed(names)
    missing = {name: docstrings.missing(thing) for name, thing in names.items()}
    return {
        "arguments": [n for n, lacks in missing.items() if set(lacks) - {"an example"}],
        "example": [n for n, lacks in missing.items() if "an example" in lacks],
        "exact types": [n for n in names if not is_exact(n, types[n])],
    }


def main(show: bool) -> None:
    for title, names in (("most used", most_used()), ("all", docstrings.public_names())):
        found = lacking(names)
        shares = [f"{what} {1 - len(found[what]) / len(names):.1%}" for what in found]
        print(f"{title}, {len(names)} functions and classes: {', '.join(shares)}")
        if show:
            for what, lack in found.items():
                print(f"  without {what}: {' '.join(lack)}")


if __name__ == "__main__":
    main("--lacking" in sys.argv[1:])
