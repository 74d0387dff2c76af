"""Ops of computer vision: boxes, regions of interest, deformable convolution, blocks and losses."""

# ruff: noqa: F401  # its modules and what they hold are names of the package

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from . import boxes, misc, poolers
from .boxes import (
    batched_nms as batched_nms,
    box_area as box_area,
    box_convert as box_convert,
    box_iou as box_iou,
    clip_boxes_to_image as clip_boxes_to_image,
    complete_box_iou as complete_box_iou,
    distance_box_iou as distance_box_iou,
    generalized_box_iou as generalized_box_iou,
    masks_to_boxes as masks_to_boxes,
    nms as nms,
    remove_small_boxes as remove_small_boxes,
)
from .deform_conv import DeformConv2d as DeformConv2d, deform_conv2d as deform_conv2d
from .dropping import (
    DropBlock2d as DropBlock2d,
    DropBlock3d as DropBlock3d,
    StochasticDepth as StochasticDepth,
    drop_block2d as drop_block2d,
    drop_block3d as drop_block3d,
    stochastic_depth as stochastic_depth,
)
from .feature_pyramid_network import FeaturePyramidNetwork as FeaturePyramidNetwork
from .losses import (
    complete_box_iou_loss as complete_box_iou_loss,
    distance_box_iou_loss as distance_box_iou_loss,
    generalized_box_iou_loss as generalized_box_iou_loss,
    sigmoid_focal_loss as sigmoid_focal_loss,
)
from .misc import (
    MLP as MLP,
    Conv2dNormActivation as Conv2dNormActivation,
    Conv3dNormActivation as Conv3dNormActivation,
    FrozenBatchNorm2d as FrozenBatchNorm2d,
    Permute as Permute,
    SqueezeExcitation as SqueezeExcitation,
)
from .poolers import MultiScaleRoIAlign as MultiScaleRoIAlign
from .rois import (
    PSRoIAlign as PSRoIAlign,
    PSRoIPool as PSRoIPool,
    RoIAlign as RoIAlign,
    RoIPool as RoIPool,
    ps_roi_align as ps_roi_align,
    ps_roi_pool as ps_roi_pool,
    roi_align as roi_align,
    roi_pool as roi_pool,
)

_describe_forwards(globals())
