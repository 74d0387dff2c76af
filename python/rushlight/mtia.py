"""Meta's accelerators, which rushlight does not support: there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.foreign import absent as _absent
from rushlight.foreign.absent import *  # noqa: F403

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [*_absent.__all__, "current_device", "synchronize"]

current_device = set_device = synchronize = get_device_name = get_device_properties = (
    _absent.refusal("MTIA")
)
get_rng_state = set_rng_state = mem_get_info = current_stream = get_device_capability = (
    current_device
)
