"""Detectors of two stages: proposals, then classification of their regions."""

from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn

from . import _utils


class GeneralizedRCNN(nn.Module):
    """A list of images (C, H, W) to a list of dicts; in training, with targets, to a dict of
    losses.
    """

    def __init__(
        self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module
    ) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    def eager_outputs(self, losses: dict[str, Tensor], detections: list[dict[str, Tensor]]) -> Any:
        """The result of the model: losses in training, detections in evaluation."""
        return losses if self.training else detections

    def forward(self, images: list[Tensor], targets: list[dict[str, Tensor]] | None = None) -> Any:
        if self.training:
            _utils.check_targets(targets)
        batch, wanted = self.transform(images, targets)
        maps = self.backbone(batch.tensors)
        maps = OrderedDict({"0": maps}) if isinstance(maps, Tensor) else maps
        proposals, losses = self.rpn(batch, maps, wanted)
        found, more = self.roi_heads(maps, proposals, batch.image_sizes, wanted)
        sizes = [tuple(image.shape[-2:]) for image in images]
        shown = self.transform.postprocess(found, batch.image_sizes, sizes)
        return self.eager_outputs({**more, **losses}, shown)
