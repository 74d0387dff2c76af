// Images at other sizes, by the tables of cpu/resample.h: a thread for each element, any layout.
// Bytes are computed in float and rounded once, where the CPU works in fixed point.
#include "cuda/column.h"
#include "cuda/resample.cuh"

namespace rushlight {

namespace cuda {

namespace {

using cpu::Filter;

void resample(const char* name, const Tensor& out, const Tensor& self, IntArrayRef in,
              IntArrayRef image, const cpu::How& how, const std::optional<double> (&scales)[3],
              bool backward) {
  if (out.numel() == 0) {
    return;
  }
  const auto dims = static_cast<int64_t>(in.size());
  const Images to = images_of(out, dims);
  const Images from = images_of(self, dims);
  if (!backward && (how.filter == Filter::Nearest || how.filter == Filter::NearestExact)) {
    move_taps(out, self, to, from, cpu::axes_of<float>(in, image, how, scales, false));
    return;
  }
  visit_dtype<set_floating | set_Byte>(name, self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<S, uint8_t>, float, compute_t<S>>;
    add_taps<S, A, A>(out, self, to, from, cpu::axes_of<A>(in, image, how, scales, backward));
  });
}

}  // namespace

}  // namespace cuda

void cuda::_interpolate(const Tensor& out, const Tensor& self, IntArrayRef output_size,
                        std::string_view mode, bool align_corners, bool antialias,
                        std::optional<double> scale_d, std::optional<double> scale_h,
                        std::optional<double> scale_w) {
  resample("interpolate", out, self, self.sizes().slice(2, output_size.size()), output_size,
           {cpu::filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, false);
}

void cuda::_interpolate_backward(const Tensor& out, const Tensor& grad, IntArrayRef input_size,
                                 int64_t dims, std::string_view mode, bool align_corners,
                                 bool antialias, std::optional<double> scale_d,
                                 std::optional<double> scale_h, std::optional<double> scale_w) {
  const auto n = static_cast<size_t>(dims);
  resample("interpolate_backward", out, grad, input_size.slice(2, n), grad.sizes().slice(2, n),
           {cpu::filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, true);
}

}  // namespace rushlight
