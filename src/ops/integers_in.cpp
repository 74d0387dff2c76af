// Tensors whose values decide what a composite does.
#include "ops/integers_in.h"

namespace rushlight {

DimVector integers_in(const Tensor& t) {
  if (is_special(t)) {
    DimVector out;
    const Tensor flat = t.reshape({-1});
    for (int64_t i = 0; i < t.numel(); i++) {
      out.push_back(flat.select(0, i).item<int64_t>());
    }
    return out;
  }
  const Tensor plain = make_empty(t.sizes(), kInt64, kCPU);
  copy_raw(plain, t);
  return DimVector(IntArrayRef(plain.data<int64_t>(), static_cast<size_t>(plain.numel())));
}

}  // namespace rushlight
