"""Quantisable networks, in their float forms."""

from rushlight._lazy import lazy

from .googlenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .mobilenetv3 import *  # noqa: F403
from .resnet import *  # noqa: F403
from .shufflenetv2 import *  # noqa: F403

lazy(__name__)
