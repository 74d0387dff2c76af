"""Seeds and states of the default random generators."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rushlight import _C
from rushlight._C import Generator, default_generator
from rushlight._warnings import warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from rushlight import Tensor

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; returns the CPU's generator.

    Args:
        seed: an integer of 64 bits; negative ones count from the end.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> first = torch.rand(2)
        >>> _ = torch.manual_seed(0)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    generator = default_generator.manual_seed(int(seed))
    _C._seed_devices(generator.initial_seed())
    return generator


def seed():
    """Seed the default generators from the system's entropy; returns the seed.

    Example:
        >>> isinstance(torch.seed(), int)
        True
    """
    fresh = default_generator.seed()
    _C._seed_devices(fresh)
    return fresh


def initial_seed():
    """The last seed of the default generator.

    Example:
        >>> _ = torch.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a uint8 tensor.

    Example:
        >>> state = torch.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator to a state from `get_rng_state`.

    Args:
        new_state: what `get_rng_state` returned.

    Example:
        >>> state = torch.get_rng_state()
        >>> torch.set_rng_state(state)
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Sequence[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A context manager that restores the random generators of the CPU and of devices at its end.

    Args:
        devices: numbers, names or devices; all devices by default.
        enabled: False does nothing.
        device_type: their type: GPUs by default, which alone have generators beside the CPU's.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     inside = torch.rand(1)
        >>> torch.equal(inside, torch.rand(1))
        True
    """
    if not enabled:
        yield
        return
    generators = [default_generator]
    if device_type is None or _C.device(device_type).type == "cuda":
        from rushlight import cuda

        chosen = range(cuda.device_count()) if devices is None else list(devices)
        if devices is None and len(chosen) > 1:
            warn(
                f"{_caller} keeps the generators of all {len(chosen)} GPUs; {_devices_kw} says "
                "which ones are used.",
            )
        generators += [cuda.random.generator_of(device) for device in chosen]
    elif devices:
        raise RuntimeError(f"devices of the type {device_type!r} have no generators to keep")
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
