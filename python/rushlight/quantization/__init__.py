"""Quantisation, by its old place."""

from rushlight.ao.quantization import *  # noqa: F403
from rushlight.ao.quantization import fuse_modules as fuse_modules
from rushlight.ao.quantization import quantize as quantize
