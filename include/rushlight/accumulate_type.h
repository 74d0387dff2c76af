// at::acc_type<T, is_cuda>: what sums of a type are kept in, on the CPU and on GPUs.
#pragma once

#include <rushlight/compat.h>

namespace rushlight {

template <class T, bool is_cuda>
struct AccumulateType {
  static constexpr bool is_exact = std::is_integral_v<T>;
  static constexpr bool as_computed = is_cuda || is_small_float_v<T> || std::is_same_v<T, bool>;
  using type = std::conditional_t<is_exact && !std::is_same_v<T, bool>, int64_t,
                                  std::conditional_t<as_computed, opmath_type<T>, double>>;
};
template <class T, bool is_cuda>
struct AccumulateType<complex<T>, is_cuda> {
  using type = complex<typename AccumulateType<T, is_cuda>::type>;
};
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;

}  // namespace rushlight
