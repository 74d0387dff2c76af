"""Computer vision: images, models, ops."""

from . import models, ops
