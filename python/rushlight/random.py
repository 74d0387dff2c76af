"""Seeds and states of the default generator."""

from __future__ import annotations

from contextlib import contextmanager

from rushlight import _C
from rushlight._C import default_generator

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed):
    """Makes the default generators of all devices start from this seed; returns the CPU's."""
    generator = default_generator.manual_seed(int(seed))
    _C._seed_devices(generator.initial_seed())
    return generator


def seed():
    """Seeds the default generators from the system's entropy; returns the seed."""
    fresh = default_generator.seed()
    _C._seed_devices(fresh)
    return fresh


def initial_seed():
    """The seed that the default generator last started from."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Puts the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda"):
    """Leaves the default generator after the `with` block as it was before."""
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)
