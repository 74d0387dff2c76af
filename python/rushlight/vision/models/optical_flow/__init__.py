"""Models for optical flow: where each pixel of an image moves to in the next image."""

# its modules are names of the package

from .raft import *  # noqa: F403
