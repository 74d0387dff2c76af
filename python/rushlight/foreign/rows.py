"""The rows of the manifest's tables."""

from __future__ import annotations

from typing import NamedTuple

NO_EFFECT = "no effect"  # taken; everything stays as it is
FIXED = "fixed value"  # gives the same whatever happens
RAISES = "refused"  # any value but the default raises
EFFECT = "takes effect"  # listed because its neighbours do not

# Reasons that several areas have.
AS_WRITTEN = "programs run as they are written"
ONE_KERNEL = "attention has one kernel"
PROTOCOL = "all functions of the kind are called with the same arguments"
SUBCLASSES = "subclasses use them"
KEPT = "kept for programs to read"


class Accepted(NamedTuple):
    """One thing or several that are taken alike.

    Args:
        where: functions, classes or modules by where they are defined, below `rushlight`, or ops by
            their names; patterns with `*`, separated by spaces.
        names: their parameters or the options of a command, separated by spaces; "" for the
            functions themselves.
        effect: one of the four above.
        reason: why, or what counts instead.
    """

    where: str
    names: str
    effect: str
    reason: str


class Flags(NamedTuple):
    """Flags of a module that can be set and read, and change nothing.

    Args:
        where: the module, or an object in one, below `rushlight`.
        names: the flags, separated by spaces.
        reason: why, or what counts instead.
    """

    where: str
    names: str
    reason: str

    effect = NO_EFFECT


class Refused(NamedTuple):
    """Names of a module that raise when they are called.

    Args:
        where: the module, below `rushlight`.
        functions: those that are functions, separated by spaces.
        classes: those that are classes, so that programs can ask `isinstance`.
        why: what follows "rushlight has no NAME yet: ".
    """

    where: str
    functions: str
    classes: str
    why: str
