"""Both MobileNets."""

from .mobilenetv2 import *  # noqa: F403
from .mobilenetv3 import *  # noqa: F403
