"""Transforms of images: crops, flips, colours, blurs and their random variants, for Pillow images
and tensors.
"""

# ruff: noqa: F401, F403  # all of its modules' public names are names of the package

from . import autoaugment, functional, transforms
from .autoaugment import *
from .transforms import *

__all__ = [*transforms.__all__, *autoaugment.__all__]
