"""Transforms of values and kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.vision import transforms as v1
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import Image, TVTensor, Video

from .._drawn import check_spread, odd_size, per_axis, uniform
from . import functional as F
from ._transform import Transform
from ._utils import has_any
from .functional._registry import is_pure_tensor

# ---- kinds ----


class PILToTensor(Transform):
    """Converts Pillow images to tensors of their own numbers.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> from PIL import Image
        >>> v2.PILToTensor()(Image.new("RGB", (4, 2))).shape
        torch.Size([3, 2, 4])
    """

    _transformed_types = (Picture,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pil_to_tensor(inpt)


class ToImage(Transform):
    """Converts plain tensors, arrays (H, W, C) and Pillow images to Images.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> type(v2.ToImage()(torch.zeros(3, 4, 4))).__name__
        'Image'
    """

    _transformed_types = (is_pure_tensor, Picture, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Converts Images to Pillow images of a given mode or of the one that fits.

    Args:
        mode: the mode of Pillow; by the number of channels if None.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ToPILImage()(torch.zeros(3, 8, 8, dtype=torch.uint8)).size
        (8, 8)
    """

    _transformed_types = (is_pure_tensor, Image, np.ndarray)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """Converts tensor subclasses to plain tensors.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> type(v2.ToPureTensor()(tv_tensors.Image(torch.zeros(3, 4, 4)))).__name__
        'Tensor'
    """

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_subclass(Tensor)


class ToTensor(Transform):
    """Pictures and arrays as tensors of numbers from 0 to 1; warns that ToImage and ToDtype are to
    be used.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> import numpy
        >>> v2.ToTensor()(numpy.full((2, 2, 3), 255, dtype="uint8")).max()
        tensor(1.)
    """

    _transformed_types = (Picture, np.ndarray)

    def __init__(self) -> None:
        warn(
            "The transform `ToTensor()` is deprecated: v2.ToImage(), and then "
            "v2.ToDtype(torch.float32, scale=True), do what it does",
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v1.functional.to_tensor(inpt)


def _is_image(inpt: Any) -> bool:
    return is_pure_tensor(inpt) or isinstance(inpt, Image | Video)


class ToDtype(Transform):
    """Another dtype.

    Args:
        dtype: of images and videos; or a dict of dtypes by kind, with None for no change and
            "others" for kinds that are not in it (else ValueError).
        scale: whether white of images and videos stays white.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ToDtype(torch.float32, scale=True)(torch.tensor([[[0, 255]]], dtype=torch.uint8))
        tensor([[[0., 1.]]])
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, dict | rushlight.dtype):
            raise ValueError(
                f"dtype must be a dtype, or a dict of them by kind of input; got {dtype!r}"
            )
        if isinstance(dtype, dict) and Tensor in dtype and (Image in dtype or Video in dtype):
            warn(
                "Got `dtype` values for `torch.Tensor` and for images or videos: of samples with "
                "an Image or a Video plain tensors pass as they are, and keep their dtype",
            )
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(self.dtype, rushlight.dtype):
            dtype = self.dtype if _is_image(inpt) else None
        elif type(inpt) in self.dtype or "others" in self.dtype:
            dtype = self.dtype.get(type(inpt), self.dtype.get("others"))
            if dtype is None and self.scale and _is_image(inpt):
                warn(
                    "scale was set to True but no dtype was given for this image or video, which "
                    "stays as it is",
                )
        else:
            raise ValueError(
                f"No dtype was specified for type {type(inpt)}. A dtype alone converts images and "
                'videos; in a dict the key "others" stands for all other kinds, with None for no '
                "change."
            )
        if dtype is None:
            return inpt
        return self._call_kernel(F.to_dtype, inpt, dtype=dtype, scale=self.scale)


class ConvertImageDtype(Transform):
    """Images in another dtype in which white stays white: ToDtype with `scale`.

    Args:
        dtype: the dtype of the result.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ConvertImageDtype(torch.float32)(torch.zeros(3, 8, 8, dtype=torch.uint8)).dtype
        torch.float32
    """

    _v1_transform_cls = v1.ConvertImageDtype

    def __init__(self, dtype: Any = rushlight.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)


# ---- functions ----


class Identity(Transform):
    """Everything as it is.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Identity()(torch.ones(2))
        tensor([1., 1.])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function of inputs.

    Args:
        lambd: the function.
        types: of the inputs that it gets; all if none are given.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Lambda(lambda x: x + 1)(torch.tensor([1, 2]))
        tensor([2, 3])
    """

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", None)
        types = f"types={[kind.__name__ for kind in self.types]}"
        return f"{name}, {types}" if name else types


# ---- values ----


class _OfTensors(Transform):
    """Refuses samples with pictures of Pillow."""

    def check_inputs(self, sample: Any) -> None:
        if has_any(sample, Picture):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")


class LinearTransformation(_OfTensors):
    """All numbers of an image less a vector, times a square matrix: whitening, for example.

    Args:
        transformation_matrix: (D, D), where D = C * H * W.
        mean_vector: (D).

    Raises:
        ValueError: shapes, dtypes or devices do not fit.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> whiten = v2.LinearTransformation(torch.eye(12), torch.zeros(12))
        >>> whiten(torch.zeros(3, 2, 2)).shape
        torch.Size([3, 2, 2])
    """

    _v1_transform_cls = v1.LinearTransformation
    _transformed_types = (is_pure_tensor, Image, Video)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        self._plain = v1.LinearTransformation(transformation_matrix, mean_vector)
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = self._plain(inpt.as_subclass(Tensor))
        return tv_tensors.wrap(out, like=inpt) if isinstance(inpt, TVTensor) else out


class Normalize(_OfTensors):
    """(image - mean) / std by channels; in place if asked for.

    Args:
        mean: what is subtracted, a number for each channel.
        std: what is divided by, a number for each channel.
        inplace: whether the picture itself is changed.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Normalize([0.5], [0.25])(torch.ones(1, 1, 2))
        tensor([[[2., 2.]]])
    """

    _v1_transform_cls = v1.Normalize

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.normalize, inpt, mean=self.mean, std=self.std, inplace=self.inplace
        )


class GaussianBlur(Transform):
    """Smoothed by a Gaussian whose deviation is drawn.

    Args:
        kernel_size: odd, one or (width, height).
        sigma: the deviation in pixels, or its range.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.GaussianBlur(3)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.GaussianBlur

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = odd_size(kernel_size)
        self.sigma = [float(v) for v in per_axis(sigma, "sigma", ValueError)]
        check_spread(self.sigma)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"sigma": [uniform(*self.sigma)] * 2}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """Normal noise added to images; arguments are those of `functional.gaussian_noise`.

    Args:
        mean: the mean.
        sigma: the standard deviation.
        clip: whether results are kept within 0 to 1.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.GaussianNoise(sigma=0.2)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.gaussian_noise, inpt, mean=self.mean, sigma=self.sigma, clip=self.clip
        )


class UniformTemporalSubsample(Transform):
    """Some frames of videos at equal distances.

    Args:
        num_samples: how many frames are kept.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> v2.UniformTemporalSubsample(2)(tv_tensors.Video(torch.zeros(6, 3, 4, 4))).shape
        torch.Size([2, 3, 4, 4])
    """

    _transformed_types = (Tensor,)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.uniform_temporal_subsample, inpt, self.num_samples)
