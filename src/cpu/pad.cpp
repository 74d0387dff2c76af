// Padding by elements that repeat (reflected, the edge again, or from the other end): each
// dimension has a table that says where the elements come from; what lies between the edges is
// copied in one piece.
#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

namespace {

// One dimension of n elements, padded.
struct Edges {
  int64_t n = 1;
  int64_t first = 0;  // of the part that is copied as it is
  int64_t count = 1;
  std::vector<int64_t> places = {0};  // where each element comes from

  Edges() = default;
  Edges(int64_t size, int64_t before, int64_t after, std::string_view mode)
      : n(size),
        first(std::max<int64_t>(before, 0)),
        count(size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0)),
        places(static_cast<size_t>(size + before + after)) {
    for (int64_t i = 0; i < total(); i++) {
      int64_t at = i - before;
      if (mode == "reflect") {
        at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
      } else if (mode == "replicate") {
        at = std::clamp<int64_t>(at, 0, n - 1);
      } else {  // what cropping leaves goes round
        const int64_t low = std::max<int64_t>(0, -before);
        const int64_t high = n - std::max<int64_t>(0, -after);
        at = at < low ? at + (high - low) : at >= high ? at - (high - low) : at;
      }
      places[static_cast<size_t>(i)] = at;
    }
    if (count <= 0) {  // all of it is edges
      first = 0;
      count = 0;
    }
  }
  int64_t total() const { return static_cast<int64_t>(places.size()); }
  int64_t operator[](int64_t i) const { return places[static_cast<size_t>(i)]; }
};

// Images of three dimensions, of which the first may be missing.
struct EdgesOfImage {
  Edges depth;
  Edges height;
  Edges width;
  int64_t images = 1;
  int64_t rows() const { return depth.total() * height.total(); }
  int64_t area() const { return depth.n * height.n * width.n; }
  // Of the input, for a row of an image's output.
  int64_t source(int64_t row) const {
    return (depth[row / height.total()] * height.n + height[row % height.total()]) * width.n;
  }

  EdgesOfImage(IntArrayRef size, IntArrayRef pad, std::string_view mode) {
    Edges* dims[] = {&width, &height, &depth};
    const size_t last = size.size() - 1;
    for (size_t i = 0; i < pad.size() / 2; i++) {
      *dims[i] = Edges(size[last - i], pad[2 * i], pad[2 * i + 1], mode);
    }
    for (size_t d = 0; d + pad.size() / 2 < size.size(); d++) {
      images *= size[d];
    }
  }
};

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
  visit_dtype<set_all>("pad", self.dtype(), [&](auto tag) {
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
