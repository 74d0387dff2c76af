"""`python -m tests.skips LOG`: holds what a run of pytest skipped to tests/allowed_skips.txt.

LOG is what `./dev test` printed. Each line of the list is a pattern that a whole reason must match, two blanks or
more, and why it is allowed after a #. A skip for another reason fails, for otherwise what can be tested would be left
out without a word.
"""

import re
import sys
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed_skips.txt")

_SKIPPED = re.compile(r"SKIPPED \[(\d+)\] (\S+?)(?::\d+)?: (.*)")
_COUNT = re.compile(r"=+ .*?(?:(\d+) skipped.*)?in [\d.]+s.*=+")


def allowed():
    """The patterns of the list, each with why it is there."""
    rows = {}
    for line in ALLOWED.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, found, why = line.partition("  #")
            if not found or not why.strip():
                raise ValueError(f"a pattern without a reason after '  #': {line!r}")
            rows[re.compile(pattern.strip())] = why.strip()
    return rows


def judged(log):
    """(How many tests were skipped, lines about those that must not be)."""
    patterns = allowed()
    total, wrong = 0, []
    for line in log.splitlines():
        found = _SKIPPED.fullmatch(line.strip())
        if found is None:
            continue
        total += int(found[1])
        if not any(pattern.fullmatch(found[3]) for pattern in patterns):
            wrong.append(f"skipped {found[1]} of {found[2]}: {found[3]}")
    summaries = [m for m in map(_COUNT.fullmatch, log.splitlines()) if m is not None]
    if not summaries:
        wrong.append("there is no summary of pytest's")
    elif int(summaries[-1][1] or 0) != total:
        wrong.append(f"{summaries[-1][1] or 0} tests were skipped, and {total} have a reason")
    return total, wrong


def main(path):
    """Print what is wrong; the exit status."""
    total, wrong = judged(Path(path).read_text(errors="replace"))
    for line in wrong:
        print(line)
    print(f"{total} tests were skipped; {len(wrong)} findings (tests/allowed_skips.txt)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
