"""`python -m bench.instructions [STATEMENT…]`: machine instructions of a call from Python.

Each statement is run N and 2 N times under callgrind; the difference, by N, is what one costs with
nothing around it but Python's loop, whose own part (the statement `pass`) is taken off. Counts do
not scatter as times do. Needs valgrind, which knows AVX2 at most: where the processor has AVX-512,
kernels for AVX2 must be there too (RUSHLIGHT_ISA=all ./dev build).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile

SETUP = """
import rushlight as torch
a, b = torch.ones(4), torch.ones(4)
r = torch.ones(4, requires_grad=True)
m = torch.ones(4, 4)
"""
STATEMENTS = (
    "a + b",
    "r + b",
    "a + 1.0",
    "torch.add(a, b)",
    "a.exp()",
    "m.view(16)",
    "m[1]",
    "a.sum()",
    "(r + b).sum().backward()",
)
PROGRAM = """
{setup}
def run(n):
    for _ in range(n):
        {statement}
run(100)  # what is made once
run({n})
"""


def count(statement, n):
    """All instructions of a process that runs the statement n times."""
    with tempfile.TemporaryDirectory() as folder:
        program = PROGRAM.format(setup=SETUP, statement=statement, n=n)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        environment = {
            **os.environ,
            "RUSHLIGHT_CPU": "v3",
            "OPENBLAS_CORETYPE": "Haswell",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        done = subprocess.run(
            [*command, sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        found = re.search(r"Collected : (\d+)", done.stderr)
        if found is None or done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return int(found.group(1))


def instructions(statement, n=2000):
    """Instructions of one run of a statement, loop included."""
    return (count(statement, 2 * n) - count(statement, n)) / n


def main():
    """Print the table."""
    loop = instructions("pass")
    print(f"{'statement':32} instructions")
    for statement in sys.argv[1:] or STATEMENTS:
        print(f"{statement:32} {instructions(statement) - loop:10.0f}", flush=True)


if __name__ == "__main__":
    main()
