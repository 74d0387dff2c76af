"""Images of several sizes in one tensor."""

from dataclasses import dataclass
from typing import Any

from rushlight import Tensor


@dataclass
class ImageList:
    """Images (N, C, H, W) filled up with zeros, and the size that each has of its own."""

    tensors: Tensor
    image_sizes: list[tuple[int, int]]

    def to(self, device: Any) -> "ImageList":
        return ImageList(self.tensors.to(device), self.image_sizes)
