"""Transforms as classes: constructed with settings, called with images."""

from ._basic import (
    CenterCrop,
    ConvertImageDtype,
    FiveCrop,
    Grayscale,
    LinearTransformation,
    Normalize,
    Pad,
    PILToTensor,
    Resize,
    TenCrop,
    ToPILImage,
    ToTensor,
)
from ._chance import (
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
    RandomVerticalFlip,
)
from ._composed import Compose, Lambda, RandomApply, RandomChoice, RandomOrder, RandomTransforms
from ._drawn import angles as _setup_angle  # noqa: F401  # torchvision's names
from ._drawn import check_sequence as _check_sequence_input  # noqa: F401
from ._measures import two as _setup_size  # noqa: F401
from ._modes import InterpolationMode
from ._random import (
    ElasticTransform,
    RandomAffine,
    RandomCrop,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
)
from ._random_pixels import ColorJitter, GaussianBlur, RandomErasing

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "ElasticTransform",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "LinearTransformation",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomTransforms",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToPILImage",
    "ToTensor",
]
