// Fourier transforms of lines of 2^k numbers, at least 128 complex ones. Radix 4, each stage from
// one buffer into another in the order that the next one reads (so nothing is ever permuted), real
// and imaginary parts apart, vectors along the line. A line is computed by itself, so its bits
// depend on nothing but its numbers.
#include "cpu/isa/fft/power.h"

#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// Numbers of one parallel piece, about.
constexpr int64_t piece = 8192;

constexpr int64_t least_power = 128;  // pocketfft takes lines shorter than that side by side
constexpr int64_t greatest_power = int64_t(1) << 24;

bool is_fft_power(int64_t n) {
  return n >= least_power && n <= greatest_power && (n & (n - 1)) == 0;
}

// exp(-2 pi i k / n), computed with digits to spare as a product of two roots from short tables.
template <class R>
class Roots {
 public:
  explicit Roots(int64_t n) : n_(n) {
    for (int64_t k = 0; k < step; k++) {
      fine_.push_back(root(k));
    }
    for (int64_t k = 0; k * step < n; k++) {
      coarse_.push_back(root(k * step));
    }
  }
  complex<R> operator()(int64_t k) const {
    const auto a = fine_[static_cast<size_t>(k % step)];
    const auto b = coarse_[static_cast<size_t>(k / step)];
    return {static_cast<R>(a.re * b.re - a.im * b.im), static_cast<R>(a.re * b.im + a.im * b.re)};
  }

 private:
  static constexpr int64_t step = 1024;
  struct Long {
    long double re, im;
  };
  Long root(int64_t k) const {
    constexpr long double two_pi = 6.283185307179586476925286766559L;
    const long double angle = two_pi * static_cast<long double>(k) / static_cast<long double>(n_);
    return {std::cos(angle), -std::sin(angle)};
  }
  int64_t n_;
  std::vector<Long> fine_;
  std::vector<Long> coarse_;
};

template <class R>
class PowerFft {
 public:
  static constexpr int64_t lanes = vector_bytes / static_cast<int>(sizeof(R));
  typedef R V __attribute__((vector_size(vector_bytes), aligned(sizeof(R)), may_alias));

  // Plans are kept for the sizes that were used last.
  static std::shared_ptr<const PowerFft> of_size(int64_t n) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::shared_ptr<const PowerFft>>;  // never destroyed
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < kept.size(); i++) {
      if (kept[i]->n_ == n) {
        std::rotate(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(i),
                    kept.begin() + static_cast<ptrdiff_t>(i) + 1);
        return kept.front();
      }
    }
    constexpr size_t most = 16;
    if (kept.size() == most) {
      kept.pop_back();
    }
    kept.insert(kept.begin(), std::make_shared<const PowerFft>(n));
    return kept.front();
  }

  explicit PowerFft(int64_t n) : n_(n), roots_(static_cast<size_t>(n)) {
    const Roots<R> root(2 * n);
    for (int64_t k = 0; k < n; k++) {
      roots_[static_cast<size_t>(k)] = root(k);
    }
    // w, w^2, w^3 of every stage: for each place where a vector holds several of them, else once.
    int64_t s = 1;
    for (int64_t m = n; m >= 4; m /= 4, s *= 4) {
      const int64_t count = s < lanes ? n / 4 : m / 4;
      std::vector<R> factors(static_cast<size_t>(6 * count));
      for (int64_t i = 0; i < count; i++) {
        const int64_t p = s < lanes ? i / s : i;
        for (int64_t power = 1; power <= 3; power++) {
          const complex<R> w = root(2 * power * p * s);
          factors[static_cast<size_t>((2 * power - 2) * count + i)] = w.re;
          factors[static_cast<size_t>((2 * power - 1) * count + i)] = w.im;
        }
      }
      factors_.push_back(std::move(factors));
    }
  }

  int64_t size() const { return n_; }
  // From real parts to imaginary ones. Not the size: numbers at powers of two from each other would
  // share a place in the cache.
  int64_t imaginary_offset() const { return n_ + 32; }
  // Numbers of working memory that a line needs.
  int64_t buffer_size() const { return 4 * imaginary_offset(); }

  // `work` begins with the line, real and imaginary parts. Returns where those of the result are.
  R* transform(R* work) const {
    R* from = work;
    R* to = work + 2 * imaginary_offset();
    int64_t s = 1;
    int64_t m = n_;
    for (const std::vector<R>& factors : factors_) {
      const int64_t grain = std::max<int64_t>(lanes, 8192);
      parallel_for(0, n_ / 4, grain, [&](int64_t begin, int64_t end) {
        if (s == 1) {
          stage<1>(from, to, factors.data(), begin, end);
        } else if (s < lanes) {
          stage<4>(from, to, factors.data(), begin, end);
        } else {
          stage_of_vectors(from, to, factors.data(), m / 4, s, begin, end);
        }
      });
      std::swap(from, to);
      s *= 4;
      m /= 4;
    }
    if (m == 2) {
      halves(from, to);
      std::swap(from, to);
    }
    return from;
  }

  // exp(-pi i k / n), for the step between n complex numbers and 2 n real ones.
  const complex<R>* half_roots() const { return roots_.data(); }

 private:
  static V load(const R* p) { return *reinterpret_cast<const V*>(p); }
  static void store(R* p, V v) { *reinterpret_cast<V*>(p) = v; }

  struct Number {
    V re, im;
  };
  static Number plus(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
  static Number minus(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
  template <class W>
  static Number times(Number a, W re, W im) {
    return {a.re * re - a.im * im, a.re * im + a.im * re};
  }
  Number at(const R* from, int64_t i) const {
    return {load(from + i), load(from + imaginary_offset() + i)};
  }
  void put(R* to, int64_t i, Number x) const {
    store(to + i, x.re);
    store(to + imaginary_offset() + i, x.im);
  }

  // The transform of four numbers, a quarter of the line apart.
  struct Four {
    Number x[4];
  };
  Four four(const R* from, int64_t i) const {
    const int64_t quarter = n_ / 4;
    const Number a = at(from, i);
    const Number b = at(from, i + quarter);
    const Number c = at(from, i + 2 * quarter);
    const Number d = at(from, i + 3 * quarter);
    const Number sum = plus(b, d);
    const Number gap = minus(b, d);
    const Number even = plus(a, c);
    const Number odd = minus(a, c);
    return {{plus(even, sum),
             {odd.re + gap.im, odd.im - gap.re},
             minus(even, sum),
             {odd.re - gap.im, odd.im + gap.re}}};
  }

  // Alternating runs of Block elements of a and b: those of their lower or upper halves.
  template <int Block, bool Upper, size_t... Lane>
  static V interleave(V a, V b, std::index_sequence<Lane...>) {
    constexpr int n = sizeof...(Lane);
    constexpr auto source = [](int lane) {
      const int run = lane / Block;
      return (Upper ? n / 2 : 0) + run / 2 * Block + lane % Block + (run % 2 == 0 ? 0 : n);
    };
    return __builtin_shufflevector(a, b, source(static_cast<int>(Lane))...);
  }
  template <int Block, bool Upper>
  static V zip(V a, V b) {
    return interleave<Block, Upper>(a, b, std::make_index_sequence<lanes>());
  }
  template <int Block>
  static void store_mixed(R* to, V a, V b, V c, V d) {
    const V ac_low = zip<Block, false>(a, c);
    const V ac_high = zip<Block, true>(a, c);
    const V bd_low = zip<Block, false>(b, d);
    const V bd_high = zip<Block, true>(b, d);
    store(to, zip<Block, false>(ac_low, bd_low));
    store(to + lanes, zip<Block, true>(ac_low, bd_low));
    store(to + 2 * lanes, zip<Block, false>(ac_high, bd_high));
    store(to + 3 * lanes, zip<Block, true>(ac_high, bd_high));
  }

  // A stage whose results lie in runs of Step numbers, fewer than a vector has.
  template <int Step>
  void stage(const R* from, R* to, const R* factors, int64_t begin, int64_t end) const {
    if constexpr (Step < lanes) {
      const int64_t quarter = n_ / 4;
      for (int64_t i = begin; i < end; i += lanes) {
        const Four y = four(from, i);
        Number z[4] = {y.x[0]};
#pragma GCC unroll 3
        for (int k = 1; k < 4; k++) {
          z[k] = times(y.x[k], load(factors + (2 * k - 2) * quarter + i),
                       load(factors + (2 * k - 1) * quarter + i));
        }
        store_mixed<Step>(to + 4 * i, z[0].re, z[1].re, z[2].re, z[3].re);
        store_mixed<Step>(to + imaginary_offset() + 4 * i, z[0].im, z[1].im, z[2].im, z[3].im);
      }
    }
  }

  // A stage whose results lie in runs of `s` numbers, one or more vectors; a run shares its
  // factors, of which there are `count`.
  void stage_of_vectors(const R* from, R* to, const R* factors, int64_t count, int64_t s,
                        int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end;) {
      const int64_t p = i / s;
      const int64_t stop = std::min(end, (p + 1) * s);
      R w[6];
#pragma GCC unroll 6
      for (int k = 0; k < 6; k++) {
        w[k] = factors[k * count + p];
      }
      R* const row = to + 3 * p * s;  // i has p * s in it already
      for (; i < stop; i += lanes) {
        const Four y = four(from, i);
        put(row, i, y.x[0]);
        put(row + s, i, times(y.x[1], w[0], w[1]));
        put(row + 2 * s, i, times(y.x[2], w[2], w[3]));
        put(row + 3 * s, i, times(y.x[3], w[4], w[5]));
      }
    }
  }

  // The last stage where n is no power of four.
  void halves(const R* from, R* to) const {
    const int64_t half = n_ / 2;
    for (int64_t i = 0; i < half; i += lanes) {
      const Number a = at(from, i);
      const Number b = at(from, i + half);
      put(to, i, plus(a, b));
      put(to, i + half, minus(a, b));
    }
  }

  int64_t n_;
  std::vector<std::vector<R>> factors_;
  std::vector<complex<R>> roots_;
};

// A line of complex numbers comes apart, and is put together again times a factor. With the parts
// exchanged on both ways the transform is the inverse one.
template <class R>
void split_line(const PowerFft<R>& plan, const complex<R>* x, bool exchanged, R* work) {
  R* __restrict re = exchanged ? work + plan.imaginary_offset() : work;
  R* __restrict im = exchanged ? work : work + plan.imaginary_offset();
  const int64_t n = plan.size();
  for (int64_t i = 0; i < n; i++) {
    re[i] = x[i].re;
    im[i] = x[i].im;
  }
}
template <class R>
void join_line(const PowerFft<R>& plan, const R* work, bool exchanged, R factor, complex<R>* x) {
  const R* __restrict re = exchanged ? work + plan.imaginary_offset() : work;
  const R* __restrict im = exchanged ? work : work + plan.imaginary_offset();
  const int64_t n = plan.size();
  for (int64_t i = 0; i < n; i++) {
    x[i].re = re[i] * factor;
    x[i].im = im[i] * factor;
  }
}

template <class R>
void line_c2c(const PowerFft<R>& plan, bool forward, R factor, const complex<R>* x, complex<R>* to,
              R* work) {
  split_line(plan, x, !forward, work);
  join_line(plan, plan.transform(work), !forward, factor, to);
}

// Twice as many real numbers as the plan has complex ones; the results are one more than these.
template <class R>
void line_r2c(const PowerFft<R>& plan, R factor, const R* x, complex<R>* __restrict to, R* work) {
  split_line(plan, reinterpret_cast<const complex<R>*>(x), false, work);
  const int64_t n = plan.size();
  const R* const re = plan.transform(work);
  const R* const im = re + plan.imaginary_offset();
  const complex<R>* const root = plan.half_roots();
  const R half = factor / 2;
  to[0] = {(re[0] + im[0]) * factor, R(0)};
  to[n] = {(re[0] - im[0]) * factor, R(0)};
  for (int64_t k = 1; k < n; k++) {
    // Twice the transforms of the even numbers and of the odd ones.
    const R even_re = re[k] + re[n - k];
    const R even_im = im[k] - im[n - k];
    const R odd_re = im[k] + im[n - k];
    const R odd_im = re[n - k] - re[k];
    to[k].re = (even_re + (odd_re * root[k].re - odd_im * root[k].im)) * half;
    to[k].im = (even_im + (odd_re * root[k].im + odd_im * root[k].re)) * half;
  }
}

// The way back. As everywhere, the first and the last number count as real.
template <class R>
void line_c2r(const PowerFft<R>& plan, R factor, const complex<R>* x, R* to, R* work) {
  const int64_t n = plan.size();
  const complex<R>* const root = plan.half_roots();
  R* __restrict im = work;  // exchanged: the inverse transform
  R* __restrict re = work + plan.imaginary_offset();
  re[0] = x[0].re + x[n].re;
  im[0] = x[0].re - x[n].re;
  for (int64_t k = 1; k < n; k++) {
    const R even_re = x[k].re + x[n - k].re;
    const R even_im = x[k].im - x[n - k].im;
    const R gap_re = x[k].re - x[n - k].re;
    const R gap_im = x[k].im + x[n - k].im;
    const R odd_re = gap_re * root[k].re + gap_im * root[k].im;
    const R odd_im = gap_im * root[k].re - gap_re * root[k].im;
    re[k] = even_re - odd_im;
    im[k] = even_im + odd_re;
  }
  join_line(plan, plan.transform(work), true, factor, reinterpret_cast<complex<R>*>(to));
}

// The same elements with `axis` last.
Tensor axis_last(const Tensor& t, int64_t axis) {
  DimVector sizes = t.sizes();
  DimVector strides = t.strides();
  sizes.erase(axis);
  strides.erase(axis);
  sizes.push_back(t.size(axis));
  strides.push_back(t.stride(axis));
  return make_view(t, {sizes, strides, t.storage_offset()});
}

// Calls f(plan, line of `in`, line of `out`, working memory) for all lines along `axis` that are of
// 2^k complex numbers; else does nothing and returns false. Lines that do not lie along memory are
// brought there, so that the bits of a result do not depend on where it lies.
template <class R, class From, class To, class F>
bool for_power_lines(const Tensor& out, const Tensor& in, int64_t axis, int64_t n, const F& f) {
  if (!is_fft_power(n)) {
    return false;
  }
  if (in.stride(axis) != 1 || out.stride(axis) != 1) {
    const Tensor from = contiguous_raw(axis_last(in, axis));
    const Tensor place = axis_last(out, axis);
    const Tensor to = make_empty(place.sizes(), out.dtype(), out.device());
    for_power_lines<R, From, To>(to, from, out.dim() - 1, n, f);
    copy_raw(place, to);
    return true;
  }
  Dims from;
  Dims to;
  for (int64_t d = out.dim() - 1; d >= 0; d--) {
    if (d != axis) {
      from.add(out.size(d), in.stride(d));
      to.add(out.size(d), out.stride(d));
    }
  }
  const auto plan = PowerFft<R>::of_size(n);
  const int64_t lines = out.numel() / out.size(axis);
  const auto run = [&](int64_t begin, int64_t end) {
    const Scratch<R> work(plan->buffer_size());
    for (int64_t line = begin; line < end; line++) {
      f(*plan, static_cast<const From*>(in.data_ptr()) + from.offset(line),
        static_cast<To*>(out.data_ptr()) + to.offset(line), work.data());
    }
  };
  if (lines < 4 && n >= 4 * piece) {
    run(0, lines);  // threads share each of the lines
  } else {
    parallel_for(0, lines, std::max<int64_t>(1, piece / n), run);
  }
  return true;
}

template <class F>
bool visit_real(ScalarType dtype, const F& f) {
  return to_real(dtype) == kFloat64 ? f(double()) : f(float());
}

}  // namespace

bool power_c2c(const Tensor& out, const Tensor& in, int64_t axis, bool forward, double factor) {
  return visit_real(out.dtype(), [&](auto zero) {
    using R = decltype(zero);
    using C = complex<R>;
    const auto line = [&](const PowerFft<R>& plan, const C* x, C* to, R* work) {
      line_c2c(plan, forward, static_cast<R>(factor), x, to, work);
    };
    return for_power_lines<R, C, C>(out, in, axis, out.size(axis), line);
  });
}

bool power_r2c(const Tensor& out, const Tensor& in, int64_t axis, double factor) {
  const int64_t n = in.size(axis);
  return n % 2 == 0 && visit_real(out.dtype(), [&](auto zero) {
           using R = decltype(zero);
           using C = complex<R>;
           const auto line = [&](const PowerFft<R>& plan, const R* x, C* to, R* work) {
             line_r2c(plan, static_cast<R>(factor), x, to, work);
           };
           return for_power_lines<R, R, C>(out, in, axis, n / 2, line);
         });
}

bool power_c2r(const Tensor& out, const Tensor& in, int64_t axis, double factor) {
  const int64_t n = out.size(axis);
  return n % 2 == 0 && visit_real(out.dtype(), [&](auto zero) {
           using R = decltype(zero);
           using C = complex<R>;
           const auto line = [&](const PowerFft<R>& plan, const C* x, R* to, R* work) {
             line_c2r(plan, static_cast<R>(factor), x, to, work);
           };
           return for_power_lines<R, C, R>(out, in, axis, n / 2, line);
         });
}

}  // namespace rushlight::cpu::RL_ISA
