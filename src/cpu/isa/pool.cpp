// Pooling. A row of outputs is computed tap by tap: each tap reads a row of the image at one
// stride, which vectorises. Rows run along the width, or along the channels where those are
// innermost. Planes are independent, so any number of threads gives the same bits, backward too.
#include <optional>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Images as three-dimensional planes; `lanes` channels lie side by side where the tensor is
// channels-last.
struct Planes {
  int64_t count = 1;
  int64_t lanes = 1;
  int64_t size[3] = {1, 1, 1};
  int64_t area() const { return size[0] * size[1] * size[2]; }
};

Planes planes_of(const Tensor& t, int64_t dims) {
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
struct Axis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
};

struct Axes {
  Axis axis[3];
  Axes(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation = {}) {
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
Span inside(const Axis& a, int64_t k, int64_t n, int64_t count) {
  const int64_t shift = k * a.dilation - a.padding;
  const int64_t begin = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
  const int64_t end = shift >= n ? 0 : (n - 1 - shift) / a.stride + 1;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

int64_t plane_grain(int64_t work) {
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

// Calls f(d, h, offset of the image row) for the taps of an output row in depth and height that lie
// inside.
template <class F>
void for_row_taps(const Axes& axes, const Planes& in, int64_t d, int64_t h, const F& f) {
  const Axis& ad = axes.axis[0];
  const Axis& ah = axes.axis[1];
  for (int64_t kd = 0; kd < ad.kernel; kd++) {
    const int64_t y = d * ad.stride - ad.padding + kd * ad.dilation;
    if (y < 0 || y >= in.size[0]) {
      continue;
    }
    for (int64_t kh = 0; kh < ah.kernel; kh++) {
      const int64_t x = h * ah.stride - ah.padding + kh * ah.dilation;
      if (x >= 0 && x < in.size[1]) {
        f(kd, kh, (y * in.size[1] + x) * in.size[2]);
      }
    }
  }
}

// ---- the largest ----

// best, at = those of n elements of a tap, where larger or NaN.
template <class S, class T, class I, int stride>
void take_larger(T* best, I* at, const S* from, int64_t any_stride, int64_t n, I first, I step) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const T value = static_cast<T>(from[i * s]);
    const bool larger = value > best[i] || value != value;
    best[i] = larger ? value : best[i];
    at[i] = larger ? first + static_cast<I>(i) * step : at[i];
  }
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
  } else {
    return -std::numeric_limits<T>::infinity();
  }
}

// even[i] = from[2 * i] and odd[i] = from[2 * i + 1] of n elements.
template <class T>
void split_pairs(const T* from, int64_t n, T* even, T* odd) {
  using V = Simd<T>;
  constexpr int64_t w = V::width;
  using Lane = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Elements __attribute__((vector_size(w * sizeof(T))));
  typedef Lane Lanes __attribute__((vector_size(w * sizeof(T))));
  Lanes low;
  for (int i = 0; i < w; i++) {
    low[i] = 2 * i;
  }
  for (int64_t i = 0; i < n; i += 2 * w) {
    const int64_t left = n - i;
    const auto a = reinterpret_cast<Elements>(load_some(from + i, std::min(w, left)));
    const auto b = left > w
                       ? reinterpret_cast<Elements>(load_some(from + i + w, std::min(w, left - w)))
                       : Elements{};
    const auto evens = reinterpret_cast<typename V::V>(__builtin_shuffle(a, b, low));
    const auto odds = reinterpret_cast<typename V::V>(__builtin_shuffle(a, b, low + 1));
    store_some(even + i / 2, evens, std::min(w, (left + 1) / 2));
    store_some(odd + i / 2, odds, std::min(w, left / 2));
  }
}

// The largest of windows along the width, from lines: image rows, or what stands for them outside
// of the image, split into one part for each residue of the stride, so that every tap of
// neighbouring outputs reads neighbours; long enough for whole vectors of outputs.
template <class T, class I>
class Lines {
 public:
  static constexpr int64_t granule = 16;
  static constexpr int64_t most_stride = 4;

  Lines(const Axis& axis, int64_t image, int64_t outputs, int64_t taps)
      : room((outputs + granule - 1) / granule * granule),
        a(axis),
        width(image),
        length(
            std::max(a.padding + width, (room - 1) * a.stride + (a.kernel - 1) * a.dilation + 1) /
                a.stride +
            1),
        line(a.stride * length),
        best_(room),
        tap_(room),
        places(taps) {
    std::fill_n(line.data(), a.stride * length, lowest<T>());
  }
  void start() {
    std::fill_n(best_.data(), room, lowest<T>());
    std::fill_n(tap_.data(), room, -1);
    taken = 0;
  }
  // The taps of an image row that begins at `offset` of its plane.
  template <class S>
  void take(const S* row, int64_t offset) {
    if constexpr (std::is_same_v<S, T> && is_real_float_v<T>) {
      if (a.stride == 2) {
        const auto column = [&](int64_t x) {
          return line + (x + a.padding) % 2 * length + (x + a.padding) / 2;
        };
        split_pairs<T>(row, width, column(0), column(1));
        compare_taps(offset);
        return;
      }
    }
    for (int64_t f = 0; f < a.stride; f++) {
      // Element j of this part is image column j * stride + f - padding.
      const int64_t first = (std::max<int64_t>(a.padding - f, 0) + a.stride - 1) / a.stride;
      T* part = line + f * length;
      const int64_t shift = f - a.padding;
      for (int64_t j = first; j * a.stride + shift < width; j++) {
        part[j] = static_cast<T>(row[j * a.stride + shift]);
      }
    }
    compare_taps(offset);
  }
  T best(int64_t i) const { return best_[i]; }
  // Where it lies; `otherwise` where nothing is larger than the lowest.
  I place(int64_t i, I otherwise) const {
    return tap_[i] < 0 ? otherwise : places[tap_[i]] + static_cast<I>(i * a.stride);
  }

 private:
  void compare_taps(int64_t offset) {
    for (int64_t k = 0; k < a.kernel; k++) {
      const int64_t at = k * a.dilation;
      compare(line + at % a.stride * length + at / a.stride, static_cast<int32_t>(taken));
      places[taken++] = static_cast<I>(offset + at - a.padding);
    }
  }
  void compare(const T* from, int32_t t) {
    T* best = best_;
    int32_t* tap = tap_;
#pragma GCC ivdep
    for (int64_t i = 0; i < room; i++) {
      const bool larger = from[i] > best[i] || from[i] != from[i];
      best[i] = larger ? from[i] : best[i];
      tap[i] = larger ? t : tap[i];
    }
  }

  const int64_t room;  // outputs
  const Axis& a;
  const int64_t width;
  const int64_t length;  // of a part
  const Scratch<T> line;
  const Scratch<T> best_;
  const Scratch<int32_t> tap_;
  const Scratch<I> places;  // of each tap, for the first output
  int64_t taken = 0;
};

// The taps of one image row for outputs of any stride, or of several channels side by side.
template <class S, class T, class I>
void take_row(T* best, I* at, const S* plane, int64_t offset, const Axis& a, const Planes& in,
              int64_t outputs) {
  for (int64_t k = 0; k < a.kernel; k++) {
    const Span span = inside(a, k, in.size[2], outputs);
    const int64_t start = offset + span.begin * a.stride - a.padding + k * a.dilation;
    if (in.lanes == 1) {
      take_larger<S, T, I, 0>(best + span.begin, at + span.begin, plane + start, a.stride,
                              span.end - span.begin, static_cast<I>(start),
                              static_cast<I>(a.stride));
      continue;
    }
    for (int64_t w = span.begin; w < span.end; w++) {
      const int64_t place = start + (w - span.begin) * a.stride;
      take_larger<S, T, I, 1>(best + w * in.lanes, at + w * in.lanes, plane + place * in.lanes, 1,
                              in.lanes, static_cast<I>(place), I(0));
    }
  }
}

template <class S, class I>
void max_pool_typed(const Tensor& values, const Tensor& indices, const Tensor& self,
                    const Axes& axes, int64_t dims) {
  using T = compute_t<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(values, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const Axis& aw = axes.axis[2];
  const bool by_lines = in.lanes == 1 && aw.stride <= Lines<T, I>::most_stride;
  const int64_t row = out.size[2] * in.lanes;
  const S* x = self.data<S>();
  S* y = values.data<S>();
  int64_t* z = indices.data<int64_t>();
  const int64_t taps = axes.axis[0].kernel * axes.axis[1].kernel * aw.kernel;
  const auto planes = [&](int64_t begin, int64_t end) {
    std::optional<Lines<T, I>> lines;
    if (by_lines) {
      lines.emplace(aw, in.size[2], out.size[2], taps);
    }
    const Scratch<T> best(by_lines ? 0 : row);
    const Scratch<I> at(row);
    // A window of nothing but the lowest value reports its first element.
    const Scratch<I> firsts(row);
    for (int64_t w = 0; w < out.size[2]; w++) {
      int64_t start = w * aw.stride - aw.padding;
      start += start < 0 ? (-start + aw.dilation - 1) / aw.dilation * aw.dilation : 0;
      std::fill_n(firsts + w * in.lanes, in.lanes, static_cast<I>(start));
    }
    for (int64_t p = begin; p < end; p++) {
      const S* plane = x + p * in.area() * in.lanes;
      for (int64_t r = 0; r < out.size[0] * out.size[1]; r++) {
        const int64_t to = (p * out.area() + r * out.size[2]) * in.lanes;
        int64_t first_row = -1;
        if (by_lines) {
          lines->start();
          for_row_taps(axes, in, r / out.size[1], r % out.size[1],
                       [&](int64_t, int64_t, int64_t offset) {
                         first_row = first_row < 0 ? offset : first_row;
                         lines->take(plane + offset, offset);
                       });
          for (int64_t i = 0; i < row; i++) {
            y[to + i] = S(lines->best(i));
            z[to + i] = lines->place(i, firsts[i] + static_cast<I>(first_row));
          }
          continue;
        }
        std::fill_n(best.data(), row, lowest<T>());
        for_row_taps(
            axes, in, r / out.size[1], r % out.size[1], [&](int64_t, int64_t, int64_t offset) {
              for (int64_t i = 0; i < row && first_row < 0; i++) {
                at[i] = firsts[i] + static_cast<I>(offset);
              }
              first_row = offset;
              take_row<S, T, I>(best.data(), at.data(), plane, offset, aw, in, out.size[2]);
            });
        for (int64_t i = 0; i < row; i++) {
          y[to + i] = S(best[i]);
          z[to + i] = at[i];
        }
      }
    }
  };
  parallel_for(0, in.count, plane_grain(out.area() * in.lanes * taps), planes);
}

// Windows of adaptive pooling: start and end of output i of `count` over n elements.
Span adaptive(int64_t i, int64_t n, int64_t count) {
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

int64_t window_size(const Span (&windows)[3]) {
  return (windows[0].end - windows[0].begin) * (windows[1].end - windows[1].begin) *
         (windows[2].end - windows[2].begin);
}

// ---- means ----

template <class T>
using SumOf = std::conditional_t<is_integer_v<T>, int64_t, compute_t<T>>;

// How many elements a window counts, from its output place.
struct Divisor {
  const Axes& axes;
  const Planes& in;
  bool include_padding;
  std::optional<int64_t> given;
  int64_t along(int d, int64_t i) const {
    const Axis& a = axes.axis[d];
    const int64_t start = i * a.stride - a.padding;
    const int64_t end = std::min(start + a.kernel, in.size[d] + a.padding);
    return include_padding ? end - start : std::min(end, in.size[d]) - std::max<int64_t>(start, 0);
  }
  int64_t operator()(int64_t d, int64_t h, int64_t w) const {
    return given.value_or(0) != 0 ? *given : along(0, d) * along(1, h) * along(2, w);
  }
};

template <class S, class T, int stride>
void add_row(T* sum, const S* from, int64_t any_stride, int64_t n) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    sum[i] += static_cast<T>(from[i * s]);
  }
}

template <class S, class T, int stride>
void spread_row(T* to, const S* from, int64_t any_stride, int64_t n) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    to[i * s] += static_cast<T>(from[i]);
  }
}

template <class S>
void avg_pool_typed(const Tensor& out_tensor, const Tensor& self, const Axes& axes, int64_t dims,
                    bool include_padding, std::optional<int64_t> divisor) {
  using T = SumOf<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(out_tensor, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const Divisor count{axes, in, include_padding, divisor};
  const int64_t row = out.size[2] * in.lanes;
  const Axis& aw = axes.axis[2];
  const S* x = self.data<S>();
  S* y = out_tensor.data<S>();
  const int64_t taps = axes.axis[0].kernel * axes.axis[1].kernel * aw.kernel;
  parallel_for(
      0, in.count, plane_grain(out.area() * in.lanes * taps), [&](int64_t begin, int64_t end) {
        const Scratch<T> sums(row);
        for (int64_t p = begin; p < end; p++) {
          const S* plane = x + p * in.area() * in.lanes;
          for (int64_t r = 0; r < out.size[0] * out.size[1]; r++) {
            const int64_t d = r / out.size[1];
            const int64_t h = r % out.size[1];
            std::fill_n(sums.data(), row, T(0));
            for_row_taps(axes, in, d, h, [&](int64_t, int64_t, int64_t offset) {
              for (int64_t k = 0; k < aw.kernel; k++) {
                const Span span = inside(aw, k, in.size[2], out.size[2]);
                const int64_t start = offset + span.begin * aw.stride - aw.padding + k;
                const int64_t n = span.end - span.begin;
                T* to = sums + span.begin * in.lanes;
                if (in.lanes == 1 && aw.stride == 2) {
                  add_row<S, T, 2>(to, plane + start, 2, n);
                } else if (in.lanes == 1) {
                  add_row<S, T, 0>(to, plane + start, aw.stride, n);
                } else {
                  for (int64_t w = 0; w < n; w++) {
                    add_row<S, T, 1>(to + w * in.lanes, plane + (start + w * aw.stride) * in.lanes,
                                     1, in.lanes);
                  }
                }
              }
            });
            S* to = y + (p * out.area() + r * out.size[2]) * in.lanes;
            for (int64_t w = 0; w < out.size[2]; w++) {
              const T n = static_cast<T>(count(d, h, w));
              for (int64_t c = 0; c < in.lanes; c++) {
                to[w * in.lanes + c] = S(sums[w * in.lanes + c] / n);
              }
            }
          }
        }
      });
}

template <class S>
void avg_pool_backward_typed(const Tensor& out_tensor, const Tensor& grad, const Axes& axes,
                             int64_t dims, bool include_padding, std::optional<int64_t> divisor) {
  using T = SumOf<S>;
  const Planes out = planes_of(grad, dims);
  Planes in = planes_of(out_tensor, dims);
  in.lanes = out.lanes;
  in.count = out.count;
  const Divisor count{axes, in, include_padding, divisor};
  const int64_t row = out.size[2] * in.lanes;
  const int64_t image = in.area() * in.lanes;
  const Axis& aw = axes.axis[2];
  const S* g = grad.data<S>();
  S* dx = out_tensor.data<S>();
  const int64_t taps = axes.axis[0].kernel * axes.axis[1].kernel * aw.kernel;
  parallel_for(
      0, in.count, plane_grain(out.area() * in.lanes * taps), [&](int64_t begin, int64_t end) {
        const Scratch<T> share(row);
        const Scratch<T> sums(image);
        for (int64_t p = begin; p < end; p++) {
          std::fill_n(sums.data(), image, T(0));
          for (int64_t r = 0; r < out.size[0] * out.size[1]; r++) {
            const int64_t d = r / out.size[1];
            const int64_t h = r % out.size[1];
            const S* from = g + (p * out.area() + r * out.size[2]) * in.lanes;
            for (int64_t w = 0; w < out.size[2]; w++) {
              const T n = static_cast<T>(count(d, h, w));
              for (int64_t c = 0; c < in.lanes; c++) {
                share[w * in.lanes + c] = static_cast<T>(from[w * in.lanes + c]) / n;
              }
            }
            for_row_taps(axes, in, d, h, [&](int64_t, int64_t, int64_t offset) {
              for (int64_t k = 0; k < aw.kernel; k++) {
                const Span span = inside(aw, k, in.size[2], out.size[2]);
                const int64_t start = offset + span.begin * aw.stride - aw.padding + k;
                for (int64_t w = span.begin; w < span.end && in.lanes > 1; w++) {
                  spread_row<T, T, 1>(sums + (start + (w - span.begin) * aw.stride) * in.lanes,
                                      share + w * in.lanes, 1, in.lanes);
                }
                if (in.lanes == 1) {
                  spread_row<T, T, 0>(sums + start, share + span.begin, aw.stride,
                                      span.end - span.begin);
                }
              }
            });
          }
          for (int64_t i = 0; i < image; i++) {
            dx[p * image + i] = S(sums[i]);
          }
        }
      });
}

template <class S>
void adaptive_avg_pool_typed(const Tensor& out_tensor, const Tensor& self, int64_t dims) {
  using T = SumOf<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(out_tensor, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const S* x = self.data<S>();
  S* y = out_tensor.data<S>();
  if (is_real_float_v<S> && in.lanes == 1 && out.area() == 1) {
    const int64_t n = in.area();
    parallel_for(0, in.count, plane_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const S* plane = x + p * n;
        if constexpr (is_real_float_v<S>) {
          y[p] = S(sums_over<T, 1>(n,
                                   [&](int64_t i, int64_t m) {
                                     return Vectors<T, 1>{{load_some(plane + i, m)}};
                                   })[0] /
                   static_cast<T>(n));
        }
      }
    });
    return;
  }
  for_adaptive(in, out, [&](int64_t p, int64_t place, const Span(&windows)[3]) {
    const S* plane = x + p * in.area() * in.lanes;
    S* to = y + (p * out.area() + place) * in.lanes;
    const T n = static_cast<T>(window_size(windows));
    if (in.lanes > 1) {
      const Scratch<T> sums(in.lanes);
      std::fill_n(sums.data(), in.lanes, T(0));
      for_window_rows(in, windows, [&](int64_t offset, int64_t length) {
        for (int64_t i = 0; i < length; i++) {
          add_row<S, T, 1>(sums.data(), plane + (offset + i) * in.lanes, 1, in.lanes);
        }
      });
      for (int64_t c = 0; c < in.lanes; c++) {
        to[c] = S(sums[c] / n);
      }
      return;
    }
    T sum = 0;
    // Rows that touch are one.
    const bool whole = windows[2].end - windows[2].begin == in.size[2];
    const int64_t length = windows[2].end - windows[2].begin;
    const int64_t together = whole ? (windows[1].end - windows[1].begin) * length : length;
    int64_t next = -1;
    for_window_rows(in, windows, [&](int64_t offset, int64_t) {
      if (offset < next) {
        return;
      }
      next = offset + together;
      if constexpr (is_real_float_v<S>) {
        sum += sums_over<T, 1>(together, [&](int64_t i, int64_t m) {
          return Vectors<T, 1>{{load_some(plane + offset + i, m)}};
        })[0];
      } else {
        for (int64_t i = 0; i < together; i++) {
          sum += static_cast<T>(plane[offset + i]);
        }
      }
    });
    *to = S(sum / n);
  });
}

template <class S>
void adaptive_avg_pool_backward_typed(const Tensor& out_tensor, const Tensor& grad, int64_t dims) {
  using T = SumOf<S>;
  const Planes out = planes_of(grad, dims);
  Planes in = planes_of(out_tensor, dims);
  in.lanes = out.lanes;
  in.count = out.count;
  const S* g = grad.data<S>();
  S* dx = out_tensor.data<S>();
  const int64_t image = in.area() * in.lanes;
  parallel_for(0, in.count, plane_grain(image), [&](int64_t begin, int64_t end) {
    const Scratch<T> sums(image);
    for (int64_t p = begin; p < end; p++) {
      std::fill_n(sums.data(), image, T(0));
      for (int64_t place = 0; place < out.area(); place++) {
        const Span windows[3] = {
            adaptive(place / (out.size[1] * out.size[2]), in.size[0], out.size[0]),
            adaptive(place / out.size[2] % out.size[1], in.size[1], out.size[1]),
            adaptive(place % out.size[2], in.size[2], out.size[2])};
        const T n = static_cast<T>(window_size(windows));
        const S* from = g + (p * out.area() + place) * in.lanes;
        for_window_rows(in, windows, [&](int64_t offset, int64_t length) {
          for (int64_t i = 0; i < length; i++) {
            for (int64_t c = 0; c < in.lanes; c++) {
              sums[(offset + i) * in.lanes + c] += static_cast<T>(from[c]) / n;
            }
          }
        });
      }
      for (int64_t i = 0; i < image; i++) {
        dx[p * image + i] = S(sums[i]);
      }
    }
  });
}

template <class S>
void adaptive_max_pool_typed(const Tensor& values, const Tensor& indices, const Tensor& self,
                             int64_t dims) {
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(values, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const S* x = self.data<S>();
  for_adaptive(in, out, [&](int64_t p, int64_t place, const Span(&windows)[3]) {
    for (int64_t c = 0; c < in.lanes; c++) {
      const S* plane = x + p * in.area() * in.lanes + c;
      compute_t<S> best = lowest<compute_t<S>>();
      int64_t at =
          (windows[0].begin * in.size[1] + windows[1].begin) * in.size[2] + windows[2].begin;
      for_window_rows(in, windows, [&](int64_t offset, int64_t length) {
        for (int64_t i = offset; i < offset + length; i++) {
          const auto value = static_cast<compute_t<S>>(plane[i * in.lanes]);
          if (value > best || value != value) {
            best = value;
            at = i;
          }
        }
      });
      values.data<S>()[(p * out.area() + place) * in.lanes + c] = S(best);
      indices.data<int64_t>()[(p * out.area() + place) * in.lanes + c] = at;
    }
  });
}

}  // namespace

void _max_pool(const Tensor& out_values, const Tensor& out_indices, const Tensor& self,
               IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation, bool) {
  const auto dims = static_cast<int64_t>(kernel_size.size());
  const Axes axes(kernel_size, stride, padding, dilation);
  const bool small = planes_of(self, dims).area() < INT32_MAX;
  visit_dtype<set_real>("max_pool", self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    if (small) {
      max_pool_typed<S, int32_t>(out_values, out_indices, self, axes, dims);
    } else {
      max_pool_typed<S, int64_t>(out_values, out_indices, self, axes, dims);
    }
  });
}

void _max_pool_backward(const Tensor& out, const Tensor& grad_output, const Tensor& indices,
                        IntArrayRef, int64_t dims) {
  const Planes pooled = planes_of(grad_output, dims);
  const int64_t area = planes_of(out, dims).area();
  const int64_t lanes = pooled.lanes;
  const int64_t* at = indices.data<int64_t>();
  visit_dtype<set_floating>("max_pool_backward", out.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const S* g = grad_output.data<S>();
    S* dx = out.data<S>();
    parallel_for(0, pooled.count, plane_grain(area * lanes), [&](int64_t begin, int64_t end) {
      // Sums of 16-bit floats are kept in floats.
      const Scratch<T> memory(std::is_same_v<S, T> ? 0 : area * lanes);
      for (int64_t p = begin; p < end; p++) {
        T* sums;
        if constexpr (std::is_same_v<S, T>) {
          sums = dx + p * area * lanes;
        } else {
          sums = memory;
        }
        std::fill_n(sums, area * lanes, T(0));
        for (int64_t i = p * pooled.area() * lanes; i < (p + 1) * pooled.area() * lanes; i++) {
          if (at[i] < 0 || at[i] >= area) {
            raise_error("max pooling backward: an index is outside of the image");
          }
          sums[at[i] * lanes + (lanes == 1 ? 0 : i % lanes)] += static_cast<T>(g[i]);
        }
        if constexpr (!std::is_same_v<S, T>) {
          for (int64_t i = 0; i < area * lanes; i++) {
            dx[p * area * lanes + i] = S(sums[i]);
          }
        }
      }
    });
  });
}

void _avg_pool(const Tensor& out, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
               IntArrayRef padding, bool, bool count_include_pad,
               std::optional<int64_t> divisor_override) {
  const Axes axes(kernel_size, stride, padding);
  visit_dtype<set_floating | set_Long>("avg_pool", self.dtype(), [&](auto tag) {
    avg_pool_typed<typename decltype(tag)::type>(out, self, axes,
                                                 static_cast<int64_t>(kernel_size.size()),
                                                 count_include_pad, divisor_override);
  });
}

void _avg_pool_backward(const Tensor& out, const Tensor& grad_output, IntArrayRef,
                        IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool,
                        bool count_include_pad, std::optional<int64_t> divisor_override) {
  const Axes axes(kernel_size, stride, padding);
  visit_dtype<set_floating>("avg_pool_backward", out.dtype(), [&](auto tag) {
    avg_pool_backward_typed<typename decltype(tag)::type>(out, grad_output, axes,
                                                          static_cast<int64_t>(kernel_size.size()),
                                                          count_include_pad, divisor_override);
  });
}

void _adaptive_avg_pool(const Tensor& out, const Tensor& self, IntArrayRef output_size) {
  visit_dtype<set_floating>("adaptive_avg_pool", self.dtype(), [&](auto tag) {
    adaptive_avg_pool_typed<typename decltype(tag)::type>(out, self,
                                                          static_cast<int64_t>(output_size.size()));
  });
}

void _adaptive_avg_pool_backward(const Tensor& out, const Tensor& grad_output, IntArrayRef,
                                 int64_t dims) {
  visit_dtype<set_floating>("adaptive_avg_pool_backward", out.dtype(), [&](auto tag) {
    adaptive_avg_pool_backward_typed<typename decltype(tag)::type>(out, grad_output, dims);
  });
}

void _adaptive_max_pool(const Tensor& out_values, const Tensor& out_indices, const Tensor& self,
                        IntArrayRef output_size) {
  visit_dtype<set_real>("adaptive_max_pool", self.dtype(), [&](auto tag) {
    adaptive_max_pool_typed<typename decltype(tag)::type>(out_values, out_indices, self,
                                                          static_cast<int64_t>(output_size.size()));
  });
}

}  // namespace rushlight::cpu::RL_ISA
