"""Models that tell where each pixel of an image goes in the next."""

# its modules are names of the package

from .raft import *  # noqa: F403
