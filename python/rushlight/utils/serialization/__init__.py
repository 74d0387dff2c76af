"""Settings of `save` and `load`."""

from . import config as config
