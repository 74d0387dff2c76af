"""Mixed precision: autocast chooses 16 or 32 bits for each op, and `GradScaler` scales losses."""

from rushlight.amp import autocast_mode, grad_scaler
from rushlight.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from rushlight.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
]
