"""`ao.nn.qat`, under its deprecated name."""

from rushlight.ao.nn.qat import *  # noqa: F403
from rushlight.ao.nn.qat import __all__ as __all__
