"""Flags for reproducible programs; rushlight's results are reproducible anyway."""

import sys
from types import ModuleType

from rushlight import _settings

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Module(ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether `empty`, `resize_` and their like fill memory that nobody has written.

        Under `use_deterministic_algorithms` alone: with NaN, or an integer dtype's greatest number.
        """
        return _settings.marks_unwritten()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        _settings.set_marks_unwritten(mode)


sys.modules[__name__].__class__ = _Module
