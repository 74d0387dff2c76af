"""Detectors of two stages: proposals, then classification of their regions."""

from typing import Any

import rushlight as torch
from rushlight import Tensor, nn

from . import _utils

__all__ = ["GeneralizedRCNN"]


class GeneralizedRCNN(nn.Module):
    """A list of images (C, H, W) to a list of dicts; in training, with targets, to a dict of
    losses. Compiled by `jit.script` it gives both, the losses first.

    Args:
        backbone: gives maps of images.
        rpn: gives proposals.
        roi_heads: makes results of proposals.
        transform: what is done to images before, and to results after.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """

    def __init__(
        self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module
    ) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    @torch.jit.unused
    def eager_outputs(self, losses: dict[str, Tensor], detections: list[dict[str, Tensor]]) -> Any:
        """The result of the model: losses in training, detections in evaluation."""
        return losses if self.training else detections

    def forward(
        self, images: list[Tensor], targets: list[dict[str, Tensor]] | None = None
    ) -> tuple[dict[str, Tensor], list[dict[str, Tensor]]]:
        """Losses in training, a dict of boxes, scores and labels for each image in evaluation."""
        if self.training:
            _utils.check_targets(targets)
        batch, wanted = self.transform(images, targets)
        out = self.backbone(batch.tensors)
        maps = {"0": out} if isinstance(out, Tensor) else out
        proposals, losses = self.rpn(batch, maps, wanted)
        found, all_losses = self.roi_heads(maps, proposals, batch.image_sizes, wanted)
        all_losses.update(losses)
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        shown = self.transform.postprocess(found, batch.image_sizes, sizes)
        if torch.jit.is_scripting():
            return all_losses, shown
        return self.eager_outputs(all_losses, shown)
