"""All layers, losses and containers, in files with PyTorch's names."""

from typing import TYPE_CHECKING

from rushlight._texts.docstrings import describe_forwards as _describe_forwards

from . import (
    activation,
    adaptive,
    attention,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .attention import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .lazy import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module as Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        "Module",
        *linear.__all__,
        *conv.__all__,
        *activation.__all__,
        *container.__all__,
        *pooling.__all__,
        *batchnorm.__all__,
        *instancenorm.__all__,
        *normalization.__all__,
        *dropout.__all__,
        *padding.__all__,
        *sparse.__all__,
        *loss.__all__,
        *distance.__all__,
        *flatten.__all__,
        *fold.__all__,
        *pixelshuffle.__all__,
        *channelshuffle.__all__,
        *adaptive.__all__,
        *attention.__all__,
        *rnn.__all__,
        *lazy.__all__,
        *transformer.__all__,
        *upsampling.__all__,
    ]

_describe_forwards(globals())
