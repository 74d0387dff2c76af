"""Mixed precision: ops choose between 16 and 32 bits, and gradients are kept in range."""

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
