"""Models of videos (N, 3, T, H, W)."""

# its modules are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from .mvit import *  # noqa: F403
from .resnet import *  # noqa: F403
from .s3d import *  # noqa: F403
from .swin_transformer import *  # noqa: F403

_describe_forwards(globals())
