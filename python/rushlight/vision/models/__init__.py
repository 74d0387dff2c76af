"""Models for computer vision and their trained weights, by name or by function."""

# ruff: noqa: F401  # its modules and what they hold are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight._lazy import lazy

from . import detection, feature_extraction, optical_flow, segmentation, video
from ._api import (
    Weights as Weights,
    WeightsEnum as WeightsEnum,
    get_model as get_model,
    get_model_builder as get_model_builder,
    get_model_weights as get_model_weights,
    get_weight as get_weight,
    list_models as list_models,
)
from .alexnet import *  # noqa: F403
from .convnext import *  # noqa: F403
from .densenet import *  # noqa: F403
from .efficientnet import *  # noqa: F403
from .googlenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .maxvit import *  # noqa: F403
from .mnasnet import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .mobilenetv3 import *  # noqa: F403
from .regnet import *  # noqa: F403
from .resnet import *  # noqa: F403
from .shufflenetv2 import *  # noqa: F403
from .squeezenet import *  # noqa: F403
from .swin_transformer import *  # noqa: F403
from .vgg import *  # noqa: F403
from .vision_transformer import *  # noqa: F403

from . import quantization  # isort: skip  # names models from above

lazy(__name__)

_describe_forwards(globals())
