"""A lock file that one process at a time can hold."""

from __future__ import annotations

import os
import time

from rushlight._warnings import warn

__all__ = ["FileBaton"]


class FileBaton:
    """A lock between processes: a file that exists while a process holds the lock.

    Args:
        lock_file_path: the file.
        wait_seconds: between looks.
        warn_after_seconds: a warning after so long a wait; without it none.

    Example:
        >>> import tempfile
        >>> from rushlight.utils.file_baton import FileBaton
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     baton = FileBaton(f"{folder}/lock")
        ...     if baton.try_acquire():
        ...         print("built by this process")
        ...         baton.release()
        built by this process
    """

    def __init__(
        self,
        lock_file_path: str | os.PathLike[str],
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Try to acquire the lock; returns whether this process holds it."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until no process holds the lock."""
        start = time.monotonic()
        limit = self.warn_after_seconds
        told = False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if limit is not None and not told and time.monotonic() - start > limit:
                warn(f"Waited on lock file {self.lock_file_path!r} for {limit} seconds")
                told = True

    def release(self) -> None:
        """Release the lock."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
