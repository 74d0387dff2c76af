// The geometry that max_pool.cpp and pool.cpp share: images as planes, one dimension's windows, and
// the ways to walk over rows of outputs and the taps under them.
#pragma once

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

// Images as three-dimensional planes; `lanes` channels lie side by side where the tensor is
// channels-last.
struct Planes {
  int64_t count = 1;
  int64_t lanes = 1;
  int64_t size[3] = {1, 1, 1};
  int64_t area() const { return size[0] * size[1] * size[2]; }
};

inline Planes planes_of(const Tensor& t, int64_t dims) {
  Planes p;
  for (int64_t d = 0; d < t.dim() - dims; d++) {
    p.count *= t.size(d);
  }
  for (int64_t d = 0; d < dims; d++) {
    p.size[3 - dims + d] = t.size(t.dim() - dims + d);
  }
  if (!t.is_contiguous()) {
    p.lanes = t.size(1);
    p.count = t.size(0);
  }
  return p;
}

// One dimension's windows.
struct PoolAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
};

// The same windows without the taps that lie outside of an image of n elements for all `count` of
// them: windows may be far larger than images.
inline PoolAxis clip_windows(PoolAxis a, int64_t n, int64_t count) {
  const int64_t first = std::max<int64_t>(0, a.padding - (count - 1) * a.stride) / a.dilation;
  const int64_t end = std::min(a.kernel, (n + a.padding - 1) / a.dilation + 1);
  a.kernel = end - first;
  a.padding -= first * a.dilation;
  return a;
}

struct PoolAxes {
  PoolAxis axis[3];
  PoolAxes(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation = {}) {
    const size_t first = 3 - kernel.size();
    for (size_t d = 0; d < kernel.size(); d++) {
      axis[first + d] = {kernel[d], stride[d], padding[d], dilation.empty() ? 1 : dilation[d]};
    }
  }
};

// Outputs i0..i1 of `count` whose tap k lies inside an image of n elements.
struct Span {
  int64_t begin;
  int64_t end;
};
inline Span outputs_inside(const PoolAxis& a, int64_t k, int64_t n, int64_t count) {
  const int64_t shift = k * a.dilation - a.padding;
  const int64_t begin = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
  const int64_t end = shift >= n ? 0 : (n - 1 - shift) / a.stride + 1;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

// Taps k0..k1 of a window that starts at `start` which lie inside an image of n elements.
inline Span taps_inside(const PoolAxis& a, int64_t start, int64_t n) {
  const int64_t begin = start >= 0 ? 0 : (-start + a.dilation - 1) / a.dilation;
  const int64_t end = start >= n ? 0 : (n - 1 - start) / a.dilation + 1;
  return {begin, std::min(end, a.kernel)};
}

inline int64_t plane_grain(int64_t work) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
}

// Calls f(plane, d, h) for every row of outputs, planes in parallel.
template <class F>
void for_rows(const Planes& out, int64_t work, const F& f) {
  parallel_for(0, out.count, plane_grain(work), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      for (int64_t d = 0; d < out.size[0]; d++) {
        for (int64_t h = 0; h < out.size[1]; h++) {
          f(p, d, h);
        }
      }
    }
  });
}

// Whether a row of outputs has taps inside: dilated windows may pass by an image.
inline bool has_row_taps(const PoolAxes& axes, const Planes& in, int64_t d, int64_t h) {
  const auto any = [&](int axis, int64_t i) {
    const PoolAxis& a = axes.axis[axis];
    const Span taps = taps_inside(a, i * a.stride - a.padding, in.size[axis]);
    return taps.begin < taps.end;
  };
  return any(0, d) && any(1, h);
}

// How many image rows a row of outputs has at most.
inline int64_t most_rows(const PoolAxes& axes, const Planes& in) {
  return std::min(axes.axis[0].kernel, in.size[0]) * std::min(axes.axis[1].kernel, in.size[1]);
}

// Calls f(offset of the image row) for the taps of an output row in depth and height that lie
// inside.
template <class F>
void for_row_taps(const PoolAxes& axes, const Planes& in, int64_t d, int64_t h, const F& f) {
  const PoolAxis& ad = axes.axis[0];
  const PoolAxis& ah = axes.axis[1];
  const int64_t y = d * ad.stride - ad.padding;
  const int64_t x = h * ah.stride - ah.padding;
  const Span deep = taps_inside(ad, y, in.size[0]);
  const Span high = taps_inside(ah, x, in.size[1]);
  for (int64_t kd = deep.begin; kd < deep.end; kd++) {
    for (int64_t kh = high.begin; kh < high.end; kh++) {
      f(((y + kd * ad.dilation) * in.size[1] + x + kh * ah.dilation) * in.size[2]);
    }
  }
}

// Windows of adaptive pooling: start and end of output i of `count` over n elements.
inline Span adaptive(int64_t i, int64_t n, int64_t count) {
  return {i * n / count, ((i + 1) * n + count - 1) / count};
}

// Calls f(plane, output place, begin and end in three dimensions) for each window.
template <class F>
void for_adaptive(const Planes& in, const Planes& out, const F& f) {
  for_rows(out, in.area() * in.lanes, [&](int64_t p, int64_t d, int64_t h) {
    for (int64_t w = 0; w < out.size[2]; w++) {
      const Span windows[3] = {adaptive(d, in.size[0], out.size[0]),
                               adaptive(h, in.size[1], out.size[1]),
                               adaptive(w, in.size[2], out.size[2])};
      f(p, (d * out.size[1] + h) * out.size[2] + w, windows);
    }
  });
}

// Calls f(offset of the first element, n) for the rows of a window.
template <class F>
void for_window_rows(const Planes& in, const Span (&windows)[3], const F& f) {
  for (int64_t d = windows[0].begin; d < windows[0].end; d++) {
    for (int64_t h = windows[1].begin; h < windows[1].end; h++) {
      f((d * in.size[1] + h) * in.size[2] + windows[2].begin, windows[2].end - windows[2].begin);
    }
  }
}

inline int64_t window_size(const Span (&windows)[3]) {
  return (windows[0].end - windows[0].begin) * (windows[1].end - windows[1].begin) *
         (windows[2].end - windows[2].begin);
}

}  // namespace rushlight::cpu::RL_ISA
