"""The barrier that names who is missing."""

from __future__ import annotations

import time
from datetime import timedelta

__all__ = ["barrier"]


def barrier(group, names, timeout, wait_all_ranks):
    """Ends once all ranks of a group have called it; on its store alone, so it breaks nothing.

    `names[i]` is the number of rank i among all processes.
    """
    if not isinstance(timeout, timedelta):
        timeout = timedelta(seconds=timeout)
    store = group._store
    number = group._monitored
    group._monitored += 1
    rank = group.rank()
    here = names[rank]
    if rank != 0:
        store.set(f"monitored/{number}/{rank}", "")
        try:
            store.wait([f"monitored/{number}/end"], timeout)
        except RuntimeError as error:
            raise RuntimeError(
                f"[Rank {here}] successfully reached monitoredBarrier, but could not hear from "
                f"rank {names[0]}, whose logs may say why: {error}"
            ) from error
        why = store.get(f"monitored/{number}/end").decode()
        if why:
            raise RuntimeError(
                f"[Rank {here}]: Rank {here} successfully reached monitoredBarrier, but received "
                f"errors from rank {names[0]}: {why}"
            )
        return
    deadline = time.monotonic() + timeout.total_seconds()
    missing = []
    for other in range(1, group.size()):
        left = max(deadline - time.monotonic(), 0.001)
        try:
            store.wait([f"monitored/{number}/{other}"], timedelta(seconds=left))
        except RuntimeError:
            missing.append(names[other])
            if not wait_all_ranks:
                break
    why = ""
    if missing:
        ranks = ", ".join(map(str, missing))
        milliseconds = int(timeout.total_seconds() * 1000)
        why = (
            f"[Rank {here}]: Rank{'s' if wait_all_ranks else ''} {ranks} failed to pass "
            f"monitoredBarrier in {milliseconds} ms"
        )
    store.set(f"monitored/{number}/end", why)
    if why:
        raise RuntimeError(why)
    return
