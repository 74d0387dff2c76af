"""Flags of matrix products and attention on GPUs."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import rushlight

__all__ = [
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]


def is_built():
    """Whether this installation has the CUDA kernels.

    Example:
        >>> torch.backends.cuda.is_built() in (True, False)
        True
    """
    return bool(rushlight._C._backend_path("cuda"))


class _Matmul:
    """Flags of matrix products."""

    allow_fp16_reduced_precision_reduction: bool
    allow_bf16_reduced_precision_reduction: bool
    allow_fp16_accumulation: bool

    def __init__(self) -> None:
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    @property
    def allow_tf32(self):
        return rushlight.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        rushlight.set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self):
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value):
        self.allow_tf32 = value == "tf32"


matmul = _Matmul()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled():
    """The setting of `enable_flash_sdp`.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool):
    """Set whether attention may use flash attention; it has no effect.

    Args:
        enabled: whether it may.

    For an example see `backends.cuda.sdp_kernel`.
    """
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled():
    """The setting of `enable_mem_efficient_sdp`.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool):
    """Set whether attention may use the memory-efficient kernel; it has no effect.

    Args:
        enabled: whether it may.

    For an example see `backends.cuda.sdp_kernel`.
    """
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled():
    """The setting of `enable_math_sdp`.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return _sdp["math"]


def enable_math_sdp(enabled: bool):
    """Set whether attention may use matrix products and a softmax; it has no effect.

    Args:
        enabled: whether it may.

    For an example see `backends.cuda.sdp_kernel`.
    """
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled():
    """The setting of `enable_cudnn_sdp`.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool):
    """Set whether attention may use cuDNN; it has no effect.

    Args:
        enabled: whether it may.

    For an example see `backends.cuda.sdp_kernel`.
    """
    _sdp["cudnn"] = bool(enabled)


def is_flash_attention_available():
    """Whether this build has flash attention for GPUs.

    Example:
        >>> torch.backends.cuda.is_flash_attention_available() in (True, False)
        True
    """
    return False


def can_use_flash_attention(params: Any, debug: bool = False):
    """Whether flash attention would take these arguments.

    Args:
        params: the arguments of attention, an object of `SDPAParams`.
        debug: whether a warning says why not.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return False


def can_use_efficient_attention(params: Any, debug: bool = False):
    """Whether the memory-efficient kernel would take these arguments.

    Args:
        params: the arguments of attention, an object of `SDPAParams`.
        debug: whether a warning says why not.

    For an example see `backends.cuda.sdp_kernel`.
    """
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
):
    """Within it attention uses these kernels only (on GPUs). Deprecated:
    `nn.attention.sdpa_kernel`.

    Args:
        enable_flash: flash attention.
        enable_math: matrix products and a softmax.
        enable_mem_efficient: the memory-efficient kernel.
        enable_cudnn: cuDNN's.

    Example:
        >>> with torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...     print(torch.backends.cuda.flash_sdp_enabled())
        False
    """
    before = dict(_sdp)
    _sdp.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _sdp.update(before)


def preferred_linalg_library(backend: str | None = None):
    """A no-op: each device has one library.

    Args:
        backend: "default", "cusolver" or "magma"; None changes nothing.

    Example:
        >>> _ = torch.backends.cuda.preferred_linalg_library("default")
    """
    return "default"


def preferred_blas_library(backend=None):
    """A no-op: each device has one library."""
    return "default"


class _PlanCache(types.SimpleNamespace):
    """The cache of Fourier transforms' plans, which is empty."""

    size = 0
    max_size = 4096

    def clear(self):
        pass

    def __getitem__(self, device):
        return self


cufft_plan_cache = _PlanCache()
