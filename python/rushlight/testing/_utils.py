"""What tests of random functions need: seeds that leave the generators as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import rushlight


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """After the block the generators of all devices are where they were before it."""
    with rushlight.random.fork_rng():
        yield


def wrapper_set_seed(op, *args, **kwargs):
    """`op` of the arguments with a seed of its own, so that calls draw alike."""
    with freeze_rng_state():
        rushlight.manual_seed(42)
        return op(*args, **kwargs)
