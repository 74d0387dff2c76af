"""Deprecated names of `rushlight.amp` for the CPU."""

from rushlight.cpu.amp import autocast_mode, grad_scaler
from rushlight.cpu.amp.autocast_mode import autocast
from rushlight.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "grad_scaler"]
