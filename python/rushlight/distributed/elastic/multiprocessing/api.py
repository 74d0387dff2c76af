"""Redirection of the output of launched processes."""

from __future__ import annotations

import os
import tempfile
from enum import IntFlag

__all__ = ["DefaultLogsSpecs", "Std", "to_map"]


class Std(IntFlag):
    """The output streams of a process.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import Std
        >>> Std.from_str("0:1,1:3")
        {0: <Std.OUT: 1>, 1: <Std.ALL: 3>}
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Parse "3" for all local ranks, or "0:1,1:2" by rank."""
        if vm.isdigit():
            return cls(int(vm))
        try:
            pairs = [part.split(":") for part in vm.split(",")]
            return {int(rank): cls(int(value)) for rank, value in pairs}
        except ValueError:
            raise ValueError(
                f"{vm!r} does not match: a number, or rank:number pairs separated by commas"
            ) from None


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """A dict by local rank; ranks that are not mentioned have `Std.NONE`.

    Args:
        val_or_map: for all, or by rank.
        local_world_size: processes of this machine.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import Std, to_map
        >>> to_map({0: Std.OUT}, 2)
        {0: <Std.OUT: 1>, 1: <Std.NONE: 0>}
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


class DefaultLogsSpecs:
    """Where the output of processes goes.

    Args:
        log_dir: the folder of files; one for temporary files where something goes to files.
        redirects: the streams that are written to files, for all local ranks or by rank.
        tee: the streams that are also shown, in the same form.
        local_ranks_filter: the local ranks whose output is shown; all by default.

    For an example see `distributed.elastic.multiprocessing.Std`.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if log_dir is not None and os.path.exists(log_dir) and not os.path.isdir(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        files = any(s if isinstance(s, Std) else any(s.values()) for s in (redirects, tee))
        if log_dir is None and files:
            log_dir = os.path.join(tempfile.gettempdir(), "torchelastic_logs")
        self.root_log_dir = log_dir
        self.redirects, self.tee = redirects, tee
        self.local_ranks_filter = local_ranks_filter

    @staticmethod
    def streams(which: Std | dict[int, Std], processes: int) -> dict[int, int]:
        """`redirects` or `tee` as numbers by local rank."""
        return {rank: int(std) for rank, std in to_map(which, processes).items()}
