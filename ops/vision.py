"""What detectors compute over boxes of images, convolution at offset places, colours of pictures.

Kernels stand in src/cpu/isa/image/ (boxes.cpp, rois.cpp, deform.cpp, colours.cpp) and in
src/cpu/planes.cpp; rushlight.vision.ops and rushlight.vision.transforms have the functions that
people call. Boxes that an image is read in name it by number in their first column.
"""

from gen.table import composite, custom, dynamic, op

_NUMBERED = "slices: boxes name their images by number"

op("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", kernel=dynamic(place="isa"),
   variants="function", python="nn", grad="none", own=True, autocast="float32",
   doc="Indices of the boxes (N, 4) that no box of a higher score overlaps by more than "
       "iou_threshold and remains itself, by falling scores (N); equal scores in the order given.",
   batch="refused: the results of slices differ in size")

# ---- boxes as windows of any size ----

_how = "spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned, mode"
_HOW = ("float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool "
        "aligned, str mode")
op(f"_roi_average(Tensor input, Tensor rois, {_HOW}) -> Tensor",
   kernel=custom(), variants="function", python="nn", own=True, autocast="float32",
   grad={"input": f"_roi_average_backward(grad, rois, input.sizes(), {_how})"},
   doc="Means of the bins that boxes (K, 5) are cut into. Modes: 'align' takes them over samples "
       "between the pixels, 'ps_align' too, each bin from a channel of its own, 'ps_pool' over "
       "whole pixels of a channel of its own.",
   jvp=f"_roi_average(input_t, rois, {_how})", batch=_NUMBERED)
op(f"_roi_average_backward(Tensor grad_output, Tensor rois, Size[] input_size, {_HOW}) -> Tensor",
   kernel=custom(), variants="function", python="nn", own=True, autocast="float32",
   grad={"grad_output": f"_roi_average(grad, rois, {_how})"},
   doc="Derivative of `_roi_average`: spreads gradients over the pixels that bins read.",
   jvp=f"_roi_average_backward(grad_output_t, rois, input_size, {_how})", batch=_NUMBERED)
op("_roi_max(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) "
   "-> (Tensor values, Tensor indices)",
   kernel=custom(), variants="function", python="nn", own=True, autocast="float32",
   nondiff=("indices",),
   grad={"input": "_roi_max_backward(grad_values, rois, indices, input.sizes())"},
   doc="The largest pixel of each bin that boxes (K, 5) are cut into, and its place in the plane; "
       "0 and -1 for a bin without pixels.",
   jvp="boxes_at(input_t, rois, indices)", batch=_NUMBERED)
op("_roi_max_backward(Tensor grad_output, Tensor rois, Tensor indices, Size[] input_size) -> "
   "Tensor", kernel=custom(), variants="function", python="nn", own=True, autocast="float32",
   grad={"grad_output": "boxes_at(grad, rois, indices)"},
   doc="Derivative of `_roi_max`: adds gradients at the places of the largest pixels.",
   jvp="_roi_max_backward(grad_output_t, rois, indices, input_size)", batch=_NUMBERED)

# ---- convolution at offset places ----

_how = "kernel_size, stride, padding, dilation"
_HOW = "int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation"
op(f"_deform_columns(Tensor input, Tensor offset, Tensor? factor, {_HOW}) -> Tensor",
   kernel=custom(), variants="function", python="nn", own=True, autocast="float32",
   grad={"input, offset, factor": f"deform_columns_gradients(grad, input, offset, factor, {_how}, "
                                  "mask)"},
   doc="What windows see whose taps are moved by offset (pairs of rows and columns) and multiplied "
       "by factor: (N, C * taps, windows).",
   jvp={"input": f"_deform_columns(input_t, offset, factor, {_how})",
        "offset": f"deform_columns_tangent(offset_t, input, offset, factor, {_how})",
        "factor": f"_deform_columns(input, offset, factor_t, {_how})"},
   batch="slices: the taps of an image may have no factors")
op(f"_deform_columns_backward(Tensor grad_output, Tensor input, Tensor offset, Tensor? factor, "
   f"{_HOW}) -> (Tensor grad_input, Tensor grad_offset, Tensor grad_factor)",
   kernel=custom(), variants="function", python="nn", own=True, grad="missing", autocast="float32",
   doc="The gradients of `_deform_columns`.",
   batch="slices: the taps of an image may have no factors")
composite("deform_conv2d(Tensor input, Tensor offset, Tensor weight, Tensor? bias=None, int[2] "
          "stride=1, int[2] padding=0, int[2] dilation=1, Tensor? mask=None) -> Tensor",
          variants="function", python="nn", own=True, autocast="float32",
          doc="Convolution of images (N, C, H, W) whose taps are moved by offset (N, 2 * groups * "
              "kernel's size, H', W') and multiplied by mask (N, groups * kernel's size, H', W').")

# ---- pictures in the memory of Pillow ----

op("_adjust_pixels(Tensor self, str change, float factor) -> Tensor", kernel=custom(),
   variants="function out", grad="none", own=True,
   doc="The colours of a picture of bytes (H, W, 1) or (H, W, 4), whose last channel stays, bit "
       "for bit as Pillow changes them. Changes: 'brightness', 'contrast' and 'saturation' by a "
       "factor that is 1 for the picture itself; 'hue' by a share of the circle. Grey has neither "
       "saturation nor hue.",
   batch="slices: pictures one by one")
op("_planes_of_pixels(Tensor self, Tensor table, bool mirrored=False) -> Tensor",
   kernel=custom(place="once"), variants="function out", grad="none", own=True,
   doc="A picture of bytes (H, W, 1) or (H, W, 4) as planes (C, H, W): of byte v of channel c "
       "table[c, v], where table is (1, 256), or (3, 256) or (4, 256) for pixels of four bytes, of "
       "any dtype. Mirrored: left and right exchanged.",
   batch="slices: pictures one by one")
