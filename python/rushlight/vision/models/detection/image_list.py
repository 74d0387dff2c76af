"""Images of several sizes in one tensor."""

from dataclasses import dataclass
from typing import Any

from rushlight import Tensor


@dataclass
class ImageList:
    """Images (N, C, H, W) padded with zeros, and the original size of each."""

    tensors: Tensor
    image_sizes: list[tuple[int, int]]

    def to(self, device: Any) -> "ImageList":
        return ImageList(self.tensors.to(device), self.image_sizes)
