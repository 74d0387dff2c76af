// Building the geometry of a reduction: kept and reduced dimensions are separated and neighbours
// merged.
#include "cpu/reduce_plan.h"

#include <algorithm>

namespace rushlight::cpu {

ReducePlan plan_reduction(const Tensor& self, OptionalIntArrayRef dims, bool ordered) {
  RL_CHECK(self.dim() <= Dims::max, "tensors with more than ", Dims::max,
           " dimensions are not supported");
  ReducePlan plan;
  const int64_t width = self.element_size();
  bool is_reduced[Dims::max] = {};
  const bool all = !dims.has_value();
  for (int64_t d = 0; d < self.dim(); d++) {
    is_reduced[d] = all;
  }
  if (!all) {
    for (int64_t d : dims.value()) {
      if (d < self.dim()) {  // a 0-d tensor takes dim 0
        is_reduced[d] = true;
      }
    }
  }
  int order[Dims::max];
  int n_reduced = 0;
  for (int d = static_cast<int>(self.dim()) - 1; d >= 0; d--) {
    const int64_t size = self.sizes()[d];
    if (is_reduced[d]) {
      order[n_reduced++] = d;
      plan.count = times(plan.count, size);
    } else {
      plan.outputs = times(plan.outputs, size);
      plan.kept.add(size, times(self.strides()[d], width));
    }
  }
  if (!ordered) {
    std::stable_sort(order, order + n_reduced,
                     [&](int a, int b) { return self.strides()[a] < self.strides()[b]; });
  }
  for (int i = 0; i < n_reduced; i++) {
    plan.reduced.add(self.sizes()[order[i]], times(self.strides()[order[i]], width));
  }
  const bool many = plan.kept.n > 0 && plan.reduced.n > 0 && plan.kept.size[0] >= 16;
  plan.columns = many && plan.kept.stride[0] < plan.reduced.stride[0];
  plan.rows_lie = many && plan.reduced.n == 1 && plan.reduced.stride[0] == width &&
                  plan.kept.stride[0] >= plan.count * width;
  return plan;
}

}  // namespace rushlight::cpu
