"""Meta's accelerators, which rushlight does not support: there are none."""

from __future__ import annotations

from rushlight._absent import (
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    is_initialized,
    manual_seed,
    manual_seed_all,
    refusal,
)

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]

current_device = set_device = synchronize = get_device_name = get_device_properties = refusal(
    "MTIA"
)
get_rng_state = set_rng_state = mem_get_info = current_stream = get_device_capability = (
    current_device
)
