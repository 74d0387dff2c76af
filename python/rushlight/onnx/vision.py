"""Lowerings of torchvision's ops."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.index import sizes_of_values


@lowers("torchvision.nms.default")
def nms(g: Builder, dets: Value, scores: Value, iou_threshold: float) -> Value:
    sizes_of_values(g)
    found = g.NonMaxSuppression(
        g.unsqueeze(dets, 0),
        g.unsqueeze(scores, 0, 1),
        g.int64([2**31 - 1]),
        g.constant([iou_threshold], rushlight.float32),
        dtype=rushlight.int64,
    )
    return g.Gather(found, g.int64(2), axis=1)


@lowers("torchvision.roi_align.default")
def roi_align(
    g: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    batch = g.squeeze(g.slice(rois, 1, 0, 1), 1)
    return g.RoiAlign(
        input,
        g.slice(rois, 1, 1, 5),
        g.int64(batch),
        spatial_scale=spatial_scale,
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )


@lowers("torchvision.roi_pool.default")
def roi_pool(
    g: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Value, Any]:
    if g.since(22):
        raise Unsupported("MaxRoiPool of a version that runtimes lack")
    pooled = g.MaxRoiPool(
        input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale
    )
    return pooled, None
