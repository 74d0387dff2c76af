"""`vmap` and what rules of custom functions are written with."""

from rushlight._vmap import restore_vmap, vmap

__all__ = ["restore_vmap", "vmap"]
