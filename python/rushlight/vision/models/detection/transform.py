"""Preprocessing of images and postprocessing of results of detectors."""

import math
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from .image_list import ImageList
from .roi_heads import paste_masks_in_image

__all__ = ["GeneralizedRCNNTransform", "resize_boxes", "resize_keypoints"]

Target = dict[str, Tensor]
COLOURS = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # mean and deviation of ImageNet's


def resize_boxes(boxes: Tensor, original_size: list[int], new_size: list[int]) -> Tensor:
    """Scale the boxes (N, 4) of an image to another image size.

    Args:
        boxes: (N, 4), in pixels.
        original_size: (height, width) of the image that they are of.
        new_size: that of the other one.

    Example:
        >>> from rushlight.vision.models.detection.transform import resize_boxes
        >>> resize_boxes(torch.tensor([[1.0, 1.0, 2.0, 2.0]]), [10, 10], [20, 40])
        tensor([[4., 2., 8., 4.]])
    """
    height, width = (
        torch.tensor(n, dtype=torch.float32) / o
        for n, o in zip(new_size, original_size, strict=True)
    )
    return boxes * torch.stack((width, height, width, height)).to(boxes)


def resize_keypoints(keypoints: Tensor, original_size: list[int], new_size: list[int]) -> Tensor:
    """Scale the keypoints (N, K, 3) of an image to another image size.

    Args:
        keypoints: (N, K, 3), in pixels.
        original_size: (height, width) of the image that they are of.
        new_size: that of the other one.

    For an example see `vision.models.detection.transform.resize_boxes`.
    """
    height, width = (
        torch.tensor(n, dtype=torch.float32) / o
        for n, o in zip(new_size, original_size, strict=True)
    )
    return keypoints * torch.stack((width, height, torch.ones_like(width))).to(keypoints)


class GeneralizedRCNNTransform(nn.Module):
    """Normalises and resizes images, their smaller side to min_size and the larger to max_size
    at most.

    min_size may be several numbers, of which training draws one for each image. Sizes of the
    batch are multiples of size_divisible. fixed_size: (width, height) of all images.

    Args:
        min_size: the shorter side of images, which are resized; several: one is drawn in training.
        max_size: the longer side at most.
        image_mean, image_std: of the channels.
        size_divisible: sides of the batch are multiples of it.
        fixed_size: (width, height) of all images, instead.
        kwargs: means nothing here.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """

    def __init__(
        self,
        min_size: int | list[int] | tuple[int, ...],
        max_size: int,
        image_mean: list[float],
        image_std: list[float],
        size_divisible: int = 32,
        fixed_size: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.min_size = tuple(min_size) if isinstance(min_size, list | tuple) else (min_size,)
        self.max_size, self.image_mean, self.image_std = max_size, image_mean, image_std
        self.size_divisible, self.fixed_size = size_divisible, fixed_size
        self._skip_resize = kwargs.pop("_skip_resize", False)

    def forward(
        self, images: list[Tensor], targets: list[Target] | None = None
    ) -> tuple[ImageList, list[Target] | None]:
        """The images, normalised and scaled, as one batch, and the targets scaled like them."""
        images = list(images)
        made: list[Target] | None = None if targets is None else [dict(t) for t in targets]
        for i, image in enumerate(images):
            if image.dim() != 3:
                raise ValueError(
                    "images is expected to be a list of 3d tensors, channels first, got "
                    f"{image.shape}"
                )
            images[i], target = self.resize(
                self.normalize(image), None if made is None else made[i]
            )
            if made is not None and target is not None:
                made[i] = target
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        return ImageList(self.batch_images(images, self.size_divisible), sizes), made

    def normalize(self, image: Tensor) -> Tensor:
        """Subtract the mean and divide by the deviation of the colours; TypeError for integers."""
        if not image.is_floating_point():
            raise TypeError(
                "Expected input images to be of floating type, from 0 to 1, and not of "
                f"{image.dtype}"
            )
        mean, std = (
            torch.tensor(c, dtype=image.dtype, device=image.device)
            for c in (self.image_mean, self.image_std)
        )
        return (image - mean[:, None, None]) / std[:, None, None]

    def torch_choice(self, k: list[int]) -> int:
        """Draw one of several numbers with rushlight's generator."""
        return k[int(torch.empty(1).uniform_(0.0, float(len(k))).item())]

    def resize(self, image: Tensor, target: Target | None = None) -> tuple[Tensor, Target | None]:
        """Resize an image and its target."""
        before = list(image.shape[-2:])
        if self.training and self._skip_resize:
            return image, target
        smaller = self.torch_choice(list(self.min_size)) if self.training else self.min_size[-1]
        size: list[int] | None = None
        scale: float | None = None
        recompute: bool | None = None
        fixed = self.fixed_size
        if fixed is not None:
            size = [fixed[1], fixed[0]]
        else:
            scale, recompute = min(smaller / min(before), self.max_size / max(before)), True
        image = F.interpolate(image[None], size, scale, "bilinear", False, recompute)[0]
        if target is None:
            return image, None
        after = list(image.shape[-2:])
        target["boxes"] = resize_boxes(target["boxes"], before, after)
        if "masks" in target:
            masks = target["masks"][:, None].float()
            masks = F.interpolate(masks, size, scale, recompute_scale_factor=recompute)
            target["masks"] = masks[:, 0].byte()
        if "keypoints" in target:
            target["keypoints"] = resize_keypoints(target["keypoints"], before, after)
        return image, target

    def max_by_axis(self, the_list: list[list[int]]) -> list[int]:
        """The elementwise maximum of lists of numbers."""
        most = list(the_list[0])
        for numbers in the_list[1:]:
            for i, number in enumerate(numbers):
                most[i] = max(most[i], number)
        return most

    def batch_images(self, images: list[Tensor], size_divisible: int = 32) -> Tensor:
        """Images as one tensor, padded with zeros at the bottom and on the right."""
        sizes = self.max_by_axis([list(image.shape) for image in images])
        height, width = (math.ceil(n / size_divisible) * size_divisible for n in sizes[1:])
        batch = images[0].new_full((len(images), sizes[0], height, width), 0)
        for place, image in zip(batch, images, strict=True):
            place[: image.shape[0], : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(
        self,
        result: list[Target],
        image_shapes: list[tuple[int, int]],
        original_image_sizes: list[tuple[int, int]],
    ) -> list[Target]:
        """Convert results to the coordinates of the original images."""
        if self.training:
            return result
        for found, size, original in zip(result, image_shapes, original_image_sizes, strict=True):
            found["boxes"] = resize_boxes(found["boxes"], list(size), list(original))
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], original)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(
                    found["keypoints"], list(size), list(original)
                )
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})\n"
            f"    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )
