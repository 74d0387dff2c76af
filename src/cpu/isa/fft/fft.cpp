// Fourier transforms. A transform over several dimensions is a pass over each. Lines of 2^k numbers
// are transformed one by one (fft/power.h), all others by pocketfft (fft/pocket.h), which takes as
// many lines at once as a vector holds; a pass is cut along another dimension into fixed pieces
// that threads share, so bits do not depend on their number.
#include <algorithm>
#include <cmath>

#include "cpu/isa/fft/pocket.h"
#include "cpu/isa/fft/power.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// Elements of one parallel piece, about.
constexpr int64_t piece = 32768;

std::vector<ptrdiff_t> strides_of(const Tensor& t) {
  std::vector<ptrdiff_t> out;
  for (const int64_t s : t.strides()) {
    out.push_back(static_cast<ptrdiff_t>(s * t.element_size()));
  }
  return out;
}

double scale(int64_t normalization, double points) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(points) : 1 / points;
}

// Calls f(dimension, begin, end) for ranges of the longest dimension apart from `axis`, or once
// with dimension -1 where there is none worth cutting.
template <class F>
void cut_dimension(const Tensor& t, int64_t axis, const F& f) {
  int64_t longest = -1;
  for (int64_t d = 0; d < t.dim(); d++) {
    if (d != axis && (longest < 0 || t.size(d) > t.size(longest))) {
      longest = d;
    }
  }
  if (longest < 0 || t.numel() <= piece) {
    f(int64_t{-1}, int64_t{0}, int64_t{0});
    return;
  }
  const int64_t rest = std::max<int64_t>(1, t.numel() / t.size(longest));
  parallel_for(0, t.size(longest), std::max<int64_t>(1, piece / rest),
               [&](int64_t begin, int64_t end) { f(longest, begin, end); });
}

// The part [begin, end) of a dimension, as shape and first address.
template <class T>
T* data_from(const Tensor& t, int64_t dim, int64_t begin) {
  return reinterpret_cast<T*>(t.data_ptr()) + (dim < 0 ? 0 : begin * t.stride(dim));
}

std::vector<size_t> narrowed_shape(const Tensor& t, int64_t dim, int64_t begin, int64_t end) {
  std::vector<size_t> out(t.sizes().begin(), t.sizes().end());
  if (dim >= 0) {
    out[static_cast<size_t>(dim)] = static_cast<size_t>(end - begin);
  }
  return out;
}

template <class R>
void complex_pass(const Tensor& out, const Tensor& in, int64_t axis, bool forward, R factor) {
  if (power_c2c(out, in, axis, forward, factor)) {
    return;
  }
  cut_dimension(out, axis, [&](int64_t dim, int64_t begin, int64_t end) {
    pocket_c2c({narrowed_shape(out, dim, begin, end), strides_of(in), strides_of(out),
                static_cast<size_t>(axis)},
               forward, data_from<const std::complex<R>>(in, dim, begin),
               data_from<std::complex<R>>(out, dim, begin), factor);
  });
}

double points(const Tensor& t, IntArrayRef dim) {
  double n = 1;
  for (const int64_t d : dim) {
    n *= static_cast<double>(t.size(d));
  }
  return n;
}

template <class F>
void visit_real(ScalarType dtype, const F& f) {
  if (to_real(dtype) == kFloat64) {
    f(double());
  } else {
    f(float());
  }
}

// to[k] = conj(from[n - k]) for k from `known` on. The parts that are read and written are apart.
template <class C>
void mirror(const C* __restrict from, C* __restrict to, int64_t known, int64_t n) {
  for (int64_t k = known; k < n; k++) {
    to[k].re = from[n - k].re;
    to[k].im = -from[n - k].im;
  }
}

// The second half of the last transformed dimension, from the first: the spectrum of real numbers
// at -k is the conjugate of that at k.
void fill_by_symmetry(const Tensor& out, IntArrayRef dim) {
  const int64_t last = dim.back();
  const int64_t n = out.size(last);
  const int64_t known = n / 2 + 1;
  const int64_t rows = out.numel() / n;
  visit_real(out.dtype(), [&](auto zero) {
    using C = complex<decltype(zero)>;
    C* const data = out.data<C>();
    const int64_t step = out.stride(last);
    parallel_for(0, rows, std::max<int64_t>(1, piece / n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        int64_t to = 0;
        int64_t from = 0;
        int64_t rest = row;
        for (int64_t d = out.dim() - 1; d >= 0; d--) {
          if (d == last) {
            continue;
          }
          const int64_t size = out.size(d);
          const int64_t at = rest % size;
          rest /= size;
          const bool mirrored = std::find(dim.begin(), dim.end(), d) != dim.end();
          to += at * out.stride(d);
          from += (mirrored && at != 0 ? size - at : at) * out.stride(d);
        }
        if (step == 1) {
          mirror(data + from, data + to, known, n);
          continue;
        }
        for (int64_t k = known; k < n; k++) {
          const C value = data[from + (n - k) * step];
          data[to + k * step] = {value.re, -value.im};
        }
      }
    });
  });
}

}  // namespace

void _fft_c2c(const Tensor& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
              bool forward) {
  if (out.numel() == 0) {
    return;
  }
  if (dim.empty()) {
    copy_raw(out, self);
    return;
  }
  visit_real(out.dtype(), [&](auto zero) {
    using R = decltype(zero);
    const auto factor = static_cast<R>(scale(normalization, points(self, dim)));
    for (size_t i = 0; i < dim.size(); i++) {
      complex_pass<R>(out, i == 0 ? self : out, dim[i], forward, i == 0 ? factor : R(1));
    }
  });
}

void _fft_r2c(const Tensor& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
              bool onesided) {
  if (out.numel() == 0) {
    return;
  }
  if (!onesided) {
    const int64_t last = dim.back();
    ViewSpec half{out.sizes(), out.strides(), out.storage_offset()};
    half.sizes[static_cast<size_t>(last)] = out.size(last) / 2 + 1;
    _fft_r2c(make_view(out, half), self, dim, normalization, true);
    fill_by_symmetry(out, dim);
    return;
  }
  visit_real(out.dtype(), [&](auto zero) {
    using R = decltype(zero);
    const auto factor = static_cast<R>(scale(normalization, points(self, dim)));
    const int64_t last = dim.back();
    if (!power_r2c(out, self, last, factor)) {
      cut_dimension(self, last, [&](int64_t d, int64_t begin, int64_t end) {
        pocket_r2c({narrowed_shape(self, d, begin, end), strides_of(self), strides_of(out),
                    static_cast<size_t>(last)},
                   data_from<const R>(self, d, begin), data_from<std::complex<R>>(out, d, begin),
                   factor);
      });
    }
    for (size_t i = 0; i + 1 < dim.size(); i++) {
      complex_pass<R>(out, out, dim[i], true, R(1));
    }
  });
}

void _fft_c2r(const Tensor& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
              int64_t) {
  if (out.numel() == 0) {
    return;
  }
  visit_real(out.dtype(), [&](auto zero) {
    using R = decltype(zero);
    const auto factor = static_cast<R>(scale(normalization, points(out, dim)));
    const int64_t last = dim.back();
    Tensor source = self;
    for (size_t i = 0; i + 1 < dim.size(); i++) {
      if (i == 0) {
        source = make_empty(self.sizes(), self.dtype(), self.device());
      }
      complex_pass<R>(source, i == 0 ? self : source, dim[i], false, R(1));
    }
    if (power_c2r(out, source, last, factor)) {
      return;
    }
    cut_dimension(out, last, [&](int64_t d, int64_t begin, int64_t end) {
      pocket_c2r({narrowed_shape(out, d, begin, end), strides_of(source), strides_of(out),
                  static_cast<size_t>(last)},
                 data_from<const std::complex<R>>(source, d, begin), data_from<R>(out, d, begin),
                 factor);
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
