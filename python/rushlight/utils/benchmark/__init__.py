"""Timing of statements: `Timer`, its `Measurement`s, and `Compare`, which prints tables of them."""

from rushlight.utils.benchmark.utils import common
from rushlight.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from rushlight.utils.benchmark.utils.compare import Compare
from rushlight.utils.benchmark.utils.timer import Language, Timer, timer

__all__ = [
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "common",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
