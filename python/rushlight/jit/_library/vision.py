"""Functions of `vision.ops` as programs: torchvision's ops, which archives call by their names."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _boxes_with_numbers(boxes: Union[Tensor, List[Tensor]]) -> Tensor:
    if isinstance(boxes, Tensor):
        return boxes
    numbered: List[Tensor] = []
    for i, own in enumerate(boxes):
        numbered.append(torch.cat([torch.full_like(own[:, :1], i), own], 1))
    return torch.cat(numbered)


def vision_nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    return ops.torchvision.nms(boxes, scores, iou_threshold)


def vision_roi_align(
    input: Tensor,
    boxes: Union[Tensor, List[Tensor]],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    return ops.torchvision.roi_align(
        *(input, _boxes_with_numbers(boxes), spatial_scale, output_size[0], output_size[1]),
        *(sampling_ratio, aligned),
    )


def vision_ps_roi_align(
    input: Tensor,
    boxes: Union[Tensor, List[Tensor]],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
) -> Tensor:
    rois, height, width = _boxes_with_numbers(boxes), output_size[0], output_size[1]
    return ops.torchvision.ps_roi_align(input, rois, spatial_scale, height, width, sampling_ratio)[
        0
    ]


def vision_roi_pool(
    input: Tensor,
    boxes: Union[Tensor, List[Tensor]],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
) -> Tensor:
    rois, height, width = _boxes_with_numbers(boxes), output_size[0], output_size[1]
    return ops.torchvision.roi_pool(input, rois, spatial_scale, height, width)[0]


def vision_ps_roi_pool(
    input: Tensor,
    boxes: Union[Tensor, List[Tensor]],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
) -> Tensor:
    rois, height, width = _boxes_with_numbers(boxes), output_size[0], output_size[1]
    return ops.torchvision.ps_roi_pool(input, rois, spatial_scale, height, width)[0]


def vision_deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    mask: Optional[Tensor] = None,
) -> Tensor:
    taps = 2 * weight.size(-2) * weight.size(-1)
    offset_groups = offset.size(1) // taps
    groups = input.size(1) // weight.size(1)
    if offset_groups == 0:
        raise RuntimeError("the shape of the offset tensor at dimension 1 is not valid")
    added = input.new_zeros([weight.size(0)]) if bias is None else bias
    factors = input.new_zeros([input.size(0), 1]) if mask is None else mask
    return ops.torchvision.deform_conv2d(
        *(input, weight, offset, factors, added, stride[0], stride[1], padding[0], padding[1]),
        *(dilation[0], dilation[1], groups, offset_groups, mask is not None),
    )
