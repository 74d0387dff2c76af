// Running extremes with their places: cummax and cummin.
#include <algorithm>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/dim_split.h"
#include "cpu/readable.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

template <bool Largest>
void cumulative_extreme(const char* name, const Tensor& values, const Tensor& indices,
                        const Tensor& given, int64_t dim) {
  if (values.numel() == 0) {
    return;
  }
  const Tensor self = with_valid_bools(given);
  const DimSplit s = dim_split_of(self, dim);
  visit_dtype<set_real | set_Bool>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = self.data<T>();
    T* value = values.data<T>();
    int64_t* index = indices.data<int64_t>();
    parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, 16384 / s.n),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; line++) {
                     int64_t at = line / s.inner * s.n * s.inner + line % s.inner;
                     T best = x[at];
                     int64_t best_at = 0;
                     for (int64_t i = 0; i < s.n; i++, at += s.inner) {
                       const T v = x[at];
                       const bool better = Largest ? v >= best : v <= best;
                       if (better || v != v) {  // the last of equal ones, and every NaN
                         best = v;
                         best_at = i;
                       }
                       value[at] = best;
                       index[at] = best_at;
                     }
                   }
                 });
  });
}

}  // namespace

void cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  cumulative_extreme<true>("cummax", values, indices, self, dim);
}

void cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  cumulative_extreme<false>("cummin", values, indices, self, dim);
}

}  // namespace rushlight::cpu::RL_ISA
