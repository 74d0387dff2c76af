"""Quantisation, under its deprecated name."""

from rushlight.quantization.fake_quantize import *  # noqa: F403
from rushlight.quantization.fuse_modules import *  # noqa: F403
from rushlight.quantization.observer import *  # noqa: F403
from rushlight.quantization.qconfig import *  # noqa: F403
from rushlight.quantization.quantization_mappings import *  # noqa: F403
from rushlight.quantization.quantize import *  # noqa: F403
from rushlight.quantization.stubs import *  # noqa: F403
