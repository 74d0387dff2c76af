"""Patterns for names of modules and files."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["GlobGroup", "Patterns"]

Patterns = str | Iterable[str]


def _expression(pattern: str, separator: str) -> re.Pattern[str]:
    """`*` stands for anything within a part, `**` as a part for any number of parts."""
    point = re.escape(separator)
    text = ""
    for part in pattern.split(separator):
        if part == "**":
            text += f"({point}[^{point}]+)*"
        elif "**" in part:
            raise ValueError(f"** can only be a whole part of a pattern, which {pattern!r} breaks")
        else:
            text += point + f"[^{point}]*".join(map(re.escape, part.split("*")))
    return re.compile(text)


class GlobGroup:
    """The names that match one of some patterns and none of others.

    Args:
        include: a pattern or several: `torch.*`, `package.**`.
        exclude: those that do not count.
        separator: the text between the parts of a name.

    Example:
        >>> group = torch.package.GlobGroup("my_package.**", exclude="my_package.tests.**")
        >>> group.matches("my_package.model"), group.matches("my_package.tests.test_model")
        (True, False)
    """

    def __init__(self, include: Patterns, *, exclude: Patterns = (), separator: str = ".") -> None:
        self.include, self.exclude, self.separator = include, exclude, separator
        self._parts = [
            [_expression(p, separator) for p in ([some] if isinstance(some, str) else some)]
            for some in (include, exclude)
        ]

    def __repr__(self) -> str:
        return f"GlobGroup(include={self.include!r}, exclude={self.exclude!r})"

    def matches(self, candidate: str) -> bool:
        """Whether a name matches."""
        # `**` may stand for nothing at all: each part brings the separator before it.
        name = self.separator + candidate
        fits, barred = ([p.fullmatch(name) for p in some] for some in self._parts)
        return any(fits) and not any(barred)
