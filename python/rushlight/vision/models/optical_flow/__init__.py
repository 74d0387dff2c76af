"""Models for optical flow: where each pixel of an image moves to in the next image."""

# its modules are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from .raft import *  # noqa: F403

_describe_forwards(globals())
