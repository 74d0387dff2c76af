"""Models for semantic segmentation: a class for each pixel."""

# its modules are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from .deeplabv3 import *  # noqa: F403
from .fcn import *  # noqa: F403
from .lraspp import *  # noqa: F403

_describe_forwards(globals())
