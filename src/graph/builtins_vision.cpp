// Ops of torchvision, under the names and schemas by which its programs call them.
#include <rushlight/ops.h>

#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

constexpr const char* window =
    "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width";

Tensor roi_align(const Tensor& input, const Tensor& rois, double scale, int64_t height,
                 int64_t width, int64_t sampling_ratio, bool aligned) {
  return _roi_average(input, rois, scale, height, width, sampling_ratio, aligned, "align");
}

std::pair<Tensor, Tensor> roi_pool(const Tensor& input, const Tensor& rois, double scale,
                                   int64_t height, int64_t width) {
  auto [values, places] = _roi_max(input, rois, scale, height, width);
  return {values, places};
}

// The channel that each element of a position-sensitive result has been read from.
Tensor channels_of(const Tensor& result) {
  const int64_t each = result.size(1) * result.size(2) * result.size(3);
  const Tensor channels = arange(each, TensorOptions(kInt).device(result.device()));
  return channels.view({1, result.size(1), result.size(2), result.size(3)})
      .expand(result.sizes())
      .contiguous();
}

std::pair<Tensor, Tensor> ps_roi_align(const Tensor& input, const Tensor& rois, double scale,
                                       int64_t height, int64_t width, int64_t sampling_ratio) {
  Tensor result = _roi_average(input, rois, scale, height, width, sampling_ratio, true, "ps_align");
  return {result, channels_of(result)};
}

std::pair<Tensor, Tensor> ps_roi_pool(const Tensor& input, const Tensor& rois, double scale,
                                      int64_t height, int64_t width) {
  Tensor result = _roi_average(input, rois, scale, height, width, -1, false, "ps_pool");
  return {result, channels_of(result)};
}

// torchvision has the weight before the offset, and says groups that the shapes say already.
void deform(IValue* a, size_t, IValue* out) {
  const auto pair = [&](size_t first) {
    return std::array<int64_t, 2>{a[first].toInt(), a[first + 1].toInt()};
  };
  const std::optional<Tensor> mask =
      a[13].toBool() ? std::optional<Tensor>(a[3].toTensor()) : std::nullopt;
  out[0] = IValue(deform_conv2d(a[0].toTensor(), a[2].toTensor(), a[1].toTensor(), a[4].toTensor(),
                                pair(5), pair(7), pair(9), mask));
}

}  // namespace

BuiltinRows vision_builtins() {
  return {
      {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", call_of<nms>},
      {str("torchvision::roi_align(", window, ", int sampling_ratio, bool aligned) -> Tensor"),
       call_of<roi_align>},
      {str("torchvision::roi_pool(", window, ") -> (Tensor, Tensor)"), call_of<roi_pool>},
      {str("torchvision::ps_roi_align(", window, ", int sampling_ratio) -> (Tensor, Tensor)"),
       call_of<ps_roi_align>},
      {str("torchvision::ps_roi_pool(", window, ") -> (Tensor, Tensor)"), call_of<ps_roi_pool>},
      {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor "
       "bias, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
       "int groups, int offset_groups, bool use_mask) -> Tensor",
       deform},
  };
}

}  // namespace rushlight::graph
