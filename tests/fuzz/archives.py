"""Makes the fuzzer's programs of damaged files: `python -m tests.fuzz archives`.

A line loads one file and, where that succeeds, runs what it holds with its inputs; what the words mean is in
archive_names.py. Which file, and what is done to it, follows from the program's first line and the line's number.
"""

import random
import zipfile

NAMES = "tests.fuzz.archive_names"
ALSO_ALLOWED = (zipfile.BadZipFile,)
SETUP = 0  # the first line is no call
LINES = 16
# How often a format is drawn: a file of a slow reader as often as of a fast one would take most of the time.
WEIGHTS = {"script": 8, "program": 6, "checkpoint": 5, "safetensors": 2, "gguf": 3, "export": 1}


def entries():
    """Nothing of the op table is needed."""


def program(seed, index, _):
    """The lines of program `index` of a seed."""
    rng = random.Random(f"{seed}:{index}")
    formats = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=LINES)
    return [f"begin('{seed}:{index}')", *(f"load('{name}')" for name in formats)]
