// The contract of interpolation and of sampling at given places, and what is written over other
// ops.
#include "generated/kernels.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"

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
  RL_CHECK(positive, "Input and output sizes should be greater than 0, but got input ", in,
           " output ", out);
}

DimVector with_last(IntArrayRef sizes, IntArrayRef last) {
  DimVector result(sizes);
  for (size_t d = 0; d < last.size(); d++) {
    result[sizes.size() - last.size() + d] = last[d];
  }
  return result;
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding) {
  RL_CHECK(input.dim() == 4 || input.dim() == 5,
           "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
           "got input with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  RL_CHECK(input.dim() == grid.dim(),
           "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
           "got input with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  RL_CHECK(input.size(0) == grid.size(0),
           "grid_sampler(): expected grid and input to have same batch size, but got input with "
           "sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  RL_CHECK(grid.size(-1) == input.dim() - 2, "grid_sampler(): expected grid to have size ",
           input.dim() - 2, " in last dimension, but got grid with sizes ", grid.sizes());
  int64_t area = 1;
  for (int64_t d = 2; d < input.dim(); d++) {
    RL_CHECK(input.size(d) > 0,
             "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
             "sizes ",
             input.sizes(), " with dimension ", d, " being empty");
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

DimVector sampled_sizes(const Tensor& input, const Tensor& grid) {
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
           "Non-empty data tensor expected but got a tensor with sizes ", self.sizes());
  if (!is_floating(self.dtype()) && self.dtype() != kUInt8) {
    dtype_not_implemented("interpolate", self.dtype());
  }
  const MemoryFormat format = format_of(self);
  self = contiguous_raw(self, format);
  return {with_last(self.sizes(), output_size), self.dtype(), {}, format};
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
  return {sampled_sizes(input, grid), input.dtype()};
}

OutSpecs<2> _grid_sampler_backward(Tensor& grad, Tensor& input, Tensor& grid, int64_t& mode,
                                   int64_t& padding, bool&) {
  check_grid(input, grid, mode, padding);
  RL_CHECK(grad.sizes() == IntArrayRef(sampled_sizes(input, grid)) && grad.dtype() == input.dtype(),
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
  const auto [of_input, of_grid] =
      _grid_sampler_backward(grad, input, grid, mode, padding, align_corners);
  return {mask[0] ? of_input : Tensor(), mask[1] ? of_grid : Tensor()};
}

namespace composite {

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
           "Expected a batch of ", dims, "D affine matrices of shape Nx", dims, "x", dims + 1,
           " for size ", size, ". Got ", theta.sizes(), ".");
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
