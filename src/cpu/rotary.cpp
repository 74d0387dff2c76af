// _rotary on the CPU (ops/decoding.py): pairs of numbers turned by the angles of their position.
#include <algorithm>

#include "core/parallel.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

void _rotary(const Tensor& out, const Tensor& input, const Tensor& cos, const Tensor& sin,
             const Tensor& position, bool adjacent) {
  const int64_t width = input.size(-1);
  const int64_t rows = input.size(-2);
  const int64_t angles = cos.size(1);
  // Of all rows, or of each sequence.
  const Tensor firsts = contiguous_raw(position);
  const auto* const first = firsts.data<int64_t>();
  for (int64_t i = 0; i < firsts.numel(); i++) {
    RL_CHECK_INDEX(first[i] >= 0 && first[i] <= cos.size(0) - rows, "_rotary: positions ", first[i],
                   " to ", first[i] + rows, " are not all among the ", cos.size(0),
                   " of the tables");
  }
  const int64_t count = std::max<int64_t>(1, firsts.numel());
  const int64_t of_each = width == 0 ? 0 : input.numel() / width / count;  // rows of a sequence
  const int64_t step = adjacent ? 2 : 1;                                   // between pairs
  const int64_t apart = adjacent ? 1 : angles;                             // the numbers of a pair
  const auto* const c = cos.data<float>();
  const auto* const s = sin.data<float>();
  visit_dtype<set_floating>("_rotary", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* const from = input.data<T>();
    T* const to = out.data<T>();
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width));
    parallel_for(0, width == 0 ? 0 : input.numel() / width, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* const x = from + i * width;
        T* const y = to + i * width;
        const int64_t at = (first[i / of_each] + i % rows) * angles;
        for (int64_t a = 0; a < angles; a++) {
          const C left = static_cast<C>(x[a * step]);
          const C right = static_cast<C>(x[a * step + apart]);
          y[a * step] = static_cast<T>(left * C(c[at + a]) - right * C(s[at + a]));
          y[a * step + apart] = static_cast<T>(right * C(c[at + a]) + left * C(s[at + a]));
        }
        std::copy(x + 2 * angles, x + width, y + 2 * angles);
      }
    });
  });
}

}  // namespace rushlight::cpu
