"""Images of several sizes in one tensor."""

from dataclasses import dataclass

import rushlight as torch
from rushlight import Tensor

__all__ = ["ImageList"]


@dataclass
class ImageList:
    """Images (N, C, H, W) padded with zeros, and the original size of each.

    Args:
        tensors: images (N, C, H, W), padded.
        image_sizes: the size of each without that.

    Example:
        >>> from rushlight.vision.models.detection.image_list import ImageList
        >>> ImageList(torch.zeros(1, 3, 32, 32), [(30, 20)]).image_sizes
        [(30, 20)]
    """

    tensors: Tensor
    image_sizes: list[tuple[int, int]]

    def to(self, device: torch.device) -> "ImageList":
        """The same images on a device.

        Args:
            device: the device.
        """
        return ImageList(self.tensors.to(device), self.image_sizes)
