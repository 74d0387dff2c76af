"""Seeds and states of the GPUs' default generators, which use Philox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight.cuda import devices

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def generator_of(device: _C.device | str | int = "cuda"):
    """The default generator of a GPU."""
    return _C._device_generator(f"cuda:{devices.index_of(device)}")


class _Generators(Sequence):
    """The default generators of the GPUs, by their numbers."""

    def __len__(self):
        return devices.device_count()

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            return [self[i] for i in range(len(self))[index]]
        return generator_of(range(len(self))[index])


default_generators = _Generators()


def manual_seed(seed: int):
    """Seed the generator of the current GPU; without a GPU, those of GPUs that are used later.

    Args:
        seed: an integer.

    Example:
        >>> torch.cuda.manual_seed(0)
    """
    if devices.is_available():
        generator_of().manual_seed(int(seed))
    else:
        _C._seed_devices(int(seed))


def manual_seed_all(seed: int):
    """Seed the generators of all GPUs.

    Args:
        seed: an integer.

    Example:
        >>> torch.cuda.manual_seed_all(0)
    """
    _C._seed_devices(int(seed))


def seed():
    """Give the generator of the current GPU, if there is one, a random seed.

    Example:
        >>> torch.cuda.seed()
    """
    if devices.is_available():
        generator_of().seed()


def seed_all():
    """Give the generators of all GPUs one random seed.

    Example:
        >>> torch.cuda.seed_all()
    """
    if devices.is_available():
        _C._seed_devices(generator_of().seed())


def initial_seed() -> int:
    """The last seed of the current GPU's generator.

    Example:
        >>> if torch.cuda.is_available():
        ...     print(torch.cuda.initial_seed())
    """
    return generator_of().initial_seed()


def get_rng_state(device: _C.device | str | int = "cuda") -> Tensor:
    """The state of a GPU's generator: seed and offset in 16 bytes of a uint8 tensor.

    Args:
        device: a GPU, or its number.

    Example:
        >>> if torch.cuda.is_available():
        ...     state = torch.cuda.get_rng_state()
    """
    return generator_of(device).get_state()


def set_rng_state(new_state: Tensor, device: _C.device | str | int = "cuda") -> None:
    """Set a GPU's generator to a state from `get_rng_state`.

    Args:
        new_state: the state, 16 bytes.
        device: a GPU, or its number.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    """
    generator_of(device).set_state(new_state)


def get_rng_state_all():
    """The states of all GPUs' generators.

    Example:
        >>> states = torch.cuda.get_rng_state_all()
    """
    return [get_rng_state(i) for i in range(devices.device_count())]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Set the generators of all GPUs to these states.

    Args:
        new_states: a state for each GPU.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
