#include "cpu/readable.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/op_support.h"

namespace rushlight::cpu {

Tensor readable(const Tensor& t) {
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

}  // namespace rushlight::cpu
