"""Flags for reproducible programs, which rushlight's are anyway."""

__all__ = ["fill_uninitialized_memory"]

# Whether `empty` fills its memory under deterministic algorithms: it never does.
fill_uninitialized_memory = False
