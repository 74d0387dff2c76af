// at::vec::Vectorized: as many elements as 32 bytes hold, which the compiler makes vectors of.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <tuple>

#include <rushlight/compat.h>

namespace rushlight::vec {

template <class T>
class Vectorized {
 public:
  using value_type = T;
  using size_type = int;
  static constexpr int size() { return static_cast<int>(32 / sizeof(T)); }

  Vectorized() : values_{} {}
  Vectorized(T value) { values_.fill(value); }
  template <class... A,
            std::enable_if_t<sizeof...(A) == 32 / sizeof(T) && (sizeof...(A) > 1), int> = 0>
  Vectorized(A... values) : values_{static_cast<T>(values)...} {}
  // The first `count` from memory, and zeros; all of it into memory, or the first ones.
  static Vectorized loadu(const void* from, int64_t count = size()) {
    Vectorized out;
    std::memcpy(out.values_.data(), from, static_cast<size_t>(count) * sizeof(T));
    return out;
  }
  void store(void* to, int64_t count = size()) const {
    std::memcpy(to, values_.data(), static_cast<size_t>(count) * sizeof(T));
  }
  const T& operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  T& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  operator const T*() const { return values_.data(); }

  template <class F>
  Vectorized map(const F& f) const {
    return make([&](int i) { return static_cast<T>(f((*this)[i])); });
  }
  template <class F>
  static Vectorized make(const F& f) {
    Vectorized out;
    for (int i = 0; i < size(); i++) {
      out[i] = f(i);
    }
    return out;
  }
  // base, base + step, …
  template <class Step = T>
  static Vectorized arange(T base = T(0), Step step = Step(1)) {
    return make([&](int i) { return static_cast<T>(base + static_cast<T>(i) * step); });
  }
  // b where the bits of the mask are set, a elsewhere; and the first `count` of b, then a.
  static Vectorized blendv(const Vectorized& a, const Vectorized& b, const Vectorized& mask) {
    return make([&](int i) { return mask.is_set(i) ? b[i] : a[i]; });
  }
  static Vectorized set(const Vectorized& a, const Vectorized& b, int64_t count = size()) {
    return make([&](int i) { return i < count ? b[i] : a[i]; });
  }
  template <int64_t mask>
  static Vectorized blend(const Vectorized& a, const Vectorized& b) {
    return make([&](int i) { return (mask >> i & 1) != 0 ? b[i] : a[i]; });
  }
  int zero_mask() const {  // a bit for each element that is zero
    int out = 0;
    for (int i = 0; i < size(); i++) {
      out |= static_cast<int>((*this)[i] == T(0)) << i;
    }
    return out;
  }

#define RL_VEC_MAP(name, expression)                        \
  Vectorized name() const {                                 \
    using C = opmath_type<T>;                               \
    return map([](T element) {                              \
      [[maybe_unused]] const C x = static_cast<C>(element); \
      return expression;                                    \
    });                                                     \
  }
  RL_VEC_MAP(abs, x < C(0) ? C(-x) : x)
  RL_VEC_MAP(neg, -x)
  RL_VEC_MAP(exp, std::exp(x))
  RL_VEC_MAP(exp2, std::exp2(x))
  RL_VEC_MAP(expm1, std::expm1(x))
  RL_VEC_MAP(exp_u20, std::exp(x))
  RL_VEC_MAP(log, std::log(x))
  RL_VEC_MAP(log2, std::log2(x))
  RL_VEC_MAP(log10, std::log10(x))
  RL_VEC_MAP(log1p, std::log1p(x))
  RL_VEC_MAP(sin, std::sin(x))
  RL_VEC_MAP(cos, std::cos(x))
  RL_VEC_MAP(tan, std::tan(x))
  RL_VEC_MAP(sinh, std::sinh(x))
  RL_VEC_MAP(cosh, std::cosh(x))
  RL_VEC_MAP(tanh, std::tanh(x))
  RL_VEC_MAP(asin, std::asin(x))
  RL_VEC_MAP(acos, std::acos(x))
  RL_VEC_MAP(atan, std::atan(x))
  RL_VEC_MAP(erf, std::erf(x))
  RL_VEC_MAP(erfc, std::erfc(x))
  RL_VEC_MAP(lgamma, std::lgamma(x))
  RL_VEC_MAP(ceil, std::ceil(x))
  RL_VEC_MAP(floor, std::floor(x))
  RL_VEC_MAP(round, std::nearbyint(x))
  RL_VEC_MAP(trunc, std::trunc(x))
  RL_VEC_MAP(frac, x - std::trunc(x))
  RL_VEC_MAP(sqrt, std::sqrt(x))
  RL_VEC_MAP(rsqrt, C(1) / std::sqrt(x))
  RL_VEC_MAP(reciprocal, C(1) / x)
#undef RL_VEC_MAP
  Vectorized pow(const Vectorized& b) const {
    using C = opmath_type<T>;
    return make([&](int i) {
      return static_cast<T>(std::pow(static_cast<C>((*this)[i]), static_cast<C>(b[i])));
    });
  }

  // Comparisons give masks, of set bits or none; eq and its like give ones and zeros.
#define RL_VEC_COMPARE(op, name)                                                          \
  Vectorized operator op(const Vectorized& b) const {                                     \
    return make([&](int i) { return all_bits((*this)[i] op b[i]); });                     \
  }                                                                                       \
  Vectorized name(const Vectorized& b) const {                                            \
    return make([&](int i) { return static_cast<T>((*this)[i] op b[i] ? 1.0F : 0.0F); }); \
  }
  RL_VEC_COMPARE(==, eq)
  RL_VEC_COMPARE(!=, ne)
  RL_VEC_COMPARE(<, lt)
  RL_VEC_COMPARE(<=, le)
  RL_VEC_COMPARE(>, gt)
  RL_VEC_COMPARE(>=, ge)
#undef RL_VEC_COMPARE
  Vectorized isnan() const {
    return make([&](int i) { return all_bits((*this)[i] != (*this)[i]); });
  }
  bool is_set(int i) const {  // as a mask: the highest bit
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &(*this)[i], sizeof bytes);
    return (bytes[sizeof(T) - 1] & 0x80) != 0;
  }

 private:
  static T all_bits(bool set) {
    T out;
    std::memset(static_cast<void*>(&out), set ? 0xFF : 0, sizeof out);
    return out;
  }
  alignas(32) std::array<T, 32 / sizeof(T)> values_;
};

#define RL_VEC_OPERATOR(op)                                                          \
  template <class T>                                                                 \
  Vectorized<T> operator op(const Vectorized<T>& a, const Vectorized<T>& b) {        \
    return Vectorized<T>::make([&](int i) { return static_cast<T>(a[i] op b[i]); }); \
  }                                                                                  \
  template <class T>                                                                 \
  Vectorized<T>& operator op## = (Vectorized<T> & a, const Vectorized<T>& b) {       \
    return a = a op b;                                                               \
  }
RL_VEC_OPERATOR(+)
RL_VEC_OPERATOR(-)
RL_VEC_OPERATOR(*)
RL_VEC_OPERATOR(/)
#undef RL_VEC_OPERATOR
// Of the bits, whatever the type.
#define RL_VEC_BITS(op)                                                       \
  template <class T>                                                          \
  Vectorized<T> operator op(const Vectorized<T>& a, const Vectorized<T>& b) { \
    unsigned char x[32], y[32];                                               \
    a.store(x);                                                               \
    b.store(y);                                                               \
    for (int i = 0; i < 32; i++) {                                            \
      x[i] = static_cast<unsigned char>(x[i] op y[i]);                        \
    }                                                                         \
    return Vectorized<T>::loadu(x);                                           \
  }
RL_VEC_BITS(&)
RL_VEC_BITS(|)
RL_VEC_BITS(^)
#undef RL_VEC_BITS
template <class T>
Vectorized<T> operator-(const Vectorized<T>& a) {
  return a.neg();
}

template <class T>
Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b + c;
}
template <class T>
Vectorized<T> fmsub(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b - c;
}
// NaN where either is.
template <class T>
Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::make([&](int i) { return a[i] != a[i] || a[i] > b[i] ? a[i] : b[i]; });
}
template <class T>
Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return Vectorized<T>::make([&](int i) { return a[i] != a[i] || a[i] < b[i] ? a[i] : b[i]; });
}
template <class T>
Vectorized<T> clamp_min(const Vectorized<T>& a, const Vectorized<T>& low) {
  return Vectorized<T>::make([&](int i) { return a[i] < low[i] ? low[i] : a[i]; });
}
template <class T>
Vectorized<T> clamp_max(const Vectorized<T>& a, const Vectorized<T>& high) {
  return Vectorized<T>::make([&](int i) { return a[i] > high[i] ? high[i] : a[i]; });
}
template <class T>
Vectorized<T> clamp(const Vectorized<T>& a, const Vectorized<T>& low, const Vectorized<T>& high) {
  return clamp_max(clamp_min(a, low), high);
}

// Sixteen floats of 16 bits as two vectors, and back, rounded.
template <class T, std::enable_if_t<is_small_float_v<T> && sizeof(T) == 2, int> = 0>
std::tuple<Vectorized<float>, Vectorized<float>> convert_to_float(const Vectorized<T>& a) {
  const auto half = [&](int start) {
    return Vectorized<float>::make([&](int i) { return static_cast<float>(a[start + i]); });
  };
  return {half(0), half(8)};
}
template <class T, std::enable_if_t<is_small_float_v<T> && sizeof(T) == 2, int> = 0>
Vectorized<T> convert_from_float(const Vectorized<float>& a, const Vectorized<float>& b) {
  return Vectorized<T>::make([&](int i) { return static_cast<T>(i < 8 ? a[i] : b[i - 8]); });
}
inline auto convert_bfloat16_float(const Vectorized<BFloat16>& a) { return convert_to_float(a); }
inline auto convert_float_bfloat16(const Vectorized<float>& a, const Vectorized<float>& b) {
  return convert_from_float<BFloat16>(a, b);
}
inline auto convert_half_float(const Vectorized<Half>& a) { return convert_to_float(a); }
inline auto convert_float_half(const Vectorized<float>& a, const Vectorized<float>& b) {
  return convert_from_float<Half>(a, b);
}
template <class From, class To>
void convert(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    to[i] = static_cast<To>(from[i]);
  }
}

// One number from the first `count` elements: f takes two vectors.
template <class T, class F>
T vec_reduce_all(const F& f, Vectorized<T> v, int64_t count = Vectorized<T>::size()) {
  T out = v[0];
  for (int i = 1; i < count; i++) {
    out = f(Vectorized<T>(out), Vectorized<T>(v[i]))[0];
  }
  return out;
}
// Over arrays: to[i] = f(a[i], …), where f takes vectors.
template <class T, class F, class... A>
void map_all(const F& f, T* to, int64_t n, const A*... from) {
  constexpr int64_t step = Vectorized<T>::size();
  for (int64_t at = 0; at < n; at += step) {
    const int64_t count = std::min(step, n - at);
    f(Vectorized<T>::loadu(from + at, count)...).store(to + at, count);
  }
}
template <class T, class F>
void map(const F& f, T* to, const T* a, int64_t n) {
  map_all(f, to, n, a);
}
template <class T, class F>
void map2(const F& f, T* to, const T* a, const T* b, int64_t n) {
  map_all(f, to, n, a, b);
}
template <class T, class F>
void map3(const F& f, T* to, const T* a, const T* b, const T* c, int64_t n) {
  map_all(f, to, n, a, b, c);
}
// combine(m(a[0], …), m(a[1], …), …) as one number.
template <class T, class M, class F, class... A>
T reduce_mapped(const M& m, const F& combine, int64_t n, const A*... from) {
  constexpr int64_t step = Vectorized<T>::size();
  Vectorized<T> sum = m(Vectorized<T>::loadu(from, std::min(step, n))...);
  for (int64_t at = step; at < n; at += step) {
    const int64_t count = std::min(step, n - at);
    const Vectorized<T> next = m(Vectorized<T>::loadu(from + at, count)...);
    sum = Vectorized<T>::set(sum, combine(sum, next), count);
  }
  return vec_reduce_all<T>(combine, sum, std::min(step, n));
}
template <class T, class F>
T reduce_all(const F& f, const T* a, int64_t n) {
  return reduce_mapped<T>([](const Vectorized<T>& x) { return x; }, f, n, a);
}
template <class T, class M, class F>
T map_reduce_all(const M& m, const F& combine, const T* a, int64_t n) {
  return reduce_mapped<T>(m, combine, n, a);
}
template <class T, class M, class F>
T map2_reduce_all(const M& m, const F& combine, const T* a, const T* b, int64_t n) {
  return reduce_mapped<T>(m, combine, n, a, b);
}

}  // namespace rushlight::vec
