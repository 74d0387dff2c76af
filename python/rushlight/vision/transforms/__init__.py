"""Transforms of images: crops, flips, colours, blurs and their random variants, for Pillow images
and tensors.
"""

from typing import TYPE_CHECKING

# ruff: noqa: F401, F403  # all of its modules' public names are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from . import autoaugment, functional, transforms
from .autoaugment import *
from .transforms import *

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [*transforms.__all__, *autoaugment.__all__]

_describe_forwards(globals())
