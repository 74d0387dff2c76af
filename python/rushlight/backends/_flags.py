"""Flags of a module that can be set for good or for the length of a `with` block."""

import contextlib


def replace(space, given):
    """Sets those flags in a module's globals that are not None; returns what all were."""
    before = {name: space[name] for name in given}
    space.update({name: value for name, value in given.items() if value is not None})
    return tuple(before.values())


@contextlib.contextmanager
def held(space, given):
    """Within it these flags hold."""
    before = {name: space[name] for name in given}
    replace(space, given)
    try:
        yield
    finally:
        space.update(before)
