// Pictures of bytes, channels innermost, as planes of what a table says of each byte. Whatever is
// computed of a pixel by its value alone, in any dtype, is such a table, and has its very bits.
#include <algorithm>

#include "core/parallel.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu {
namespace {

// Row c of the table belongs to channel c; `step` bytes on, to either side, lies the next pixel.
template <class T, int64_t Channels>
void fill_row(const uint8_t* from, int64_t step, int64_t width, const T* table, T* to,
              int64_t plane) {
  for (int64_t x = 0; x < width; x++, from += step) {
    for (int64_t c = 0; c < Channels; c++) {
      to[c * plane + x] = table[c * 256 + from[c]];
    }
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
    const auto fill = channels == 1   ? fill_row<T, 1>
                      : channels == 3 ? fill_row<T, 3>
                                      : fill_row<T, 4>;
    parallel_for(0, height, grain, [&](int64_t begin, int64_t end) {
      for (int64_t y = begin; y < end; y++) {
        fill(from + y * row, step, width, values, to + y * width, height * width);
      }
    });
  });
}

}  // namespace rushlight::cpu
