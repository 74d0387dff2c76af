"""The capabilities of the processor."""

from rushlight import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The instruction set that kernels use: "AVX512", "AVX2" or "DEFAULT".

    Example:
        >>> torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
        True
    """
    return {"v4": "AVX512", "v3": "AVX2"}.get(_C._cpu_level(), "DEFAULT")
