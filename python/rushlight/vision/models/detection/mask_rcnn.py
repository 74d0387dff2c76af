"""Mask R-CNN (He 2017)."""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight import nn

from ...ops._shared import rename_layers
from ...ops.misc import Conv2dNormActivation
from ...ops.poolers import MultiScaleRoIAlign
from .. import resnet
from .._api import builder, weights_enum
from .._utils import he_normal, init_layers
from .backbone_utils import resnet50_pyramid
from .faster_rcnn import FasterRCNN, after_those_of_faster_rcnn, prepare, second_version
from .one_stage import init_convs


class MaskRCNNHeads(nn.Sequential):
    """A sequence of 3 x 3 convolutions."""

    _version = 2

    def __init__(
        self,
        in_channels: int,
        layers: Sequence[int],
        dilation: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        how: dict[str, Any] = {"padding": dilation, "dilation": dilation, "norm_layer": norm_layer}
        pairs = itertools.pairwise([in_channels, *layers])
        super().__init__(*(Conv2dNormActivation(*pair, 3, 1, **how) for pair in pairs))
        init_convs(self, he_normal)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
        # Older checkpoints call the convolutions mask_fcn1 and so on.
        names = [(f"mask_fcn{i + 1}", f"{i}.0") for i in range(len(self))]
        rename_layers(state_dict, prefix, local_metadata, names)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


class MaskRCNNPredictor(nn.Sequential):
    """Masks of all classes, upsampled twice."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int) -> None:
        layers: dict[str, nn.Module] = {
            "conv5_mask": nn.ConvTranspose2d(in_channels, dim_reduced, 2, stride=2),
            "relu": nn.ReLU(inplace=True),
            "mask_fcn_logits": nn.Conv2d(dim_reduced, num_classes, 1),
        }
        super().__init__(OrderedDict(layers))
        init_layers(self, he_normal, conv_bias=False)


class MaskRCNN(FasterRCNN):
    """`FasterRCNN` with a mask for each object: targets have "masks" (N, H, W), results (N, 1, H,
    W).

    Args:
        mask_roi_pool: cuts boxes out of maps.
        mask_head: what follows.
        mask_predictor: gives a mask for each class.

    For an example see `vision.models.detection.maskrcnn_resnet50_fpn`.
    """

    @after_those_of_faster_rcnn
    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        *args: Any,
        mask_roi_pool: Any = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        channels = backbone.out_channels
        pool = mask_roi_pool or MultiScaleRoIAlign(
            ["0", "1", "2", "3"], output_size=14, sampling_ratio=2
        )
        head = mask_head or MaskRCNNHeads(channels, (256, 256, 256, 256), 1)
        if mask_predictor is None:
            if num_classes is None:
                raise ValueError(
                    "num_classes should not be None when mask_predictor is not specified"
                )
            mask_predictor = MaskRCNNPredictor(256, 256, num_classes)
        super().__init__(backbone, num_classes, *args, **kwargs)
        self.roi_heads.mask_roi_pool = pool
        self.roi_heads.mask_head = head
        self.roi_heads.mask_predictor = mask_predictor


def _on_resnet(
    version: int,
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> MaskRCNN:
    norm = nn.BatchNorm2d if version == 2 else None
    backbone = resnet50_pyramid(
        weights_backbone, trained, trainable_backbone_layers, norm, norm_layer=norm
    )
    more: dict[str, Any] = {}
    if version == 2:
        more = second_version(backbone.out_channels)
        more["mask_head"] = MaskRCNNHeads(
            backbone.out_channels, [256] * 4, 1, norm_layer=nn.BatchNorm2d
        )
    return MaskRCNN(backbone, num_classes=num_classes, **{**more, **kwargs})


MaskRCNN_ResNet50_FPN_Weights = weights_enum("MaskRCNN_ResNet50_FPN_Weights", __name__)
MaskRCNN_ResNet50_FPN_V2_Weights = weights_enum("MaskRCNN_ResNet50_FPN_V2_Weights", __name__)
maskrcnn_resnet50_fpn = builder(
    "maskrcnn_resnet50_fpn",
    MaskRCNN_ResNet50_FPN_Weights,
    _on_resnet,
    1,
    module=__name__,
    prepare=prepare,
    backbone=resnet.ResNet50_Weights.IMAGENET1K_V1,
)
maskrcnn_resnet50_fpn_v2 = builder(
    "maskrcnn_resnet50_fpn_v2",
    MaskRCNN_ResNet50_FPN_V2_Weights,
    _on_resnet,
    2,
    module=__name__,
    prepare=prepare,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = ["MaskRCNN", *(n for n in dir() if n.startswith(("MaskRCNN_", "maskrcnn_")))]
