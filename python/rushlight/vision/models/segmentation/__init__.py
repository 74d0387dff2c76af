"""Models for semantic segmentation: a class for each pixel."""

# its modules are names of the package

from .deeplabv3 import *  # noqa: F403
from .fcn import *  # noqa: F403
from .lraspp import *  # noqa: F403
