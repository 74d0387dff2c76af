"""Models of videos (N, 3, T, H, W)."""

# its modules are names of the package

from .resnet import *  # noqa: F403
