// Numbers and their codes of 8 bits (ops/int8.py), element by element: tensors that lie alike.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Of one thread's share.
constexpr int64_t grain = 1 << 15;
// Elements whose numbers are in the first-level cache, and a length that the compiler knows.
constexpr int64_t block = 256;

// What codes of a dtype mean.
template <class C>
struct Codes {
  float scale;
  float zero_point;

  float number(C code) const { return (static_cast<float>(code) - zero_point) * scale; }

  void numbers(const C* from, int64_t n, float* to) const {
    for (int64_t i = 0; i < n; i++) {
      to[i] = number(from[i]);
    }
  }
  // The nearest codes.
  void round(const float* from, int64_t n, C* to) const {
    constexpr float first = std::numeric_limits<C>::min();
    constexpr float last = std::numeric_limits<C>::max();
    const float inverse = 1 / scale;
    int32_t whole[block];
    for (int64_t i = 0; i < n; i++) {
      const float place = std::nearbyint(from[i] * inverse + zero_point);
      const float most = place < last ? place : last;  // and NaN
      whole[i] = static_cast<int32_t>(most > first ? most : first);
    }
    for (int64_t i = 0; i < n; i++) {
      to[i] = static_cast<C>(whole[i]);
    }
  }
};

template <class C>
Codes<C> codes_of(double scale, int64_t zero_point) {
  return {static_cast<float>(scale), static_cast<float>(zero_point)};
}

// Calls f(first element, count) for blocks of all elements.
template <class F>
void for_blocks(int64_t all, const F& f) {
  parallel_for(0, all, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += block) {
      if (end - i >= block) {
        f(i, block);
      } else {
        f(i, end - i);
      }
    }
  });
}

template <class F>
void visit_codes(ScalarType dtype, const F& f) {
  dtype == kInt8 ? f(int8_t()) : f(uint8_t());
}

}  // namespace

void _codes_of(const Tensor& out, const Tensor& self, double scale, int64_t zero_point,
               ScalarType dtype) {
  visit_codes(dtype, [&](auto code) {
    using C = decltype(code);
    const Codes<C> to = codes_of<C>(scale, zero_point);
    const float* const from = self.data<float>();
    for_blocks(self.numel(), [&](int64_t i, int64_t n) __attribute__((always_inline)) {
      to.round(from + i, n, out.data<C>() + i);
    });
  });
}

void _numbers_of_codes(const Tensor& out, const Tensor& codes, double scale, int64_t zero_point) {
  visit_codes(codes.dtype(), [&](auto code) {
    using C = decltype(code);
    const Codes<C> of = codes_of<C>(scale, zero_point);
    const C* const from = codes.data<C>();
    for_blocks(codes.numel(), [&](int64_t i, int64_t n) __attribute__((always_inline)) {
      of.numbers(from + i, n, out.data<float>() + i);
    });
  });
}

void _combine_codes(const Tensor& out, const Tensor& self, double self_scale,
                    int64_t self_zero_point, const Tensor& other, double other_scale,
                    int64_t other_zero_point, std::string_view how, bool relu, double scale,
                    int64_t zero_point) {
  const bool adds = how == "add";
  visit_codes(out.dtype(), [&](auto code) {
    using C = decltype(code);
    const Codes<C> a = codes_of<C>(self_scale, self_zero_point);
    const Codes<C> b = codes_of<C>(other_scale, other_zero_point);
    const Codes<C> to = codes_of<C>(scale, zero_point);
    const C* const x = self.data<C>();
    const C* const y = other.data<C>();
    for_blocks(out.numel(), [&](int64_t i, int64_t n) __attribute__((always_inline)) {
      float left[block];
      float right[block];
      a.numbers(x + i, n, left);
      b.numbers(y + i, n, right);
      for (int64_t j = 0; j < n; j++) {
        left[j] = adds ? left[j] + right[j] : left[j] * right[j];
      }
      for (int64_t j = 0; relu && j < n; j++) {
        left[j] = left[j] < 0 ? 0 : left[j];
      }
      to.round(left, n, out.data<C>() + i);
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
