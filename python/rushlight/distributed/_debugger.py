"""`breakpoint`: one process is looked at, the others wait for it."""

from __future__ import annotations

import pdb
import sys
from collections import Counter
from datetime import timedelta

from rushlight.distributed import _collectives, _world

__all__ = ["breakpoint"]

_passed: Counter[tuple[str, int]] = Counter()  # by place in the program


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Stop in one process, in `pdb`, which reads /dev/stdin; `up` leads to who called this.

    Args:
        rank: the process.
        skip: how many times this place is passed first.
        timeout_s: the timeout of all groups from now on, in seconds; None leaves theirs.

    For an example see `distributed.init_process_group`.
    """
    caller = sys._getframe(1)
    place = caller.f_code.co_filename, caller.f_lineno
    _passed[place] += 1
    if _passed[place] <= skip:
        return
    if timeout_s is not None:
        for group in _world._pg_map:
            group._set_default_timeout(timedelta(seconds=timeout_s))
    if _world.get_rank() == rank:
        keys = open("/dev/stdin")  # noqa: SIM115  # as long as the program is gone through
        pdb.Pdb(stdin=keys, stdout=sys.stdout).set_trace()
    _collectives.barrier()
