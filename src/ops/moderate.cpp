#include "ops/moderate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight {

namespace {

template <class T>
bool all_within(const T* x, int64_t n, T least, T most, bool or_zero) {
  const auto outside = [&](T value) {
    const T size = value < 0 ? -value : value;
    return !(size >= least && size <= most) && !(or_zero && size == 0);
  };
  constexpr int64_t at_once = 64;  // which becomes vector code
  int64_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    int found = 0;
    for (int64_t j = 0; j < at_once; j++) {
      found |= outside(x[i + j]) ? 1 : 0;
    }
    if (found != 0) {
      return false;
    }
  }
  for (; i < n; i++) {
    if (outside(x[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

Sizes moderate_sizes(ScalarType dtype, double p) {
  const ScalarType real = to_real(dtype);
  const double digits = real == kFloat64 ? 290 : real == kHalf ? 3 : 30;
  const double most = std::pow(10, digits / std::abs(p));
  return {1 / most, most};
}

bool are_moderate(const Tensor& given, const Sizes& sizes, bool or_zero) {
  const Tensor t = batching::all_of(given);
  if (t.is_meta() || is_special(t)) {
    return true;
  }
  if (t.device() != kCPU) {
    return false;
  }
  const bool wide = t.dtype() == kFloat64;
  const double most = std::min<double>(sizes.most, std::numeric_limits<float>::max());
  const Tensor x = contiguous_raw(wide || t.dtype() == kFloat32 ? t : cast_raw(t, kFloat32));
  return wide ? all_within(x.data<double>(), x.numel(), sizes.least, sizes.most, or_zero)
              : all_within(x.data<float>(), x.numel(), static_cast<float>(sizes.least),
                           static_cast<float>(most), or_zero);
}

Tensor unit_of(const Tensor& t, IntArrayRef dims, const Sizes& sizes) {
  const Tensor most = t.detach().abs().amax(dims, true);
  const Tensor extreme = most.lt(Scalar(sizes.least)).logical_or(most.gt(Scalar(sizes.most)));
  const Tensor counts = most.ne(Scalar(0)).logical_and(most.lt(Scalar(INFINITY)));
  return rushlight::where(extreme.logical_and(counts), most, 1);
}

}  // namespace rushlight
