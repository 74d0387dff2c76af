#include "cpu/readable.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/op_support.h"
#include "kernels/by_size.h"

namespace rushlight::cpu {

Tensor with_valid_bools(const Tensor& t) {
  const Tensor x = contiguous_raw(t);
  if (x.dtype() != kBool) {
    return x;
  }
  const auto* byte = static_cast<const uint8_t*>(x.data_ptr());
  const int64_t n = x.numel();
  if (std::accumulate(byte, byte + n, uint8_t{0}, std::bit_or<uint8_t>()) <= 1) {
    return x;
  }
  Tensor out = make_empty(x.sizes(), kBool, x.device());
  std::transform(byte, byte + n, out.data<bool>(), [](uint8_t b) { return b != 0; });
  return out;
}

Tensor computable(const Tensor& t, ScalarType dtype) {
  return contains(set_all, t.dtype()) ? t : cast_raw(t, dtype);
}

namespace {

// Contiguous, of a dtype of the same size, with the highest bit of each element turned over.
Tensor flip_sign_bits(const Tensor& t, ScalarType dtype) {
  const Tensor x = contiguous_raw(t);
  Tensor out = make_empty(x.sizes(), dtype, x.device());
  visit_size(x.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      const auto* from = static_cast<const T*>(x.data_ptr());
      auto* to = static_cast<T*>(out.data_ptr());
      for (int64_t i = 0; i < x.numel(); i++) {
        to[i] = static_cast<T>(from[i] ^ T(1) << (8 * sizeof(T) - 1));
      }
    }
  });
  return out;
}

}  // namespace

Tensor comparable(const Tensor& t) {
  if (is_wide_unsigned(t.dtype())) {
    return flip_sign_bits(t, t.dtype() == kUInt16   ? kInt16
                             : t.dtype() == kUInt32 ? kInt32
                                                    : kInt64);
  }
  return computable(t, compute_dtype(t.dtype()));
}

Tensor from_comparable(const Tensor& x, ScalarType dtype) {
  return is_wide_unsigned(dtype) ? flip_sign_bits(x, dtype) : cast_raw(x, dtype);
}

}  // namespace rushlight::cpu
