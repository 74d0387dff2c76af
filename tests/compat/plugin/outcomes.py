"""A plugin of pytest: each outcome goes to a file at once, tests that stand there are left out.

So a run that died begins again behind the test that killed it. COMPAT_OUTCOMES names the file,
COMPAT_PART the n of "every n-th test", COMPAT_ONLY the tests and files that are run (JSON; null for
all), COMPAT_SECONDS what one test may take.
"""

from __future__ import annotations

import json
import os
import signal
import zlib
from pathlib import Path

import pytest

FILE = Path(os.environ["COMPAT_OUTCOMES"])
PART = int(os.environ["COMPAT_PART"])
SECONDS = int(os.environ["COMPAT_SECONDS"])
ONLY = json.loads(os.environ["COMPAT_ONLY"])
MAIN = os.getpid()


def _write(**line: object) -> None:
    with FILE.open("a") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every n-th by a hash of its name, so that it is the same ones in any environment."""
    written = FILE.read_text().splitlines() if FILE.exists() else []
    done = {json.loads(line)["test"] for line in written}
    names = [item.nodeid for item in items]
    items[:] = [
        item
        for item, name in zip(items, names, strict=True)
        if name not in done
        and zlib.crc32(name.encode()) % PART == 0
        and (ONLY is None or name in ONLY or name.partition("::")[0] in ONLY)
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Ends a test that takes too long by an exception."""

    def late(*_):
        raise TimeoutError(f"longer than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logstart(nodeid: str) -> None:
    """What is written of a test that ends the process."""
    if os.getpid() == MAIN:
        _write(test=nodeid, outcome="died", why="the process ended")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The last line of a test counts."""
    if os.getpid() == MAIN and (report.when == "call" or report.outcome != "passed"):
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        why = report.longreprtext if outcome == "failed" else ""
        _write(test=report.nodeid, outcome=outcome, why=why)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that does not even import."""
    if report.failed:
        _write(test=report.nodeid, outcome="failed", why=report.longreprtext)
