"""What `mps`, `mtia` and `xpu` share: accelerators that rushlight does not support."""

from __future__ import annotations

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
]


def is_available():
    """False.

    Example:
        >>> torch.xpu.is_available()
        False
    """
    return False


is_initialized = is_bf16_supported = is_available


def device_count():
    """0.

    Example:
        >>> torch.xpu.device_count()
        0
    """
    return 0


def manual_seed(seed: int):
    """Nothing: there is no generator to seed.

    Args:
        seed: means nothing here.

    Example:
        >>> torch.mps.manual_seed(0)
    """


manual_seed_all = manual_seed


def empty_cache():
    """Nothing: there is no memory.

    Example:
        >>> torch.xpu.empty_cache()
    """


def refusal(name: str):
    """A function that raises RuntimeError: there is no device of that name."""

    def none(*args, **kwargs):
        """RuntimeError: there is none."""
        raise RuntimeError(f"{name} is not available: rushlight was built without support for it")

    none.__doc__ = f"""RuntimeError: there is none.

    Args:
        args, kwargs: whatever they are.

    Example:
        >>> torch.{name.lower()}.current_device()
        Traceback (most recent call last):
            ...
        RuntimeError: {name} is not available: ...
    """
    return none
