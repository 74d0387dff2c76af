"""Stacks as text."""

from __future__ import annotations

import os
import traceback

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "shorten_filename",
]


def shorten_filename(fn, *, base=None):
    """A file's name without the folder that it shares with the package."""
    root = os.path.dirname(os.path.dirname(__file__)) if base is None else base
    try:
        prefix = os.path.commonpath([fn, root])
    except ValueError:
        return fn
    return fn[len(prefix) + 1 :]


def format_frame(frame, *, base=None, line=False):
    """A frame of a stack as file, line and function.

    Args:
        frame: of `traceback`.
        base: the folder that is left out.
        line: put the line's text before it.
    """
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb):
    """Where an exception came from: its last frame."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The stack of a moment. `extract()` takes it, `summary()` and `format()` read it."""

    __slots__ = ("_frames",)

    def __init__(self, frames) -> None:
        self._frames = frames

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack now, without the innermost `skip` frames.

        Args:
            script: has no effect: there are no frames of compiled scripts.
            cpp: has no effect: frames are Python's.
            skip: the number of frames to leave out.
        """
        frames = traceback.extract_stack()[: -1 - skip]
        return CapturedTraceback(frames)

    def summary(self):
        """The frames, outermost first."""
        return traceback.StackSummary.from_list(self._frames)

    def format(self) -> list[str]:
        """The frames as lines of text."""
        return traceback.format_list(self._frames)

    @staticmethod
    def format_all(tbs):
        """The lines of several."""
        return [[] if tb is None else tb.format() for tb in tbs]

    def cleanup(self):
        """Forgets the frames."""
        self._frames = []
