"""Keypoint R-CNN (He 2017)."""

from collections.abc import Sequence
from typing import Any

import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops.poolers import MultiScaleRoIAlign
from .. import resnet
from .._api import builder, overwrite, weights_enum
from .._utils import he_normal
from .backbone_utils import resnet50_pyramid
from .faster_rcnn import FasterRCNN, after_those_of_faster_rcnn, prepare


def _init(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            he_normal(parameter)
        else:
            nn.init.zeros_(parameter)


class KeypointRCNNHeads(nn.Sequential):
    """A sequence of 3 x 3 convolutions."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        blocks: list[nn.Module] = []
        for channels in layers:
            blocks += [nn.Conv2d(in_channels, channels, 3, 1, 1), nn.ReLU(inplace=True)]
            in_channels = channels
        super().__init__(*blocks)
        _init(self)


class KeypointRCNNPredictor(nn.Module):
    """Heatmaps of all keypoints, upsampled four times."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, 2, 1)
        _init(self)
        self.up_scale, self.out_channels = 2, num_keypoints

    def forward(self, x: Tensor) -> Tensor:
        x = self.kps_score_lowres(x)
        return F.interpolate(
            x,
            scale_factor=float(self.up_scale),
            mode="bilinear",
            align_corners=False,
            recompute_scale_factor=False,
        )


class KeypointRCNN(FasterRCNN):
    """`FasterRCNN` with keypoints of each thing: "keypoints" (N, K, 3) of x, y and whether it is
    seen.

    Args:
        keypoint_roi_pool: cuts boxes out of maps.
        keypoint_head: what follows.
        keypoint_predictor: gives a heat map for each keypoint.
        num_keypoints: keypoints of a thing.

    For an example see `vision.models.detection.keypointrcnn_resnet50_fpn`.
    """

    @after_those_of_faster_rcnn
    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        min_size: Any = None,
        *args: Any,
        keypoint_roi_pool: Any = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
        num_keypoints: int | None = None,
        **kwargs: Any,
    ) -> None:
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        min_size = (640, 672, 704, 736, 768, 800) if min_size is None else min_size
        pool = keypoint_roi_pool or MultiScaleRoIAlign(
            ["0", "1", "2", "3"], output_size=14, sampling_ratio=2
        )
        head = keypoint_head or KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(
                512, 17 if num_keypoints is None else num_keypoints
            )
        super().__init__(backbone, num_classes, min_size, *args, **kwargs)
        self.roi_heads.keypoint_roi_pool = pool
        self.roi_heads.keypoint_head = head
        self.roi_heads.keypoint_predictor = keypoint_predictor


def _on_resnet(
    num_classes: int = 2,
    num_keypoints: int = 17,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> KeypointRCNN:
    backbone = resnet50_pyramid(weights_backbone, trained, trainable_backbone_layers)
    return KeypointRCNN(backbone, num_classes, num_keypoints=num_keypoints, **kwargs)


def _prepare(weights: Any, kwargs: dict[str, Any]):
    if kwargs.get("num_classes") is None:
        kwargs["num_classes"] = 2
    if weights is not None:
        overwrite(kwargs, "num_keypoints", len(weights.meta["keypoint_names"]))
    return prepare(weights, kwargs)


KeypointRCNN_ResNet50_FPN_Weights = weights_enum("KeypointRCNN_ResNet50_FPN_Weights", __name__)
keypointrcnn_resnet50_fpn = builder(
    "keypointrcnn_resnet50_fpn",
    KeypointRCNN_ResNet50_FPN_Weights,
    _on_resnet,
    module=__name__,
    prepare=_prepare,
    backbone=resnet.ResNet50_Weights.IMAGENET1K_V1,
)

__all__ = ["KeypointRCNN", "KeypointRCNN_ResNet50_FPN_Weights", "keypointrcnn_resnet50_fpn"]
