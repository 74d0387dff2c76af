// The contract of interpolation and of sampling at given places, and what is written over other
// ops.
#include <algorithm>
#include <cmath>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/pictures.h"

namespace rushlight {

namespace {

constexpr int64_t largest = int64_t{1} << 30;  // indices are 32 bits wide

void check_mode(std::string_view mode, int64_t dims, bool antialias) {
  const bool nearest = mode == "nearest" || mode == "nearest-exact";
  const bool two = dims == 2 && (mode == "bilinear" || mode == "bicubic");
  RL_CHECK_VALUE(
      nearest || two || (dims == 1 && mode == "linear") || (dims == 3 && mode == "trilinear"),
      "interpolate: mode '", mode, "' is not one for images of ", dims, " dimensions");
  RL_CHECK_VALUE(!antialias || two,
                 "Anti-alias option is only supported for bilinear and bicubic modes");
}

void check_image_sizes(IntArrayRef in, IntArrayRef out) {
  bool positive = true;
  for (size_t d = 0; d < in.size(); d++) {
    positive &= in[d] > 0 && out[d] > 0;
    RL_CHECK(in[d] < largest && out[d] < largest, "interpolate: the image is too large");
  }
  RL_CHECK(positive, "interpolate: both sizes should be greater than 0, not ", in, " and ", out);
}

DimVector with_last(IntArrayRef sizes, IntArrayRef last) {
  DimVector result(sizes);
  for (size_t d = 0; d < last.size(); d++) {
    result[sizes.size() - last.size() + d] = last[d];
  }
  return result;
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding) {
  RL_CHECK(
      (input.dim() == 4 || input.dim() == 5) && grid.dim() == input.dim(),
      "grid_sampler(): expected 4D or 5D input, and a grid of as many dimensions, but got sizes ",
      input.sizes(), " and ", grid.sizes());
  RL_CHECK(input.size(0) == grid.size(0),
           "grid_sampler(): input and grid must have the same batch size, but they have sizes ",
           input.sizes(), " and ", grid.sizes());
  RL_CHECK(grid.size(-1) == input.dim() - 2,
           "grid_sampler(): the last dimension of the grid has size ", input.dim() - 2,
           ", a number for each dimension of the image, but its shape is ", grid.sizes());
  int64_t area = 1;
  for (int64_t d = 2; d < input.dim(); d++) {
    RL_CHECK(input.size(d) > 0,
             "grid_sampler(): expected input with non-empty spatial dimensions, but it has sizes ",
             input.sizes());
    RL_CHECK(input.size(d) < largest, "grid_sampler(): the image is too large");
    area = std::min(largest, area * input.size(d));
  }
  RL_CHECK(area < largest, "grid_sampler(): the image is too large");
  RL_CHECK(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2,
           "grid_sampler(): interpolation and padding modes are 0, 1 and 2, got ", mode, " and ",
           padding);
  RL_CHECK(mode != 2 || input.dim() == 4,
           "grid_sampler(): bicubic interpolation only supports 4D input");
  check_floating("grid_sampler", input);
  RL_CHECK(input.dtype() == grid.dtype(),
           "grid_sampler(): expected input and grid to have same dtype, but input has ",
           input.dtype(), " and grid has ", grid.dtype());
}

DimVector grid_sample_sizes(const Tensor& input, const Tensor& grid) {
  DimVector sizes = {input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); d++) {
    sizes.push_back(grid.size(d));
  }
  return sizes;
}

}  // namespace

namespace shape {

OutSpec _interpolate(Tensor& self, DimVector& output_size, std::string& mode, bool&,
                     bool& antialias, std::optional<double>&, std::optional<double>&,
                     std::optional<double>&) {
  const int64_t dims = static_cast<int64_t>(output_size.size());
  RL_CHECK(dims >= 1 && dims <= 3 && self.dim() == dims + 2,
           "It is expected that input has two dimensions more than output_size, got sizes ",
           self.sizes(), " and ", output_size);
  check_mode(mode, dims, antialias);
  check_image_sizes(self.sizes().slice(2, static_cast<size_t>(dims)), output_size);
  RL_CHECK(self.numel() != 0 || self.size(1) != 0,
           "Non-empty data tensor expected: only the batch may be empty, not sizes ", self.sizes());
  if (!is_floating(self.dtype()) && self.dtype() != kUInt8) {
    dtype_not_implemented("interpolate", self.dtype());
  }
  const MemoryFormat format = format_of(self);
  self = contiguous_raw(self, format);
  return {with_last(self.sizes(), output_size), self.dtype(), {}, format};
}

OutSpec _resize_pixels(Tensor& self, DimVector& output_size, std::string& mode) {
  check_picture("resize_pixels", self);
  RL_CHECK(output_size.size() == 2, "resize_pixels: height and width, got ", output_size);
  RL_CHECK_VALUE(mode == "bilinear" || mode == "bicubic",
                 "resize_pixels: bilinear or bicubic, not '", mode, "'");
  check_image_sizes(self.sizes().slice(0, 2), output_size);
  self = with_contiguous_rows(self);
  return {{output_size[0], output_size[1], self.size(2)}, kUInt8};
}

OutSpec _interpolate_backward(Tensor& grad, DimVector& input_size, int64_t& dims, std::string& mode,
                              bool&, bool& antialias, std::optional<double>&,
                              std::optional<double>&, std::optional<double>&) {
  RL_CHECK(dims >= 1 && dims <= 3 && grad.dim() == dims + 2 &&
               input_size.size() == static_cast<size_t>(dims) + 2,
           "interpolate backward: wrong number of dimensions: ", grad.sizes(), " and ", input_size);
  RL_CHECK(grad.size(0) == input_size[0] && grad.size(1) == input_size[1],
           "interpolate backward: the gradient of shape ", grad.sizes(),
           " does not belong to an input of shape ", input_size);
  check_mode(mode, dims, antialias);
  check_image_sizes(IntArrayRef(input_size).slice(2, static_cast<size_t>(dims)),
                    grad.sizes().slice(2, static_cast<size_t>(dims)));
  check_floating("interpolate_backward", grad);
  const MemoryFormat format = format_of(grad);
  grad = contiguous_raw(grad, format);
  return {input_size, grad.dtype(), {}, format};
}

OutSpec grid_sampler(Tensor& input, Tensor& grid, int64_t& mode, int64_t& padding, bool&) {
  check_grid(input, grid, mode, padding);
  input = contiguous_raw(input);
  grid = contiguous_raw(grid);
  return {grid_sample_sizes(input, grid), input.dtype()};
}

OutSpecs<2> _grid_sampler_backward(Tensor& grad, Tensor& input, Tensor& grid, int64_t& mode,
                                   int64_t& padding, bool&) {
  check_grid(input, grid, mode, padding);
  RL_CHECK(
      grad.sizes() == IntArrayRef(grid_sample_sizes(input, grid)) && grad.dtype() == input.dtype(),
      "grid_sampler backward: the gradient of shape ", grad.sizes(),
      " does not belong to this input and grid");
  grad = contiguous_raw(grad);
  input = contiguous_raw(input);
  grid = contiguous_raw(grid);
  return {OutSpec{input.sizes(), input.dtype()}, OutSpec{grid.sizes(), grid.dtype()}};
}

}  // namespace shape

std::tuple<Tensor, Tensor> grid_sampler_gradients(const Tensor& grad, const Tensor& input,
                                                  const Tensor& grid, int64_t mode, int64_t padding,
                                                  bool align_corners, std::array<bool, 2> mask) {
  if (forward::is_differentiated(grad, input, grid)) {
    return grid_sampler_gradients_by_taps(grad, input, grid, mode, padding, align_corners, mask);
  }
  const auto [of_input, of_grid] =
      _grid_sampler_backward(grad, input, grid, mode, padding, align_corners);
  return {mask[0] ? of_input : Tensor(), mask[1] ? of_grid : Tensor()};
}

// ---- interpolation by the names of public functions ----

namespace {

using Scales = std::optional<ArrayRef<double>>;

IntArrayRef image_sizes(const Tensor& input) {
  const size_t dims = input.sizes().size();
  return dims < 2 ? IntArrayRef() : input.sizes().slice(2, dims - 2);
}

// One item for each dimension of the image.
template <class T>
std::vector<T> for_each_dim(const char* name, ArrayRef<T> given, const Tensor& input) {
  RL_CHECK_VALUE(given.size() == image_sizes(input).size(), name,
                 " takes a number for each dimension of the image, (N, C, d1, d2, ...), which has ",
                 image_sizes(input), ", not ", given.size());
  return std::vector<T>(given.begin(), given.end());
}

DimVector scaled_sizes(const Tensor& input, const std::vector<double>& scales) {
  DimVector size;
  for (size_t d = 0; d < scales.size(); d++) {
    const double wanted =
        std::floor(static_cast<double>(input.size(static_cast<int64_t>(d) + 2)) * scales[d]);
    RL_CHECK(wanted >= 0 && wanted < static_cast<double>(largest),
             "interpolate: output sizes should be greater than 0, which scale_factor ", scales[d],
             " does not give");
    size.push_back(static_cast<int64_t>(wanted));
  }
  return size;
}

// The kernel's scales stand for depth, height and width; images of fewer dimensions have the last.
Tensor resize(const Tensor& input, IntArrayRef size, std::string_view mode, bool align_corners,
              bool antialias, std::initializer_list<std::optional<double>> scales) {
  std::optional<double> of[3];
  std::copy(scales.begin(), scales.end(), of + 3 - scales.size());
  return rushlight::_interpolate(input, size, mode, align_corners, antialias, of[0], of[1], of[2]);
}

Tensor resize_by(const Tensor& input, IntArrayRef size, std::string_view mode, bool align_corners,
                 bool antialias, const std::vector<double>& s) {
  switch (s.size()) {
    case 1:
      return resize(input, size, mode, align_corners, antialias, {s[0]});
    case 2:
      return resize(input, size, mode, align_corners, antialias, {s[0], s[1]});
    case 3:
      return resize(input, size, mode, align_corners, antialias, {s[0], s[1], s[2]});
    default:
      return resize(input, size, mode, align_corners, antialias, {});
  }
}

// Either a size or factors.
Tensor resize_to_or_by(const Tensor& input, OptionalIntArrayRef size, Scales factors,
                       std::string_view mode, bool align_corners, bool antialias) {
  RL_CHECK(size.has_value() != factors.has_value(),
           "Must specify exactly one of output_size and scale_factors");
  if (size.has_value()) {
    return resize_by(input, *size, mode, align_corners, antialias, {});
  }
  const std::vector<double> scales = for_each_dim("scale_factors", *factors, input);
  return resize_by(input, scaled_sizes(input, scales), mode, align_corners, antialias, scales);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool align_corners_or_default(const char* name, std::optional<bool> given) {
  if (!given.has_value()) {
    warn(str(name, " uses align_corners=False by default; say which you mean."));
  }
  return given.value_or(false);
}

}  // namespace

namespace composite {

#define RL_RESIZE_VEC(name, mode, antialias)                                         \
  Tensor name##_vec(const Tensor& input, OptionalIntArrayRef size, Scales factors) { \
    return resize_to_or_by(input, size, factors, mode, false, antialias);            \
  }
#define RL_RESIZE_CORNERS_VEC(name, mode, antialias)                                   \
  Tensor name##_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners, \
                    Scales factors) {                                                  \
    return resize_to_or_by(input, size, factors, mode, align_corners, antialias);      \
  }
#define RL_NEAREST(name, mode)                                                     \
  Tensor name##1d(const Tensor& self, IntArrayRef size, std::optional<double> w) { \
    return resize(self, size, mode, false, false, {w});                            \
  }                                                                                \
  Tensor name##2d(const Tensor& self, IntArrayRef size, std::optional<double> h,   \
                  std::optional<double> w) {                                       \
    return resize(self, size, mode, false, false, {h, w});                         \
  }                                                                                \
  Tensor name##3d(const Tensor& self, IntArrayRef size, std::optional<double> d,   \
                  std::optional<double> h, std::optional<double> w) {              \
    return resize(self, size, mode, false, false, {d, h, w});                      \
  }                                                                                \
  RL_RESIZE_VEC(name##1d, mode, false)                                             \
  RL_RESIZE_VEC(name##2d, mode, false)                                             \
  RL_RESIZE_VEC(name##3d, mode, false)
#define RL_PLANE(name, mode, antialias)                                                          \
  Tensor name(const Tensor& self, IntArrayRef size, bool align_corners, std::optional<double> h, \
              std::optional<double> w) {                                                         \
    return resize(self, size, mode, align_corners, antialias, {h, w});                           \
  }                                                                                              \
  RL_RESIZE_CORNERS_VEC(name, mode, antialias)

RL_NEAREST(upsample_nearest, "nearest")
RL_NEAREST(_upsample_nearest_exact, "nearest-exact")
RL_PLANE(upsample_bilinear2d, "bilinear", false)
RL_PLANE(upsample_bicubic2d, "bicubic", false)
RL_PLANE(_upsample_bilinear2d_aa, "bilinear", true)
RL_PLANE(_upsample_bicubic2d_aa, "bicubic", true)

Tensor upsample_linear1d(const Tensor& self, IntArrayRef size, bool align_corners,
                         std::optional<double> w) {
  return resize(self, size, "linear", align_corners, false, {w});
}
RL_RESIZE_CORNERS_VEC(upsample_linear1d, "linear", false)

Tensor upsample_trilinear3d(const Tensor& self, IntArrayRef size, bool align_corners,
                            std::optional<double> d, std::optional<double> h,
                            std::optional<double> w) {
  return resize(self, size, "trilinear", align_corners, false, {d, h, w});
}
RL_RESIZE_CORNERS_VEC(upsample_trilinear3d, "trilinear", false)

#undef RL_PLANE
#undef RL_NEAREST
#undef RL_RESIZE_CORNERS_VEC
#undef RL_RESIZE_VEC

Tensor interpolate(const Tensor& input, OptionalIntArrayRef size, Scales scale_factor,
                   std::string_view mode, std::optional<bool> align_corners,
                   std::optional<bool> recompute_scale_factor, bool antialias) {
  const bool any_dims = is_one_of(mode, {"nearest", "nearest-exact", "area"});
  const int64_t wanted = is_one_of(mode, {"bilinear", "bicubic"}) ? 4
                         : mode == "linear"                       ? 3
                         : mode == "trilinear"                    ? 5
                                                                  : 0;
  RL_CHECK_VALUE(!any_dims || !align_corners.has_value(),
                 "align_corners means something for the modes 'linear', 'bilinear', 'bicubic' and "
                 "'trilinear' only, not for '",
                 mode, "'");
  RL_CHECK_VALUE(!size.has_value() || !scale_factor.has_value(),
                 "interpolate takes only one of size or scale_factor, and both are given");
  RL_CHECK_VALUE(size.has_value() || scale_factor.has_value(),
                 "either size or scale_factor should be defined");
  DimVector to;
  std::vector<double> scales;
  if (size.has_value()) {
    to = DimVector(IntArrayRef(for_each_dim("output", *size, input)));
    RL_CHECK_VALUE(!recompute_scale_factor.value_or(false),
                   "recompute_scale_factor is not meaningful with an explicit size.");
  } else {
    scales = for_each_dim("scale_factor", *scale_factor, input);
    to = scaled_sizes(input, scales);
    if (recompute_scale_factor.value_or(false)) {
      scales.clear();
    }
  }
  RL_CHECK_VALUE(!antialias || (wanted == 4 && input.dim() == 4),
                 "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
                 "tensor as input");
  RL_CHECK_NOT_IMPLEMENTED(
      input.dim() >= 3 && input.dim() <= 5 && (any_dims || wanted != 0),
      "interpolate: Only 3D, 4D and 5D input Tensors supported, by 'nearest', 'nearest-exact' and "
      "'area', by 'linear' (3D), 'bilinear', 'bicubic' (4D) and 'trilinear' (5D), but got a ",
      input.dim(), "D input and mode '", mode, "'");
  RL_CHECK_NOT_IMPLEMENTED(any_dims || wanted == input.dim(), "Got ", input.dim(), "D input, but ",
                           mode, " mode needs ", wanted, "D input");
  if (mode == "area") {
    return to.size() == 1   ? rushlight::adaptive_avg_pool1d(input, to)
           : to.size() == 2 ? rushlight::adaptive_avg_pool2d(input, to)
                            : rushlight::adaptive_avg_pool3d(input, to);
  }
  return resize_by(input, to, mode, align_corners.value_or(false), antialias, scales);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode,
                   std::string_view padding_mode, std::optional<bool> align_corners) {
  RL_CHECK_VALUE(is_one_of(mode, {"bilinear", "nearest", "bicubic"}),
                 "grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', not '",
                 mode, "'");
  RL_CHECK_VALUE(
      is_one_of(padding_mode, {"zeros", "border", "reflection"}),
      "grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', not '",
      padding_mode, "'");
  const bool corners = align_corners_or_default("grid_sample", align_corners);
  return rushlight::grid_sampler(input, grid,
                                 mode == "bilinear"  ? 0
                                 : mode == "nearest" ? 1
                                                     : 2,
                                 padding_mode == "zeros"    ? 0
                                 : padding_mode == "border" ? 1
                                                            : 2,
                                 corners);
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, std::optional<bool> align_corners) {
  const bool corners = align_corners_or_default("affine_grid", align_corners);
  RL_CHECK_VALUE(theta.is_floating_point(), "affine_grid: theta has to be floating point, not ",
                 theta.dtype());
  const int64_t dims = static_cast<int64_t>(size.size()) - 2;
  RL_CHECK_NOT_IMPLEMENTED(
      dims == 2 || dims == 3,
      "affine_grid only supports 4D and 5D sizes, of pictures and of volumes, but got ", size);
  RL_CHECK_VALUE(theta.dim() == 3 && theta.size(1) == dims && theta.size(2) == dims + 1,
                 "affine_grid: images of size ", size, " need a theta of shape [", size[0], ", ",
                 dims, ", ", dims + 1, "], affine matrices, not ", theta.sizes());
  RL_CHECK_VALUE(*std::min_element(size.begin(), size.end()) > 0,
                 "Expected non-zero, positive output size. Got ", size);
  return rushlight::affine_grid_generator(theta, size, corners);
}

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align_corners) {
  RL_CHECK(input.dim() == 4, "grid_sampler_2d(): expected a 4D input, got ", input.sizes());
  return rushlight::grid_sampler(input, grid, mode, padding, align_corners);
}

Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align_corners) {
  RL_CHECK(input.dim() == 5, "grid_sampler_3d(): expected a 5D input, got ", input.sizes());
  return rushlight::grid_sampler(input, grid, mode, padding, align_corners);
}

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const int64_t dims = static_cast<int64_t>(size.size()) - 2;
  RL_CHECK(dims == 2 || dims == 3,
           "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  RL_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == dims &&
               theta.size(2) == dims + 1,
           "affine_grid: images of size ", size, " need a theta of shape [", size[0], ", ", dims,
           ", ", dims + 1, "], affine matrices, not ", theta.sizes());
  const IntArrayRef image = size.slice(2, static_cast<size_t>(dims));
  std::vector<Tensor> axes;  // the last dimension first
  for (int64_t d = dims - 1; d >= 0; d--) {
    const int64_t n = image[static_cast<size_t>(d)];
    // The middles of the pixels, or their outermost ones at -1 and 1.
    Tensor places = n == 1 ? rushlight::zeros({1}, theta.options())
                           : rushlight::linspace(-1, 1, n, theta.options());
    if (!align_corners && n > 1) {
      places = places.mul(static_cast<double>(n - 1) / static_cast<double>(n));
    }
    DimVector along(static_cast<size_t>(dims), 1);
    along[static_cast<size_t>(d)] = n;
    axes.push_back(places.reshape(along).expand(image));
  }
  axes.push_back(rushlight::ones(image, theta.options()));
  const Tensor base = rushlight::stack(axes, -1).reshape({1, -1, dims + 1});
  DimVector sizes = {size[0]};
  for (const int64_t n : image) {
    sizes.push_back(n);
  }
  sizes.push_back(dims);
  return base.matmul(theta.transpose(1, 2)).reshape(sizes);
}

}  // namespace composite
}  // namespace rushlight
