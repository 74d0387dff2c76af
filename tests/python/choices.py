"""Runs a piece of code in a process of its own, to see which ways of doing a job RUSHLIGHT_VERBOSE reports."""

import os
import subprocess
import sys

from rushlight import _C


def run(code, **environment):
    """Standard output and the lines that start with `rushlight:` on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", "import rushlight as torch\nF = torch.nn.functional\n" + code],
        env={**os.environ, "RUSHLIGHT_VERBOSE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, [
        line for line in done.stderr.splitlines() if line.startswith("rushlight: ")
    ]


def instruction_sets():
    """Those that this build has kernels for and this processor runs."""
    return [level for level in _C._built_levels().split(", ") if level <= _C._cpu_level()]
