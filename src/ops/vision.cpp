// The contracts of ops over boxes of images, of convolution at offset places and of colours of
// pictures.
#include <cmath>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/pictures.h"

namespace rushlight {

namespace {

constexpr int64_t largest = int64_t{1} << 30;  // places in a plane are counted in 32 bits

void check_plane(const char* op, IntArrayRef sizes) {
  const int64_t rows = sizes[2];
  const int64_t columns = sizes[3];
  RL_CHECK(rows < largest && columns < largest && (columns == 0 || rows < largest / columns), op,
           ": the image is too large");
}

void check_rois(const char* op, const Tensor& input, const Tensor& rois, int64_t height,
                int64_t width) {
  RL_CHECK(rois.dim() == 2 && rois.size(1) == 5, op,
           ": rois must have shape as Tensor[K, 5], but got sizes ", rois.sizes());
  RL_CHECK(input.dtype() == rois.dtype(),
           "Expected tensor for argument #1 'input' to have the "
           "same type as tensor for argument #2 'rois'; but type ",
           input.dtype(), " does not equal ", rois.dtype(), " (while checking arguments for ", op,
           ")");
  check_floating(op, input);
  RL_CHECK(height > 0 && width > 0 && height < 32768 && width < 32768, op,
           ": the output's size must be positive and below 32768, but got ", height, " by ", width);
}

void check_image(const char* op, const Tensor& input) {
  RL_CHECK(input.dim() == 4, op, ": expected images (N, C, H, W), but got sizes ", input.sizes());
  check_plane(op, input.sizes());
}

// Channels of the result.
int64_t output_channels(std::string_view mode, int64_t channels, int64_t bins) {
  RL_CHECK_VALUE(mode == "align" || mode == "ps_align" || mode == "ps_pool", "rois: mode '", mode,
                 "' is not 'align', 'ps_align' or 'ps_pool'");
  RL_CHECK(mode == "align" || channels % bins == 0,
           "input channels must be a multiple of pooling height * pooling width");
  return mode == "align" ? channels : channels / bins;
}

const char* name_of(std::string_view mode) {
  return mode == "align" ? "roi_align" : mode == "ps_align" ? "ps_roi_align" : "ps_roi_pool";
}

void check_sampling(int64_t ratio) {
  RL_CHECK(ratio < 32768, "rois: sampling_ratio must be below 32768, but got ", ratio);
}

}  // namespace

namespace shape {

OutSpec _roi_average(Tensor& input, Tensor& rois, double&, int64_t& height, int64_t& width,
                     int64_t& sampling_ratio, bool&, std::string& mode) {
  const char* op = name_of(mode);
  check_image(op, input);
  check_rois(op, input, rois, height, width);
  check_sampling(sampling_ratio);
  const int64_t channels = output_channels(mode, input.size(1), height * width);
  input = contiguous_raw(input);
  rois = contiguous_raw(rois);
  return {{rois.size(0), channels, height, width}, input.dtype()};
}

OutSpec _roi_average_backward(Tensor& grad, Tensor& rois, DimVector& input_size, double&,
                              int64_t& height, int64_t& width, int64_t& sampling_ratio, bool&,
                              std::string& mode) {
  RL_CHECK(input_size.size() == 4 && input_size[0] >= 0 && input_size[1] >= 0 &&
               input_size[2] >= 0 && input_size[3] >= 0,
           "roi_align backward: expected the sizes of images, but got ", input_size);
  check_plane("roi_align backward", input_size);
  check_rois("roi_align backward", grad, rois, height, width);
  check_sampling(sampling_ratio);
  const int64_t channels = output_channels(mode, input_size[1], height * width);
  const DimVector sizes = {rois.size(0), channels, height, width};
  RL_CHECK(grad.sizes() == IntArrayRef(sizes), "roi_align backward: the gradient of shape ",
           grad.sizes(), " does not belong to boxes of shape ", sizes);
  grad = contiguous_raw(grad);
  rois = contiguous_raw(rois);
  return {input_size, grad.dtype()};
}

OutSpecs<2> _roi_max(Tensor& input, Tensor& rois, double&, int64_t& height, int64_t& width) {
  check_image("roi_pool", input);
  check_rois("roi_pool", input, rois, height, width);
  input = contiguous_raw(input);
  rois = contiguous_raw(rois);
  const DimVector sizes = {rois.size(0), input.size(1), height, width};
  return {OutSpec{sizes, input.dtype()}, OutSpec{sizes, kInt64}};
}

OutSpec _roi_max_backward(Tensor& grad, Tensor& rois, Tensor& indices, DimVector& input_size) {
  RL_CHECK(grad.dim() == 4 && input_size.size() == 4 && input_size[0] >= 0 && input_size[2] >= 0 &&
               input_size[3] >= 0 && grad.size(1) == input_size[1] &&
               grad.size(0) == rois.size(0) && grad.sizes() == indices.sizes() &&
               indices.dtype() == kInt64,
           "roi_pool backward: the gradient of shape ", grad.sizes(),
           " does not belong to images of shape ", input_size);
  check_plane("roi_pool backward", input_size);
  check_rois("roi_pool backward", grad, rois, std::max<int64_t>(grad.size(2), 1),
             std::max<int64_t>(grad.size(3), 1));
  grad = contiguous_raw(grad);
  rois = contiguous_raw(rois);
  indices = contiguous_raw(indices);
  return {input_size, grad.dtype()};
}

OutSpec _adjust_pixels(Tensor& self, std::string& change, double& factor) {
  check_picture("adjust_pixels", self);
  RL_CHECK_VALUE(
      change == "brightness" || change == "contrast" || change == "saturation" || change == "hue",
      "adjust_pixels: brightness, contrast, saturation or hue, not '", change, "'");
  RL_CHECK_VALUE(change == "hue" ? factor >= -1 && factor <= 1 : std::isfinite(factor),
                 "adjust_pixels: ", change, " cannot be changed by ", factor);
  self = contiguous_raw(self);
  return {self.sizes(), kUInt8};
}

OutSpec _planes_of_pixels(Tensor& self, Tensor& table, bool&) {
  check_picture("planes_of_pixels", self);
  const int64_t lanes = self.size(2);
  RL_CHECK(table.dim() == 2 && table.size(1) == 256 &&
               (table.size(0) == 1 || (lanes == 4 && (table.size(0) == 3 || table.size(0) == 4))),
           "planes_of_pixels: the table of pixels of ", lanes, " bytes cannot have sizes ",
           table.sizes());
  self = with_contiguous_rows(self);
  table = contiguous_raw(table);
  return {{table.size(0), self.size(0), self.size(1)}, table.dtype()};
}

}  // namespace shape

// The pixels of images at places in the planes of boxes' images; 0 where a place is -1.
Tensor boxes_at(const Tensor& images, const Tensor& rois, const Tensor& indices) {
  const Tensor planes = images.index_select(0, rois.select(1, 0).to(kInt64)).flatten(2, 3);
  if (planes.size(2) == 0) {
    return zeros(indices.sizes(), images.options());
  }
  const Tensor values = planes.gather(2, indices.flatten(2, 3).clamp_min(0)).view(indices.sizes());
  return values.masked_fill(indices.lt(0), 0);
}

// ---- convolution at offset places ----

namespace {

constexpr const char* deform = "deform_conv2d";

DimVector output_windows(const Tensor& input, const Tensor& offset, const Tensor& factor,
                         IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                         IntArrayRef dilation) {
  RL_CHECK(input.dim() == 4 && offset.dim() == 4 && (!factor.defined() || factor.dim() == 4),
           deform, ": input, offset and mask have four dimensions, but got sizes ", input.sizes(),
           " and ", offset.sizes());
  for (const IntArrayRef list : {kernel, stride, padding, dilation}) {
    RL_CHECK(list.size() == 2, deform,
             ": kernel's size, stride, padding and dilation are two "
             "numbers each, but got ",
             list);
  }
  check_plane(deform, input.sizes());
  check_floating(deform, input);
  RL_CHECK(
      input.dtype() == offset.dtype() && (!factor.defined() || factor.dtype() == input.dtype()),
      deform, ": expected input, offset and mask to have the same dtype, but got ", input.dtype(),
      " and ", offset.dtype());
  DimVector windows;
  for (size_t d = 0; d < 2; d++) {
    RL_CHECK(kernel[d] > 0 && kernel[d] < largest, "weight_h: ", kernel[0],
             " weight_w: ", kernel[1]);
    RL_CHECK(stride[d] > 0, "stride_h: ", stride[0], " stride_w: ", stride[1]);
    RL_CHECK(padding[d] >= 0 && padding[d] < largest, "pad_h: ", padding[0],
             " pad_w: ", padding[1]);
    RL_CHECK(dilation[d] > 0 && dilation[d] < largest, "dil_h: ", dilation[0],
             " dil_w: ", dilation[1]);
    const int64_t room = input.size(static_cast<int64_t>(d) + 2) + 2 * padding[d] -
                         (dilation[d] * (kernel[d] - 1) + 1);
    RL_CHECK(room >= 0, "Calculated output size too small - kernel ", kernel, " of images ",
             input.sizes());
    windows.push_back(room / stride[d] + 1);
  }
  const int64_t taps = kernel[0] * kernel[1];
  RL_CHECK(offset.size(1) >= 2 * taps && offset.size(1) % (2 * taps) == 0, deform,
           ": offset at dimension 1 is not valid: expected two numbers for each tap of the kernel, "
           "a multiple of ",
           2 * taps, ", but got ", offset.size(1));
  const int64_t groups = offset.size(1) / (2 * taps);
  RL_CHECK(input.size(1) % groups == 0, deform, ": ", input.size(1),
           " channels are no multiple of the ", groups, " groups of offset");
  RL_CHECK(offset.size(0) == input.size(0), "invalid batch size of offset");
  RL_CHECK(offset.size(2) == windows[0] && offset.size(3) == windows[1], "offset output dims: (",
           offset.size(2), ", ", offset.size(3), ") - computed output dims: (", windows[0], ", ",
           windows[1], ")");
  if (factor.defined()) {
    RL_CHECK(factor.size(1) == groups * taps, "mask.shape[1] is not valid: got: ", factor.size(1),
             " expected: ", groups * taps);
    RL_CHECK(factor.size(0) == input.size(0), "invalid batch size of mask");
    RL_CHECK(factor.size(2) == windows[0] && factor.size(3) == windows[1], "mask output dims: (",
             factor.size(2), ", ", factor.size(3), ") - computed output dims: (", windows[0], ", ",
             windows[1], ")");
  }
  return {input.size(0), input.size(1) * taps, windows[0] * windows[1]};
}

}  // namespace

namespace shape {

OutSpec _deform_columns(Tensor& input, Tensor& offset, Tensor& factor, DimVector& kernel,
                        DimVector& stride, DimVector& padding, DimVector& dilation) {
  const DimVector sizes = output_windows(input, offset, factor, kernel, stride, padding, dilation);
  input = contiguous_raw(input);
  offset = contiguous_raw(offset);
  factor = factor.defined() ? contiguous_raw(factor) : factor;
  return {sizes, input.dtype()};
}

OutSpecs<3> _deform_columns_backward(Tensor& grad, Tensor& input, Tensor& offset, Tensor& factor,
                                     DimVector& kernel, DimVector& stride, DimVector& padding,
                                     DimVector& dilation) {
  const DimVector sizes = output_windows(input, offset, factor, kernel, stride, padding, dilation);
  RL_CHECK(grad.sizes() == IntArrayRef(sizes) && grad.dtype() == input.dtype(),
           "deform_conv2d backward: the gradient of shape ", grad.sizes(),
           " does not belong to columns of shape ", sizes);
  grad = contiguous_raw(grad);
  input = contiguous_raw(input);
  offset = contiguous_raw(offset);
  factor = factor.defined() ? contiguous_raw(factor) : factor;
  const DimVector none = {0};
  return {OutSpec{input.sizes(), input.dtype()}, OutSpec{offset.sizes(), input.dtype()},
          OutSpec{factor.defined() ? DimVector(factor.sizes()) : none, input.dtype()}};
}

}  // namespace shape

std::tuple<Tensor, Tensor, Tensor> deform_columns_gradients(
    const Tensor& grad, const Tensor& input, const Tensor& offset, const Tensor& factor,
    IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
    std::array<bool, 3> mask) {
  const auto [of_input, of_offset, of_factor] =
      _deform_columns_backward(grad, input, offset, factor, kernel, stride, padding, dilation);
  return {mask[0] ? of_input : Tensor(), mask[1] ? of_offset : Tensor(),
          mask[2] && factor.defined() ? of_factor : Tensor()};
}

Tensor composite::deform_conv2d(const Tensor& input, const Tensor& offset, const Tensor& weight,
                                const Tensor& bias, IntArrayRef stride, IntArrayRef padding,
                                IntArrayRef dilation, const Tensor& mask) {
  RL_CHECK(weight.dim() == 4 && input.dim() == 4,
           "deform_conv2d: input and weight have four dimensions, but got sizes ", input.sizes(),
           " and ", weight.sizes());
  const int64_t inputs = weight.size(1);
  RL_CHECK(inputs > 0 && input.size(1) % inputs == 0 && input.size(1) > 0 &&
               weight.size(0) % (input.size(1) / inputs) == 0,
           "deform_conv2d: a weight of shape ", weight.sizes(), " does not fit ", input.size(1),
           " channels");
  RL_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
           "invalid bias shape: got: ", bias.defined() ? bias.sizes() : IntArrayRef(),
           " expected: [", weight.size(0), "]");
  const int64_t groups = input.size(1) / inputs;
  const Tensor columns =
      _deform_columns(input, offset, mask, weight.sizes().slice(2, 2), stride, padding, dilation);
  const int64_t depth = columns.size(1) / groups;
  const Tensor product = weight.reshape({groups, weight.size(0) / groups, depth})
                             .matmul(columns.view({input.size(0), groups, depth, columns.size(2)}));
  const Tensor images =
      product.reshape({input.size(0), weight.size(0), offset.size(2), offset.size(3)});
  return bias.defined() ? images + bias.view({1, -1, 1, 1}) : images;
}

}  // namespace rushlight
