"""Kernels for quantised tensors, of which there are none."""

__all__ = ["engine", "supported_engines"]

engine = "none"
supported_engines = ["none"]
