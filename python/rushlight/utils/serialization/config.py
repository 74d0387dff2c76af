"""The defaults of `save` and `load`.

with config.load.patch(mmap=True): ...
"""

from __future__ import annotations

import contextlib
import mmap as _mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

__all__ = ["load", "save"]


class _Settings:
    """Names and values; others than those it begins with are refused."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self):
            raise AttributeError(f"torch.utils.serialization.config has no {name!r}")
        if name == "storage_alignment" and value != 64:
            raise NotImplementedError("storages begin at multiples of 64 bytes")
        vars(self)[name] = value

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @contextlib.contextmanager
    def patch(self, **values: Any) -> Iterator[None]:
        """Other values in a `with` statement."""
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            vars(self).update(before)


load = _Settings(
    mmap=False,
    endianness=None,
    mmap_flags=_mmap.MAP_PRIVATE,
    calculate_storage_offsets=False,
)
save = _Settings(
    compute_crc32=True,
    use_pinned_memory_for_d2h=False,
    storage_alignment=64,
)
