"""`TorchVersion`: a version number that is a string and compares as a version."""

from __future__ import annotations

from typing import Any

__all__ = ["TorchVersion"]

# As PEP 440 writes versions: 2.8.0, 2.8.0a1, 2.8.0rc2, 2.8.0.post1, 2.8.0.dev20250101, 2.8.0+cpu.
_VERSION = (
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"[-_.]?(?:(?P<kind>a|alpha|b|beta|c|rc|pre|preview)[-_.]?(?P<pre>\d*))?"
    r"[-_.]?(?:post[-_.]?(?P<post>\d*))?[-_.]?(?:dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_FINAL = (3, 0)  # behind all that come before a release


def _key(version: Any) -> tuple | None:
    """What versions are ordered by; None for what is none."""
    import re  # not every program compares versions

    if isinstance(version, tuple | list):
        version = ".".join(map(str, version))
    found = re.fullmatch(_VERSION, str(version).strip(), re.IGNORECASE)
    if found is None:
        return None
    numbers = [int(n) for n in found["release"].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    before = _FINAL
    if found["kind"]:
        before = ({"a": 0, "b": 1}.get(found["kind"][0].lower(), 2), int(found["pre"] or 0))
    elif found["dev"] is not None and found["post"] is None:
        before = (-1, 0)
    post = -1 if found["post"] is None else int(found["post"] or 0)
    dev = float("inf") if found["dev"] is None else int(found["dev"] or 0)
    parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    local = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts)
    return int(found["epoch"] or 0), tuple(numbers), before, post, dev, bool(parts), local


class TorchVersion(str):
    """A string that compares as a version with strings, tuples and other versions.

    `TorchVersion("2.13.0") > "2.9"` and `TorchVersion("2.13.0") >= (2, 9)` hold. What is no version
    is compared as text.

    Example:
        >>> from rushlight.torch_version import TorchVersion
        >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 9)
        (True, True)
    """

    __slots__ = ()

    def _compare(self, other: Any, compare: str) -> bool:
        if not isinstance(other, str | tuple | list) and not hasattr(other, "release"):
            return NotImplemented
        ours, theirs = _key(self), _key(other)
        if ours is None or theirs is None:
            return getattr(str, compare)(self, str(other))
        return getattr(ours, compare)(theirs)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, "__ge__")

    def __eq__(self, other: Any) -> bool:
        return self._compare(other, "__eq__")

    def __ne__(self, other: Any) -> bool:
        return self._compare(other, "__ne__")

    __hash__ = str.__hash__


# The version of PyTorch whose interface programs find here: they ask for it, and under both names.
# The package's own is `rushlight.version.rushlight`.
__version__ = TorchVersion("2.8.0+rushlight")
