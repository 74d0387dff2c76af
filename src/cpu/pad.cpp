// Padding by elements that repeat (reflected, the edge again, or from the other end): edges.h says
// where they come from; what lies between the edges is copied in one piece.
#include <algorithm>

#include "core/parallel.h"
#include "cpu/edges.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu {

namespace {

template <class T>
void repeat_edges(const EdgesOfImage& e, T* out, const T* in) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, e.width.total()));
  parallel_for(0, e.images * e.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const T* from = in + t / e.rows() * e.area() + e.source(t % e.rows());
      T* to = out + t * e.width.total();
      const int64_t first = e.width.first;
      const int64_t behind = first + e.width.count;
      for (int64_t x = 0; x < first; x++) {
        to[x] = from[e.width[x]];
      }
      if (e.width.count > 0) {
        std::copy_n(from + e.width[first], e.width.count, to + first);
      }
      for (int64_t x = behind; x < e.width.total(); x++) {
        to[x] = from[e.width[x]];
      }
    }
  });
}

template <class T>
void add_edges(const EdgesOfImage& e, T* out, const T* grad) {
  using Sum = compute_t<T>;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, e.area()));
  parallel_for(0, e.images, grain, [&](int64_t begin, int64_t end) {
    const Scratch<Sum> sums(e.area());
    for (int64_t image = begin; image < end; image++) {
      std::fill_n(sums.data(), e.area(), Sum(0));
      for (int64_t row = 0; row < e.rows(); row++) {
        const T* from = grad + (image * e.rows() + row) * e.width.total();
        Sum* to = sums + e.source(row);
        for (int64_t x = 0; x < e.width.total(); x++) {
          to[e.width[x]] += static_cast<Sum>(from[x]);
        }
      }
      for (int64_t i = 0; i < e.area(); i++) {
        out[image * e.area() + i] = T(sums[i]);
      }
    }
  });
}

}  // namespace

void _pad_edges(const Tensor& out, const Tensor& self, IntArrayRef pad, std::string_view mode) {
  if (out.numel() == 0) {
    return;
  }
  const EdgesOfImage edges(self.sizes(), pad, mode);
  visit_size(self.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    repeat_edges(edges, out.data<T>(), self.data<T>());
  });
}

void _pad_edges_backward(const Tensor& out, const Tensor& grad, IntArrayRef input_size,
                         IntArrayRef pad, std::string_view mode) {
  if (out.numel() == 0) {
    return;
  }
  const EdgesOfImage edges(input_size, pad, mode);
  visit_dtype<set_floating | set_complexes>("pad_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    add_edges(edges, out.data<T>(), grad.data<T>());
  });
}

}  // namespace rushlight::cpu
