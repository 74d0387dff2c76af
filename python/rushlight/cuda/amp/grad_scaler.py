"""`rushlight.amp.GradScaler` for CUDA, under its deprecated name."""

from __future__ import annotations

from rushlight.amp._by_device import ScalerOfDevice
from rushlight.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(ScalerOfDevice):
    """Deprecated: `amp.GradScaler("cuda", ...)`.

    Args:
        init_scale, growth_factor, backoff_factor, growth_interval, enabled: see
            `amp.GradScaler`.

    Example:
        >>> scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
    """

    _kind = "cuda"
