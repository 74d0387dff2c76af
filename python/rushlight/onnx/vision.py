"""Lowerings of torchvision's ops."""

from __future__ import annotations

from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


@lowers("rushlight._roi_average.default")
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
    return g.RoiAlign(
        input,
        g.slice(rois, 1, 1, 5),
        g.int64(g.squeeze(g.slice(rois, 1, 0, 1), 1)),
        spatial_scale=spatial_scale,
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )
