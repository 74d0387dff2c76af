// The kernels of formulas that ops/pointwise.py marks `loop=`, because a loop over the formula
// is not the way: elements that are moved whatever their dtype, and remainders of floats.
#include <cmath>

#include "cpu/isa/pointwise/loops.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

// `where` moves elements of 1, 2, 4, 8 or 16 bytes.
template <class T>
void where_block(char* out, const char* const* in, const void*, int64_t n) {
  const auto* condition = reinterpret_cast<const uint8_t*>(in[0]);
  const auto* yes = reinterpret_cast<const T*>(in[1]);
  const auto* no = reinterpret_cast<const T*>(in[2]);
  auto* o = reinterpret_cast<T*>(out);
  n &= -granule_of(sizeof(T), 1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T a = yes[i];
    const T b = no[i];
    o[i] = condition[i] != 0 ? a : b;
  }
}

constexpr PointwiseKernel make_where_kernel() {
  PointwiseKernel kernel{"where", Promote::Rest, 3, 0, true, {}, {}};
  for (const ScalarType t : all_dtypes) {
    visit_size(itemsize(t), [&](auto tag) {
      kernel.blocks[static_cast<int>(t)] = where_block<typename decltype(tag)::type>;
    });
  }
  return kernel;
}
constexpr PointwiseKernel where_kernel = make_where_kernel();

// x[i] - trunc(x[i] / y[i]) * y[i] for one granule, without rounding, where that takes one quotient
// of fewer bits than the arithmetic has; false where it does not.
template <class T>
bool fast_remainders(const T* __restrict x, const T* __restrict y, T* __restrict rests) {
  constexpr int64_t step = granule_of(sizeof(T), sizeof(T));
#if !defined(__FMA__)
  if (sizeof(T) == sizeof(double)) {
    return false;  // the product is not exact
  }
#endif
  constexpr double limit = sizeof(T) == sizeof(double) ? 0x1p52 : 0x1p29;
  int64_t slow = 0;
  for (int64_t i = 0; i < step; i++) {
    const double a = math::abs(static_cast<double>(x[i]));
    const double b = math::abs(static_cast<double>(y[i]));
    const double ratio = a / b;
    const double whole = math::trunc(ratio);
    const double r = sizeof(T) == sizeof(double) ? math::multiply_add(-whole, b, a) : a - whole * b;
    const double above = r < 0 ? r + b : r;
    rests[i] = math::copysign(static_cast<T>(above), x[i]);
    slow += (ratio < limit) & (b < math::infinity<double>) ? 0 : 1;  // NaN is slow
  }
  return slow == 0;
}

// A formula of two numbers and their remainder, which is exact and so the same in either way.
template <class T, class F>
void remainder_block(char* out, const char* const* in, const void*, int64_t n) {
  constexpr int64_t step = granule_of(sizeof(T), sizeof(T));
  for (int64_t i = 0; i + step <= n; i += step) {
    const T* x = reinterpret_cast<const T*>(in[0]) + i;
    const T* y = reinterpret_cast<const T*>(in[1]) + i;
    T* o = reinterpret_cast<T*>(out) + i;
    T rests[step];
    if (!fast_remainders(x, y, rests)) {
      for (int64_t j = 0; j < step; j++) {
        rests[j] = std::fmod(x[j], y[j]);
      }
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < step; j++) {
      o[j] = F{}(x[j], y[j], rests[j]);
    }
  }
}

// The kernel of a formula with such blocks for floats.
template <class F, class WithRest>
consteval PointwiseKernel with_remainder_blocks(const char* name, F formula, WithRest) {
  PointwiseKernel kernel = make_kernel<2, 0, set_real, Promote::Same, false>(name, formula);
  for (const ScalarType t : {kHalf, kBFloat16, kFloat32}) {
    kernel.blocks[static_cast<int>(t)] = &remainder_block<float, WithRest>;
  }
  kernel.blocks[static_cast<int>(kFloat64)] = &remainder_block<double, WithRest>;
  return kernel;
}
constexpr PointwiseKernel floor_divide_kernel = with_remainder_blocks(
    "floor_divide",
    [](auto x, auto y) __attribute__((always_inline)) { return formula::floor_divide(x, y); },
    [](auto x, auto y, auto rest) { return math::div_floor(x, y, rest); });
constexpr PointwiseKernel remainder_kernel = with_remainder_blocks(
    "remainder",
    [](auto x, auto y) __attribute__((always_inline)) { return formula::remainder(x, y); },
    [](auto x, auto y, auto rest) { return math::rem_floor(x, y, rest); });
constexpr PointwiseKernel fmod_kernel = with_remainder_blocks(
    "fmod", [](auto x, auto y) __attribute__((always_inline)) { return formula::fmod(x, y); },
    [](auto, auto, auto rest) { return rest; });

}  // namespace

void where(const TensorIterator& it, const Scalar*) { run_pointwise(it, where_kernel); }
void floor_divide(const TensorIterator& it, const Scalar*) {
  run_pointwise(it, floor_divide_kernel);
}
void remainder(const TensorIterator& it, const Scalar*) { run_pointwise(it, remainder_kernel); }
void fmod(const TensorIterator& it, const Scalar*) { run_pointwise(it, fmod_kernel); }

}  // namespace rushlight::cpu::RL_ISA
