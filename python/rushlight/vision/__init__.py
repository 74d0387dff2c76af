"""Computer vision: images, transforms, data sets, models, ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

__version__ = "0.28.0"

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import io as io
    from . import models as models
    from . import ops as ops
    from . import transforms as transforms
    from . import tv_tensors as tv_tensors
    from . import utils as utils
else:
    __getattr__, __dir__ = lazy(__name__, "datasets io models ops transforms tv_tensors utils")

_backend = "PIL"


def set_image_backend(backend: str) -> None:
    """Which package data sets load images with: "PIL"; "accimage" is refused, ValueError for
    others.
    """
    if backend == "accimage":
        raise ValueError("accimage is not supported: images are loaded by Pillow")
    if backend != "PIL":
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")


def get_image_backend() -> str:
    """The package that data sets load images with."""
    return _backend
