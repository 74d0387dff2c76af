"""Computer vision: images, transforms, data sets, models, ops."""

from __future__ import annotations

from rushlight._lazy import lazy

__version__ = "0.28.0"

with lazy(__name__):
    from . import datasets as datasets
    from . import io as io
    from . import models as models
    from . import ops as ops
    from . import transforms as transforms
    from . import tv_tensors as tv_tensors
    from . import utils as utils

# The one package that loads images, and the one that decodes videos.
_image_backend = "PIL"
_video_backend = "pyav"


def set_image_backend(backend: str) -> None:
    """Set the package that loads images: "PIL"; "accimage" raises, and so do other names
    (ValueError).

    Args:
        backend: its name.

    Example:
        >>> from rushlight import vision
        >>> vision.set_image_backend("PIL")
    """
    if backend == "accimage":
        raise ValueError("accimage is not supported: images are loaded by Pillow")
    if backend != _image_backend:
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")


def get_image_backend() -> str:
    """The package that data sets load images with.

    Example:
        >>> from rushlight import vision
        >>> vision.get_image_backend()
        'PIL'
    """
    return _image_backend


def set_video_backend(backend: str) -> None:
    """Set the package that decodes videos: "pyav"; ValueError for other names.

    Args:
        backend: its name.

    Example:
        >>> from rushlight import vision
        >>> vision.set_video_backend("pyav")
    """
    if backend != _video_backend:
        raise ValueError(f"Invalid video backend '{backend}'. The only one is 'pyav'")


def get_video_backend() -> str:
    """The package that decodes videos.

    Example:
        >>> from rushlight import vision
        >>> vision.get_video_backend()
        'pyav'
    """
    return _video_backend


def disable_beta_transforms_warning() -> None:
    """A no-op: transforms.v2 do not warn.

    Example:
        >>> from rushlight import vision
        >>> vision.disable_beta_transforms_warning()
    """
