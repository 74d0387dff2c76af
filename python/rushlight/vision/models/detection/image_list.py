"""Images of several sizes in one tensor."""

from dataclasses import dataclass

import rushlight as torch
from rushlight import Tensor

__all__ = ["ImageList"]


@dataclass
class ImageList:
    """Images (N, C, H, W) padded with zeros, and the original size of each."""

    tensors: Tensor
    image_sizes: list[tuple[int, int]]

    def to(self, device: torch.device) -> "ImageList":
        return ImageList(self.tensors.to(device), self.image_sizes)
