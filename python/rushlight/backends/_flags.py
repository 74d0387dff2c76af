"""Flags of a module that can be set for good or for the length of a `with` block."""

from __future__ import annotations

import contextlib
from inspect import Parameter, Signature
from typing import Any


def functions(space, **defaults):
    """`set_flags` and `flags` of a module whose globals are `space`.

    Args:
        defaults: the flags, in the order of arguments, with those that `flags` sets if not told.
    """

    def signature(prefix, values):
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(prefix + n, kind, default=v) for n, v in values.items()])

    def replace(given):
        before = {name: space[name] for name in defaults}
        space.update({name: value for name, value in given.items() if value is not None})
        return before

    def set_flags(*args, **kwargs: Any):
        """Set the flags that are given; returns what all were before."""
        given = set_flags.__signature__.bind(*args, **kwargs).arguments
        return tuple(replace({name[1:]: value for name, value in given.items()}).values())

    @contextlib.contextmanager
    def override(given):
        before = replace(given)
        try:
            yield
        finally:
            space.update(before)

    def flags(*args, **kwargs):
        """A context manager within which these flags hold."""
        return override(defaults | flags.__signature__.bind(*args, **kwargs).arguments)

    set_flags.__signature__ = signature("_", dict.fromkeys(defaults))
    flags.__signature__ = signature("", defaults)
    place = space["__name__"].replace("rushlight.", "torch.", 1)
    lines = "\n".join(f"    {name}: the flag of that name." for name in defaults)
    first, old = next(iter(defaults.items()))
    old = space[first] if old is None else old
    set_flags.__doc__ = "\n".join(
        [
            f"{set_flags.__doc__}\n\nArgs:",
            lines.replace("    ", "    _"),
            f"\nExample:\n    >>> before = {place}.set_flags({space[first]!r})",
        ]
    )
    flags.__doc__ = "\n".join(
        [
            f"{flags.__doc__}\n\nArgs:\n{lines}",
            f"\nExample:\n    >>> with {place}.flags({old!r}):",
            f"    ...     print({place}.{first})\n    {old!r}",
        ]
    )
    for function in (set_flags, flags):
        function.__module__ = space["__name__"]
    return set_flags, flags
