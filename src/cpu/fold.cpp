// im2col and col2im: channels are independent, so threads share them out and sums keep their order.
#include <algorithm>

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu {
namespace {

struct Geometry {
  int64_t channels;  // of all images
  int64_t image[2];
  int64_t windows[2];
  IntArrayRef kernel;
  IntArrayRef dilation;
  IntArrayRef padding;
  IntArrayRef stride;
};

Geometry geometry(const Tensor& images, IntArrayRef kernel, IntArrayRef dilation,
                  IntArrayRef padding, IntArrayRef stride) {
  Geometry g{1, {images.size(-2), images.size(-1)}, {}, kernel, dilation, padding, stride};
  for (int64_t d = 0; d < images.dim() - 2; d++) {
    g.channels *= images.size(d);
  }
  for (size_t d = 0; d < 2; d++) {
    g.windows[d] =
        (g.image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  return g;
}

// Calls f(column element, image element or -1) for all elements of one channel's columns.
template <class F>
void for_elements(const Geometry& g, const F& f) {
  int64_t at = 0;
  for (int64_t kh = 0; kh < g.kernel[0]; kh++) {
    for (int64_t kw = 0; kw < g.kernel[1]; kw++) {
      for (int64_t h = 0; h < g.windows[0]; h++) {
        const int64_t y = h * g.stride[0] - g.padding[0] + kh * g.dilation[0];
        for (int64_t w = 0; w < g.windows[1]; w++) {
          const int64_t x = w * g.stride[1] - g.padding[1] + kw * g.dilation[1];
          const bool inside = y >= 0 && y < g.image[0] && x >= 0 && x < g.image[1];
          f(at++, inside ? y * g.image[1] + x : -1);
        }
      }
    }
  }
}

int64_t column_size(const Geometry& g) {
  return g.kernel[0] * g.kernel[1] * g.windows[0] * g.windows[1];
}

}  // namespace

void im2col(const Tensor& out, const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
            IntArrayRef padding, IntArrayRef stride) {
  const Geometry g = geometry(self, kernel_size, dilation, padding, stride);
  const int64_t columns = column_size(g);
  const int64_t image = g.image[0] * g.image[1];
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, g.channels, std::max<int64_t>(1, 16384 / columns),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t c = begin; c < end; c++) {
                     const T* from = self.data<T>() + c * image;
                     T* to = out.data<T>() + c * columns;
                     for_elements(g, [&](int64_t i, int64_t j) { to[i] = j < 0 ? T{} : from[j]; });
                   }
                 });
  });
}

void col2im(const Tensor& out, const Tensor& self, IntArrayRef, IntArrayRef kernel_size,
            IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const Geometry g = geometry(out, kernel_size, dilation, padding, stride);
  const int64_t columns = column_size(g);
  const int64_t image = g.image[0] * g.image[1];
  visit_dtype<set_numbers>("col2im", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    constexpr bool in_place = std::is_same_v<T, C>;
    parallel_for(0, g.channels, std::max<int64_t>(1, 16384 / columns),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<C> wide(in_place ? 0 : image);
                   for (int64_t c = begin; c < end; c++) {
                     const T* from = self.data<T>() + c * columns;
                     T* to = out.data<T>() + c * image;
                     C* sums = wide;
                     if constexpr (in_place) {
                       sums = to;
                     }
                     std::fill_n(sums, image, C(0));
                     for_elements(g, [&](int64_t i, int64_t j) {
                       if (j >= 0) {
                         sums[j] = static_cast<C>(sums[j] + static_cast<C>(from[i]));
                       }
                     });
                     for (int64_t j = 0; j < image && !in_place; j++) {
                       to[j] = static_cast<T>(sums[j]);
                     }
                   }
                 });
  });
}

}  // namespace rushlight::cpu
