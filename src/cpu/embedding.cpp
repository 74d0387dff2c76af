// embedding_renorm_: rows of a table that are too long are shortened in place.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op_support.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

void embedding_renorm_(const Tensor& out, const Tensor& indices, double max_norm,
                       double norm_type) {
  const Tensor positions = contiguous_raw(cast_raw(indices, kInt64));
  std::vector<int64_t> rows(positions.data<int64_t>(),
                            positions.data<int64_t>() + positions.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  RL_CHECK_INDEX(rows.empty() || (rows.front() >= 0 && rows.back() < out.sizes()[0]),
                 "index out of range in self");
  const int64_t width = out.sizes()[1];
  const int64_t step = out.strides()[1];
  visit_dtype<set_floating>("embedding_renorm_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r : rows) {
      T* row = out.data<T>() + r * out.strides()[0];
      // The sum of powers, of elements as they are to `unit`; with 0 the largest or smallest.
      const bool smallest = norm_type == -std::numeric_limits<double>::infinity();
      const auto fold = [&](double unit) {
        double total = unit == 0 && smallest && width > 0 ? -norm_type : 0;
        for (int64_t j = 0; j < width; j++) {
          const double size = std::abs(static_cast<double>(row[j * step]));
          total = unit != 0  ? total + std::pow(size / unit, norm_type)
                  : smallest ? std::min(total, size)
                             : std::max(total, size);
        }
        return total;
      };
      double norm = std::isinf(norm_type) ? fold(0) : std::pow(fold(1), 1 / norm_type);
      // Powers that overflow or vanish: of elements relative to the largest.
      const bool moderate = norm > 0 && std::abs(norm_type * std::log10(norm)) < 290;
      if (const double most = moderate || std::isinf(norm_type) ? 0 : fold(0); most > 0) {
        norm = most * std::pow(fold(most), 1 / norm_type);
      }
      if (norm > max_norm) {
        const double scale = max_norm / (norm + 1e-7);
        for (int64_t j = 0; j < width; j++) {
          row[j * step] =
              static_cast<T>(static_cast<compute_t<T>>(static_cast<double>(row[j * step]) * scale));
        }
      }
    }
  });
}

}  // namespace rushlight::cpu
