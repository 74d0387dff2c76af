"""Staging: copies of states, so that training can continue during a save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import rushlight
from rushlight.distributed._shard.sharded_tensor import ShardedTensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


def copy_to_cpu(value: Any) -> Any:
    """Copy a structure, with copies of its tensors on the CPU."""
    if isinstance(value, ShardedTensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, rushlight.Tensor):
        if hasattr(value, "placements"):
            return value.detach().clone()
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: copy_to_cpu(part) for key, part in value.items()}
    if isinstance(value, list):
        return [copy_to_cpu(part) for part in value]
    if isinstance(value, tuple):
        parts = [copy_to_cpu(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state, so that it can be saved while the original changes.

    Args:
        args, kwargs: anything.

    For an example see `distributed.checkpoint.async_save`.
    """

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is called once the save has started."""
        return self._synchronize_after_execute

    def stage(self, state_dict):
        """Copy a state; returns the copy or a future of it."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait until the copy is complete."""

    def close(self) -> None:
        """Free all resources."""


@dataclass
class StagingOptions:
    """Settings of `DefaultStager`, none of which has an effect: copies are made at once.

    Args:
        use_pinned_memory, use_shared_memory, use_async_staging, use_non_blocking_copy: no effect.

    For an example see `distributed.checkpoint.async_save`.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class BlockingAsyncStager(AsyncStager):
    """Copies a state while the caller waits.

    Args:
        cache_staged_state_dict: no effect.
        type_check: no effect.

    For an example see `distributed.checkpoint.async_save`.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False):
        self.cache_staged_state_dict = cache_staged_state_dict
        self.type_check = type_check

    def stage(self, state_dict):
        """Copy a state."""
        return copy_to_cpu(state_dict)

    def synchronize_staging(self) -> None:
        """A no-op: the copy is complete."""

    def close(self) -> None:
        """A no-op: nothing is kept."""


class DefaultStager(AsyncStager):
    """Copies a state while the caller waits.

    Args:
        config: settings without effect.

    For an example see `distributed.checkpoint.async_save`.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, config: StagingOptions | None = None):
        self._config = config or StagingOptions()

    def stage(self, state_dict, **kwargs):
        """Copy a state."""
        return copy_to_cpu(state_dict)

    def close(self) -> None:
        """A no-op: nothing is kept."""

    def synchronize_staging(self) -> None:
        """A no-op: the copy is complete."""
