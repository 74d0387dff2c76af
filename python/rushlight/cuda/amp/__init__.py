"""Deprecated names of `rushlight.amp` for CUDA."""

from rushlight.cuda.amp import autocast_mode, common, grad_scaler
from rushlight.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from rushlight.cuda.amp.common import amp_definitely_not_available
from rushlight.cuda.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "autocast_mode",
    "common",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
]
