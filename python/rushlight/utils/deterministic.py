"""Flags for reproducible programs, which rushlight's are anyway."""

from rushlight._accepted import flags_of

__all__ = ["fill_uninitialized_memory"]

# Whether `empty` fills its memory under deterministic algorithms: it never does.
fill_uninitialized_memory: bool
globals().update(flags_of("utils.deterministic"))
