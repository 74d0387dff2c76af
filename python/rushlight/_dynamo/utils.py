"""Helpers of PyTorch's compiler that other packages call."""

from __future__ import annotations

from collections import Counter, defaultdict

from rushlight import _C

__all__ = ["counters", "warn_once"]

# What compilers count, by what they count it for; programs write here.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of something, once for each text.

    Args:
        msg: the text.
        stacklevel: not used: a warning names the line of the program.

    Example:
        >>> from rushlight._dynamo.utils import warn_once
        >>> warn_once("slow")  # doctest: +SKIP
    """
    _C._warn_once(msg)
