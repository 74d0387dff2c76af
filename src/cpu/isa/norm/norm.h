// What the normalisation kernels share: parameters in the compute type and the moments of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

// A parameter in the compute type; `fill` where there is none.
template <class T>
class Parameter {
 public:
  Parameter(const Tensor& t, int64_t n, T fill) : memory_(n) {
    if (!t.defined()) {
      std::fill_n(memory_.data(), n, fill);
      return;
    }
    visit_dtype<set_floating>("norm", t.dtype(), [&](auto tag) {
      const auto* from = t.data<typename decltype(tag)::type>();
      for (int64_t i = 0; i < n; i++) {
        memory_[i] = static_cast<T>(from[i]);
      }
    });
  }
  const T* data() const { return memory_.data(); }
  T operator[](int64_t i) const { return memory_[i]; }

 private:
  Scratch<T> memory_;
};

template <class T>
void write_parameter(const Tensor& out, const T* from) {
  visit_dtype<set_floating>("norm", out.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    S* to = out.data<S>();
    for (int64_t i = 0; i < out.numel(); i++) {
      to[i] = S(from[i]);
    }
  });
}

// Rows that are worth a thread's while together.
inline int64_t row_grain(int64_t length) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length));
}

template <class T>
struct Moments {
  T mean;
  T squares;  // sum of squared deviations
};

// Moments of two sets together (Chan et al.).
template <class T>
void combine(Moments<T>& a, T& count, const Moments<T>& b, T more) {
  if (more == T(0)) {
    return;
  }
  const T total = count + more;
  const T delta = b.mean - a.mean;
  a.mean += delta * (more / total);
  a.squares += b.squares + delta * delta * (count * more / total);
  count = total;
}

// Rows longer than this are halved, so that the error of a sum grows with the logarithm of its
// length.
inline constexpr int64_t moments_leaf = 16384;

template <class S, class T>
Moments<T> moments(const S* x, int64_t n) {
  using V = Simd<T>;
  if (n > moments_leaf) {
    const int64_t half = (n / 2 + moments_leaf - 1) / moments_leaf * moments_leaf;
    Moments<T> all = moments<S, T>(x, half);
    T count = static_cast<T>(half);
    combine(all, count, moments<S, T>(x + half, n - half), static_cast<T>(n - half));
    return all;
  }
  const T sum = sums_over<T, 1>(
      n, [&](int64_t i, int64_t m) { return Vectors<T, 1>{{load_some(x + i, m)}}; })[0];
  const T mean = n > 0 ? sum / static_cast<T>(n) : T(0);
  const typename V::V centre = V::set1(mean);
  const T squares = sums_over<T, 1>(n, [&](int64_t i, int64_t m) {
    typename V::V d = V::sub(load_some(x + i, m), centre);
    if (m < V::width) {
      d = keep_first<T>(d, m);
    }
    return Vectors<T, 1>{{V::mul(d, d)}};
  })[0];
  return {mean, squares};
}

// Variances that the squares of T do not tell: sums that overflowed, or are of squares so small
// that digits are missing. (A row of NaN is one, too.)
template <class T>
bool out_of_range(T variance) {
  constexpr bool single = std::is_same_v<T, float>;
  return !(variance > static_cast<T>(single ? 1e-30 : 1e-290) &&
           variance < std::numeric_limits<T>::infinity());
}
// Reciprocal deviations of which products overflow, or lose digits.
template <class T>
bool is_extreme(T rstd) {
  constexpr bool single = std::is_same_v<T, float>;
  return !(rstd > static_cast<T>(single ? 0x1p-40 : 0x1p-300) &&
           rstd < static_cast<T>(single ? 0x1p40 : 0x1p300));
}

// Moments of elements out of the ordinary: in double, of elements scaled to 1 where they are
// doubles themselves.
struct WideMoments {
  double scale = 1;
  double mean = 0;      // of scaled elements
  double variance = 0;  //
  double rstd = 0;      //

  double value(double x) const { return (x * scale - mean) * rstd; }
  double plain_mean() const { return mean / scale; }
  double plain_rstd() const { return rstd * scale; }
  double plain_variance() const { return variance / scale / scale; }
  void set_eps(double eps) {
    const double least = eps * scale * scale;
    const double spread = variance + least;
    rstd = 1 / std::sqrt(spread == 0 && eps > 0 ? 0x1p-1022 : spread);
  }
  // The one that was kept, unless digits of it are missing.
  template <class T>
  void set_rstd(T kept) {
    set_eps(0);
    if (kept >= std::numeric_limits<T>::min()) {
      rstd = static_cast<double>(kept) / scale;
    }
  }
};

// each(f) calls f(x) for all of n elements; without `centre` the mean counts as 0.
template <class T, class Each>
WideMoments wide_moments(int64_t n, bool centre, const Each& each) {
  WideMoments m;
  if constexpr (std::is_same_v<T, double>) {
    double most = 0;
    each([&](double x) { most = std::max(most, std::abs(x)); });
    m.scale = most > 0 && std::isfinite(most) ? std::ldexp(1.0, -std::ilogb(most)) : 1;
  }
  double sum = 0;
  if (centre) {
    each([&](double x) { sum += x * m.scale; });
  }
  m.mean = sum / static_cast<double>(n);
  double squares = 0;
  each([&](double x) {
    const double d = x * m.scale - m.mean;
    squares += d * d;
  });
  m.variance = squares / static_cast<double>(n);
  return m;
}

template <class T, class S>
WideMoments wide_moments_of_row(const S* x, int64_t n, bool centre) {
  return wide_moments<T>(n, centre, [&](const auto& f) {
    for (int64_t i = 0; i < n; i++) {
      f(static_cast<double>(x[i]));
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
