// Pictures of bytes, channels innermost, as planes of what a table says of each byte. Whatever is
// computed of a pixel by its value alone, in any dtype, is such a table, and has its very bits.
#include <algorithm>

#include "core/parallel.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu {
namespace {

// One channel of a row; `step` bytes on, to either side, lies the next pixel. Four at a time: all
// are read before one is written, so that they do not wait for each other.
template <class T>
void fill(const uint8_t* from, int64_t step, int64_t n, const T* table, T* to) {
  int64_t x = 0;
  for (; x + 4 <= n; x += 4, from += 4 * step) {
    const T four[] = {table[from[0]], table[from[step]], table[from[2 * step]],
                      table[from[3 * step]]};
    std::copy_n(four, 4, to + x);
  }
  for (; x < n; x++, from += step) {
    to[x] = table[*from];
  }
}

}  // namespace

void _planes_of_pixels(const Tensor& out, const Tensor& self, const Tensor& table, bool mirrored) {
  const int64_t height = self.size(0);
  const int64_t width = self.size(1);
  const int64_t lanes = self.size(2);
  const int64_t channels = table.size(0);
  if (out.numel() == 0) {
    return;
  }
  const int64_t row = self.stride(0);
  const auto* const from = self.data<uint8_t>() + (mirrored ? (width - 1) * lanes : 0);
  const int64_t step = mirrored ? -lanes : lanes;
  const int64_t grain = std::max<int64_t>(1, 65536 / (width * channels));
  visit_size(table.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* const values = static_cast<const T*>(table.data_ptr());
    auto* const to = static_cast<T*>(out.data_ptr());
    parallel_for(0, height, grain, [&](int64_t begin, int64_t end) {
      for (int64_t y = begin; y < end; y++) {
        for (int64_t c = 0; c < channels; c++) {
          fill(from + y * row + c, step, width, values + c * 256, to + (c * height + y) * width);
        }
      }
    });
  });
}

}  // namespace rushlight::cpu
