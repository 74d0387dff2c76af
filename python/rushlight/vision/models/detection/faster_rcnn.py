"""Faster R-CNN (Ren 2015)."""

import functools
import inspect
import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from ...ops.poolers import MultiScaleRoIAlign
from .. import mobilenetv3, resnet
from .._api import Made, builder, weights_enum
from .._utils import he_normal
from . import _utils
from .anchor_utils import AnchorGenerator as AnchorGenerator
from .backbone_utils import _mobilenet_extractor, resnet50_pyramid
from .generalized_rcnn import GeneralizedRCNN
from .one_stage import init_convs
from .roi_heads import RoIHeads
from .rpn import RegionProposalNetwork, RPNHead
from .transform import COLOURS, GeneralizedRCNNTransform


class TwoMLPHead(nn.Module):
    """Two linear layers: regions (K, C, h, w) to (K, representation_size)."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions and linear layers for regions (K, C, h, w)."""

    def __init__(
        self,
        input_size: tuple[int, int, int],
        conv_layers: list[int],
        fc_layers: list[int],
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        widths = [input_size[0], *conv_layers]
        blocks: list[nn.Module] = [
            Conv2dNormActivation(*pair, norm_layer=norm_layer)
            for pair in itertools.pairwise(widths)
        ]
        blocks.append(nn.Flatten())
        for pair in itertools.pairwise([widths[-1] * math.prod(input_size[1:]), *fc_layers]):
            blocks += [nn.Linear(*pair), nn.ReLU(inplace=True)]
        super().__init__(*blocks)
        init_convs(self, he_normal)


class FastRCNNPredictor(nn.Module):
    """Scores (K, num_classes) and box deltas (K, 4 * num_classes)."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.flatten(1)
        return self.cls_score(x), self.bbox_pred(x)


def _default_anchorgen() -> AnchorGenerator:
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), ((0.5, 1.0, 2.0),) * 5)


class FasterRCNN(GeneralizedRCNN):
    """Faster R-CNN: boxes of objects and their classes; class 0 is the background.

    The backbone has `out_channels` and gives one map or a dict of them. Instead of num_classes
    there may be a box_predictor of one's own.

    Args:
        backbone: gives maps of an image; it has `out_channels`.
        num_classes: classes, with the background.
        min_size: the shorter side of images, which are resized; several: one is drawn in training.
        max_size: the longer side at most.
        image_mean, image_std: of the channels; those of ImageNet if None.
        rpn_anchor_generator: makes the boxes that proposals begin with; `AnchorGenerator`.
        rpn_head: scores and moves them; `RPNHead`.
        rpn_pre_nms_top_n_train, rpn_pre_nms_top_n_test: boxes that are kept before overlapping ones
            go.
        rpn_post_nms_top_n_train, rpn_post_nms_top_n_test: proposals that are kept after that.
        rpn_nms_thresh: overlap from which the worse of two proposals goes.
        rpn_fg_iou_thresh, rpn_bg_iou_thresh: overlap with a thing from which, and up to which, a
            box learns to be one, or none.
        rpn_batch_size_per_image: boxes of an image that learn.
        rpn_positive_fraction: share of things among them.
        rpn_score_thresh: proposals of lower scores go.
        box_roi_pool: cuts proposals out of maps; `MultiScaleRoIAlign`.
        box_head: what follows.
        box_predictor: gives scores of classes and moves of boxes.
        box_score_thresh: boxes of lower scores go.
        box_nms_thresh: overlap from which the worse of two boxes of a class goes.
        box_detections_per_img: boxes of an image at most.
        box_fg_iou_thresh, box_bg_iou_thresh: as of proposals.
        box_batch_size_per_image: proposals of an image that learn.
        box_positive_fraction: share of things among them.
        bbox_reg_weights: factors of the moves along x, y, width and height.
        kwargs: those of `GeneralizedRCNNTransform`.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int | None = None,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        rpn_anchor_generator: Any = None,
        rpn_head: nn.Module | None = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        box_roi_pool: Any = None,
        box_head: nn.Module | None = None,
        box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: tuple[float, float, float, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if not hasattr(backbone, "out_channels"):
            raise ValueError(
                "backbone should contain an attribute out_channels: how many channels each of its "
                "maps has"
            )
        if (num_classes is None) == (box_predictor is None):
            raise ValueError(
                "num_classes should not be None when box_predictor is not specified"
                if num_classes is None
                else "num_classes should be None when box_predictor is specified"
            )
        channels = backbone.out_channels
        anchors = rpn_anchor_generator or _default_anchorgen()
        head = rpn_head or RPNHead(channels, anchors.num_anchors_per_location()[0])
        rpn = RegionProposalNetwork(
            *(anchors, head, rpn_fg_iou_thresh, rpn_bg_iou_thresh),
            *(rpn_batch_size_per_image, rpn_positive_fraction),
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh,
            score_thresh=rpn_score_thresh,
        )
        pool = box_roi_pool or MultiScaleRoIAlign(
            ["0", "1", "2", "3"], output_size=7, sampling_ratio=2
        )
        if box_head is None:
            box_head = TwoMLPHead(channels * pool.output_size[0] ** 2, 1024)
        if box_predictor is None:
            assert num_classes is not None
            box_predictor = FastRCNNPredictor(1024, num_classes)
        heads = RoIHeads(
            *(pool, box_head, box_predictor, box_fg_iou_thresh, box_bg_iou_thresh),
            *(box_batch_size_per_image, box_positive_fraction, bbox_reg_weights),
            *(box_score_thresh, box_nms_thresh, box_detections_per_img),
        )
        colours = image_mean or COLOURS[0], image_std or COLOURS[1]
        super().__init__(
            backbone, rpn, heads, GeneralizedRCNNTransform(min_size, max_size, *colours, **kwargs)
        )


def after_those_of_faster_rcnn(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor of a subclass that takes `FasterRCNN`'s arguments, then its own.

    Its first arguments may have other defaults; all can be given by position.
    """
    before = inspect.signature(FasterRCNN.__init__).parameters
    own = inspect.signature(init).parameters
    shown = {name: own.get(name, p) for name, p in before.items() if p.kind is not p.VAR_KEYWORD}
    for name, p in own.items():
        if p.kind is p.KEYWORD_ONLY:
            shown[name] = p.replace(kind=p.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([*shown.values(), before["kwargs"]])

    @functools.wraps(init)
    def inner(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        more = given.pop("kwargs", {})
        init(**given, **more)

    inner.__signature__ = signature  # type: ignore[attr-defined]
    return inner


def prepare(weights: Any, kwargs: dict[str, Any]) -> Callable[[Any], None] | None:
    """`whole_weights`; norms of the first weights had no epsilon."""
    _utils.whole_weights(weights, kwargs)
    first = weights is not None and weights.name == "COCO_V1"
    return partial(_utils.overwrite_eps, eps=0.0) if first else None


def second_version(channels: int) -> dict[str, Any]:
    """Heads of the second version: normalised, deeper."""
    anchors = _default_anchorgen()
    return {
        "rpn_anchor_generator": anchors,
        "rpn_head": RPNHead(channels, anchors.num_anchors_per_location()[0], conv_depth=2),
        "box_head": FastRCNNConvFCHead(
            (channels, 7, 7), [256] * 4, [1024], norm_layer=nn.BatchNorm2d
        ),
    }


def _on_resnet(
    version: int,
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    norm = nn.BatchNorm2d if version == 2 else None
    backbone = resnet50_pyramid(
        weights_backbone, trained, trainable_backbone_layers, norm, norm_layer=norm
    )
    more = second_version(backbone.out_channels) if version == 2 else {}
    return FasterRCNN(backbone, num_classes=num_classes, **{**more, **kwargs})


def _on_mobilenet(
    small: bool,
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> FasterRCNN:
    trained = trained or weights_backbone is not None
    trainable = _utils.training_layers(trained, trainable_backbone_layers, 6, 3)
    norm = FrozenBatchNorm2d if trained else nn.BatchNorm2d
    network = mobilenetv3.mobilenet_v3_large(weights=weights_backbone, norm_layer=norm)
    backbone = _mobilenet_extractor(network, True, trainable)
    usual: dict[str, Any] = {"rpn_score_thresh": 0.05}
    if small:
        usual |= {"min_size": 320, "max_size": 640}
        usual |= {"rpn_pre_nms_top_n_test": 150, "rpn_post_nms_top_n_test": 150}
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return FasterRCNN(backbone, num_classes, rpn_anchor_generator=anchors, **{**usual, **kwargs})


def _make(
    name: str, title: str, backbone: Any, make: Callable[..., FasterRCNN], *settings: Any
) -> Made[FasterRCNN]:
    weights = weights_enum(
        f"FasterRCNN_{title}_FPN{'_V2' if name.endswith('v2') else ''}_Weights", __name__
    )
    return weights, builder(
        name, weights, make, *settings, module=__name__, prepare=prepare, backbone=backbone
    )


_RESNET = resnet.ResNet50_Weights.IMAGENET1K_V1
_MOBILENET = mobilenetv3.MobileNet_V3_Large_Weights.IMAGENET1K_V1
FasterRCNN_ResNet50_FPN_Weights, fasterrcnn_resnet50_fpn = _make(
    "fasterrcnn_resnet50_fpn", "ResNet50", _RESNET, _on_resnet, 1
)
FasterRCNN_ResNet50_FPN_V2_Weights, fasterrcnn_resnet50_fpn_v2 = _make(
    "fasterrcnn_resnet50_fpn_v2", "ResNet50", None, _on_resnet, 2
)
FasterRCNN_MobileNet_V3_Large_FPN_Weights, fasterrcnn_mobilenet_v3_large_fpn = _make(
    "fasterrcnn_mobilenet_v3_large_fpn", "MobileNet_V3_Large", _MOBILENET, _on_mobilenet, False
)
FasterRCNN_MobileNet_V3_Large_320_FPN_Weights, fasterrcnn_mobilenet_v3_large_320_fpn = _make(
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "MobileNet_V3_Large_320",
    _MOBILENET,
    _on_mobilenet,
    True,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = ["FasterRCNN", *(n for n in dir() if n.startswith(("FasterRCNN_", "fasterrcnn_")))]
