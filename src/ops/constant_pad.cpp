// constant_pad_nd: fills, then copies what remains of the input into its place.
#include <algorithm>

#include "generated/contracts.h"

namespace rushlight::anywhere {

void constant_pad_nd(const Tensor& out, const Tensor& self, IntArrayRef pad, const Scalar& value) {
  fill_raw(out, value);
  if (out.numel() == 0 || self.numel() == 0) {
    return;
  }
  ViewSpec from{self.sizes(), self.strides(), self.storage_offset()};
  ViewSpec to{out.sizes(), out.strides(), out.storage_offset()};
  for (size_t i = 0; i < pad.size() / 2; i++) {
    const size_t d = from.sizes.size() - 1 - i;
    const int64_t before = pad[2 * i];
    const int64_t after = pad[2 * i + 1];
    const int64_t n = self.sizes()[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    from.offset += std::max<int64_t>(-before, 0) * from.strides[d];
    to.offset += std::max<int64_t>(before, 0) * to.strides[d];
    from.sizes[d] = n;
    to.sizes[d] = n;
    if (n == 0) {
      return;
    }
  }
  copy_raw(make_view(out, to), make_view(self, from));
}

}  // namespace rushlight::anywhere
