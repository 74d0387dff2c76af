"""Meta's accelerators, which rushlight does not support: there are none."""

from __future__ import annotations

__all__ = ["current_device", "device_count", "empty_cache", "is_available", "synchronize"]


def is_available():
    """False."""
    return False


def device_count():
    """0."""
    return 0


def _none(*args, **kwargs):
    """RuntimeError: there is none."""
    raise RuntimeError("MTIA is not available: rushlight was built without support for it")


current_device = set_device = synchronize = get_device_name = get_device_properties = _none
get_rng_state = set_rng_state = mem_get_info = current_stream = get_device_capability = _none


def manual_seed(seed):
    """Nothing: there is no generator to seed."""


manual_seed_all = manual_seed


def empty_cache():
    """Nothing: there is no memory."""


def is_initialized():
    """False."""
    return False


def is_bf16_supported():
    """False."""
    return False
