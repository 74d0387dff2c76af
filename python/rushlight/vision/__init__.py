"""Computer vision: images, models, ops."""

# ruff: noqa: F401  # its modules and what they hold are names of the package

from . import datasets, models, ops
