"""`ao.nn.intrinsic.qat`, under its deprecated name."""

from rushlight.ao.nn.intrinsic.qat import *  # noqa: F403
from rushlight.ao.nn.intrinsic.qat import __all__ as __all__
