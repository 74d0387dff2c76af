"""`ao.nn.intrinsic.qat`, by its old place."""

from rushlight.ao.nn.intrinsic.qat import *  # noqa: F403
from rushlight.ao.nn.intrinsic.qat import __all__ as __all__
