"""The public API changes on purpose alone: tests/api.txt."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="written by Python 3.11")
def test_the_public_api_is_the_one_written_down():
    """In a process of its own: tests change what modules hold."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.api", "--print"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    known = (ROOT / "tests/api.txt").read_text()
    change = difflib.unified_diff(known.splitlines(), ended.stdout.splitlines(), n=0, lineterm="")
    shown = "\n".join(list(change)[2:40])
    assert ended.stdout == known, f"write it anew by `python -m tests.api`:\n{shown}"
