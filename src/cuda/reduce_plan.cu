// How a reduction is laid out over threads and blocks.
#include "cuda/reduce.cuh"

namespace rushlight::cuda {

namespace {

struct Dim {
  int64_t size;
  int64_t stride;  // bytes
};

// Innermost first, joined where they lie seamlessly.
void add(std::vector<Dim>& dims, int64_t size, int64_t stride) {
  if (size == 1) {
    return;
  }
  if (!dims.empty() && stride == dims.back().stride * dims.back().size) {
    dims.back().size *= size;
    return;
  }
  dims.push_back({size, stride});
}

bool walkable(const std::vector<Dim>& dims, int64_t count) {
  return dims.size() <= 1 || (dims.size() <= Walk<1>::max_dims && count <= 2147483647);
}

Walk<1> walk_of(const std::vector<Dim>& dims) {
  Walk<1> walk;
  walk.ndim = static_cast<int>(dims.size());
  for (size_t d = 0; d < dims.size(); d++) {
    walk.sizes[d] = Divider(static_cast<uint32_t>(std::min<int64_t>(dims[d].size, 2147483647)));
    walk.strides[d][0] = dims[d].stride;
  }
  return walk;
}

int power_of_two(int64_t n, int most) {
  int p = 1;
  while (p < most && p < n) {
    p *= 2;
  }
  return p;
}

}  // namespace

ReduceShape plan_reduction(const Tensor& self, OptionalIntArrayRef dims, bool ordered,
                           Tensor& keep) {
  const int64_t n = self.dim();
  std::vector<bool> is_reduced(static_cast<size_t>(n), !dims.has_value());
  if (dims.has_value()) {
    for (const int64_t d : dims.value()) {
      if (d < n) {  // a 0-d tensor takes dim 0
        is_reduced[static_cast<size_t>(d)] = true;
      }
    }
  }
  ReduceShape shape;
  shape.dtype = self.dtype();
  std::vector<Dim> kept;
  std::vector<Dim> reduced;
  std::vector<Dim> loose;
  const int64_t width = self.element_size();
  for (int64_t d = n; d-- > 0;) {
    const int64_t size = self.sizes()[d];
    const int64_t stride = self.strides()[d] * width;
    if (is_reduced[static_cast<size_t>(d)]) {
      shape.count *= size;
      loose.push_back({size, stride});
    } else {
      shape.outputs *= size;
      add(kept, size, stride);
    }
  }
  if (shape.outputs == 0 || shape.count == 0) {
    shape.piece = 0;
    return shape;  // nothing is read
  }
  if (!ordered) {
    std::stable_sort(loose.begin(), loose.end(),
                     [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  }
  for (const Dim& dim : loose) {
    add(reduced, dim.size, dim.stride);
  }
  if (!walkable(kept, shape.outputs) || !walkable(reduced, shape.count)) {
    // A dense copy with the reduced dimensions last has one of each.
    ViewSpec permuted{{}, {}, self.storage_offset()};
    DimVector last;
    for (const bool wanted : {false, true}) {
      for (int64_t d = 0; d < n; d++) {
        if (is_reduced[static_cast<size_t>(d)] == wanted) {
          permuted.sizes.push_back(self.sizes()[d]);
          permuted.strides.push_back(self.strides()[d]);
          if (wanted) {
            last.push_back(static_cast<int64_t>(permuted.sizes.size()) - 1);
          }
        }
      }
    }
    const Tensor view = make_view(self, permuted);
    const Tensor dense = make_empty(view.sizes(), view.dtype(), view.device());
    copy_raw(dense, view);
    keep = dense;
    return plan_reduction(keep, OptionalIntArrayRef(IntArrayRef(last)), ordered, keep);
  }
  shape.in = static_cast<const char*>(self.data_ptr());
  shape.kept = walk_of(kept);
  shape.reduced = walk_of(reduced);
  shape.inner = kept.empty() || reduced.empty() || reduced[0].stride <= kept[0].stride;
  shape.width = shape.inner ? power_of_two((shape.count + 3) / 4, block_size)
                            : power_of_two((shape.count + 15) / 16, 8);
  const int64_t groups = block_size / shape.width;
  const int64_t blocks = (shape.outputs + groups - 1) / groups;
  // Enough blocks to fill a large GPU, each with enough to do.
  constexpr int64_t enough = 1024;
  const int64_t least = static_cast<int64_t>(shape.width) * 32;
  if (blocks > 0 && blocks < enough / 2 && shape.count > least) {
    shape.splits = std::min((shape.count + least - 1) / least, (enough + blocks - 1) / blocks);
  }
  shape.piece = (shape.count + shape.splits - 1) / shape.splits;
  return shape;
}

}  // namespace rushlight::cuda
