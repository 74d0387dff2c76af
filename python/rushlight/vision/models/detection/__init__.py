"""Detectors: from a list of images to a list of dicts with "boxes" (N, 4), "labels" (N) and
"scores" (N).
"""

# its modules are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from .faster_rcnn import *  # noqa: F403
from .fcos import *  # noqa: F403
from .keypoint_rcnn import *  # noqa: F403
from .mask_rcnn import *  # noqa: F403
from .retinanet import *  # noqa: F403
from .ssd import *  # noqa: F403
from .ssdlite import *  # noqa: F403

_describe_forwards(globals())
