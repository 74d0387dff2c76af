// Average pooling. A row of outputs is summed tap by tap: each tap reads a row of the image at one
// stride, which vectorises. Rows run along the width, or along the channels where those are
// innermost. Planes are independent, so any number of threads gives the same bits, backward too.
#include <limits>
#include <optional>

#include "cpu/isa/image/pool.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

template <class T>
using SumOf = std::conditional_t<is_integer_v<T>, int64_t, compute_t<T>>;

// How many elements a window counts, from its output place.
struct Divisor {
  const PoolAxes& axes;
  const Planes& in;
  bool include_padding;
  std::optional<int64_t> given;
  int64_t window_length(int d, int64_t i) const {
    const PoolAxis& a = axes.axis[d];
    const int64_t start = i * a.stride - a.padding;
    const int64_t end = std::min(start + a.kernel, in.size[d] + a.padding);
    return include_padding ? end - start : std::min(end, in.size[d]) - std::max<int64_t>(start, 0);
  }
  int64_t operator()(int64_t d, int64_t h, int64_t w) const {
    if (given.value_or(0) != 0) {
      return *given;
    }
    int64_t size = window_length(1, h) * window_length(2, w);  // each below 2^32
    const bool fits = !__builtin_mul_overflow(size, window_length(0, d), &size);
    return fits ? size : std::numeric_limits<int64_t>::max();
  }
};

template <class S, class T, int stride>
void add_row(T* sum, const S* from, int64_t any_stride, int64_t n) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    sum[i] = math::add(sum[i], static_cast<T>(from[i * s]));
  }
}

template <class S, class T, int stride>
void add_to_row(T* to, const S* from, int64_t any_stride, int64_t n) {
  const int64_t s = stride > 0 ? stride : any_stride;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    to[i * s] = math::add(to[i * s], static_cast<T>(from[i]));
  }
}

template <class S>
void avg_pool_typed(const Tensor& out_tensor, const Tensor& self, const PoolAxes& axes,
                    int64_t dims, bool include_padding, std::optional<int64_t> divisor) {
  using T = SumOf<S>;
  const Planes in = planes_of(self, dims);
  Planes out = planes_of(out_tensor, dims);
  out.lanes = in.lanes;
  out.count = in.count;
  const Divisor count{axes, in, include_padding, divisor};
  const int64_t row = out.size[2] * in.lanes;
  const PoolAxis aw = clip_windows(axes.axis[2], in.size[2], out.size[2]);
  const S* x = self.data<S>();
  S* y = out_tensor.data<S>();
  const int64_t taps = most_rows(axes, in) * aw.kernel;
  parallel_for(
      0, in.count, plane_grain(out.area() * in.lanes * taps), [&](int64_t begin, int64_t end) {
        const Scratch<T> sums(row);
        for (int64_t p = begin; p < end; p++) {
          const S* plane = x + p * in.area() * in.lanes;
          for (int64_t r = 0; r < out.size[0] * out.size[1]; r++) {
            const int64_t d = r / out.size[1];
            const int64_t h = r % out.size[1];
            std::fill_n(sums.data(), row, T(0));
            for_row_taps(axes, in, d, h, [&](int64_t offset) {
              for (int64_t k = 0; k < aw.kernel; k++) {
                const Span span = outputs_inside(aw, k, in.size[2], out.size[2]);
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
void avg_pool_backward_typed(const Tensor& out_tensor, const Tensor& grad, const PoolAxes& axes,
                             int64_t dims, bool include_padding, std::optional<int64_t> divisor) {
  using T = SumOf<S>;
  const Planes out = planes_of(grad, dims);
  Planes in = planes_of(out_tensor, dims);
  in.lanes = out.lanes;
  in.count = out.count;
  const Divisor count{axes, in, include_padding, divisor};
  const int64_t row = out.size[2] * in.lanes;
  const int64_t image = in.area() * in.lanes;
  const PoolAxis aw = clip_windows(axes.axis[2], in.size[2], out.size[2]);
  const S* g = grad.data<S>();
  S* dx = out_tensor.data<S>();
  const int64_t taps = most_rows(axes, in) * aw.kernel;
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
            for_row_taps(axes, in, d, h, [&](int64_t offset) {
              for (int64_t k = 0; k < aw.kernel; k++) {
                const Span span = outputs_inside(aw, k, in.size[2], out.size[2]);
                const int64_t start = offset + span.begin * aw.stride - aw.padding + k;
                for (int64_t w = span.begin; w < span.end && in.lanes > 1; w++) {
                  add_to_row<T, T, 1>(sums + (start + (w - span.begin) * aw.stride) * in.lanes,
                                      share + w * in.lanes, 1, in.lanes);
                }
                if (in.lanes == 1) {
                  add_to_row<T, T, 0>(sums + start, share + span.begin, aw.stride,
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

}  // namespace

void _avg_pool(const Tensor& out, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
               IntArrayRef padding, bool, bool count_include_pad,
               std::optional<int64_t> divisor_override) {
  const PoolAxes axes(kernel_size, stride, padding);
  visit_dtype<set_floating | set_Long>("avg_pool", self.dtype(), [&](auto tag) {
    avg_pool_typed<typename decltype(tag)::type>(out, self, axes,
                                                 static_cast<int64_t>(kernel_size.size()),
                                                 count_include_pad, divisor_override);
  });
}

void _avg_pool_backward(const Tensor& out, const Tensor& grad_output, IntArrayRef,
                        IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool,
                        bool count_include_pad, std::optional<int64_t> divisor_override) {
  const PoolAxes axes(kernel_size, stride, padding);
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

}  // namespace rushlight::cpu::RL_ISA
