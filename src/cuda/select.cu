// Ops whose result is as large as values say: nonzero, masked_select, masked_scatter. The places of
// true elements come from one scan over the mask (CUB); the host waits for their number.
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/column.h"
#include "cuda/each.cuh"
#include "cuda/memory.h"
#include "cuda/select.h"

namespace rushlight {

namespace cuda {

namespace {

struct ToCount {
  RL_INLINE int64_t operator()(uint8_t byte) const { return byte != 0; }
};

}  // namespace

Places places_of(const Tensor& mask) {
  Places places;
  const int64_t n = mask.numel();
  places.before = make_empty({n + 1}, kInt64, mask.device());
  fill_raw(places.before, 0);
  if (n == 0) {
    return places;
  }
  RL_CHECK(n <= 2147483647, "masks of more than 2^31 - 1 elements are not supported");
  const Launch launch(mask.device());
  const auto counts =
      thrust::make_transform_iterator(static_cast<const uint8_t*>(mask.data<uint8_t>()), ToCount());
  int64_t* const to = places.before.data<int64_t>() + 1;
  size_t bytes = 0;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, counts, to, static_cast<int>(n),
                                      launch.stream()));
  const Scratch room(std::max<size_t>(bytes, 1), mask.device());
  check(cub::DeviceScan::InclusiveSum(room.as<void>(), bytes, counts, to, static_cast<int>(n),
                                      launch.stream()));
  places.total = make_view(places.before, {{}, {}, n}).item().as<int64_t>();
  return places;
}

namespace {

struct Coordinates {
  int64_t* out;
  const uint8_t* mask;
  const int64_t* before;
  int ndim;
  int64_t sizes[64];
  __device__ void operator()(const int64_t (&at)[1]) const {
    if (mask[at[0]] == 0) {
      return;
    }
    int64_t* const row = out + before[at[0]] * ndim;
    int64_t rest = at[0];
    for (int d = ndim - 1; d >= 0; d--) {
      row[d] = rest % sizes[d];
      rest /= sizes[d];
    }
  }
};

// Elements move to, or come from, the place that their number among the true ones gives.
template <class T, bool Gather>
struct Compress {
  T* dense;
  T* element;
  const uint8_t* mask;
  const int64_t* before;
  __device__ void operator()(const int64_t (&at)[2]) const {  // element, number in the mask
    if (mask[at[1]] != 0) {
      if constexpr (Gather) {
        dense[before[at[1]]] = element[at[0]];
      } else {
        element[at[0]] = dense[before[at[1]]];
      }
    }
  }
};

template <bool Gather>
void compress(const Tensor& dense, const Tensor& element, const Tensor& mask, const Places& p) {
  const Launch launch(mask.device());
  visit_size(element.element_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<2>{mask.sizes(), {strides_over(element, mask.sizes()), mask.strides()}},
         Compress<T, Gather>{static_cast<T*>(dense.data_ptr()), static_cast<T*>(element.data_ptr()),
                             mask.data<uint8_t>(), p.before.data<int64_t>()});
  });
}

}  // namespace

}  // namespace cuda

Tensor cuda::nonzero(const Tensor& self) {
  RL_CHECK(self.dim() <= 64, "only tensors with up to 64 dims are supported");
  const Tensor mask = contiguous_raw(cast_raw(self, kBool));
  const Places p = places_of(mask);
  const Tensor out = make_empty({p.total, self.dim()}, kInt64, self.device());
  if (out.numel() == 0) {
    return out;
  }
  Coordinates f{out.data<int64_t>(),
                mask.data<uint8_t>(),
                p.before.data<int64_t>(),
                static_cast<int>(self.dim()),
                {}};
  std::copy(self.sizes().begin(), self.sizes().end(), f.sizes);
  const Launch launch(self.device());
  each(launch, Space<1>{{mask.numel()}, {DimVector{1}}}, f);
  return out;
}

Tensor cuda::masked_select(const Tensor& self, const Tensor& mask) {
  RL_CHECK(mask.dtype() == kBool, "masked_select: expected BoolTensor for mask");
  const DimVector sizes = broadcast_sizes(self.sizes(), mask.sizes());
  const Device device = self.is_cpu() ? mask.device() : self.device();
  const Tensor model = make_empty({0}, self.dtype(), device);
  const Tensor where = contiguous_raw(expand_raw(on_device(mask, model), sizes));
  const Tensor from = on_device(self, model);
  const Places p = places_of(where);
  const Tensor out = make_empty({p.total}, self.dtype(), device);
  if (out.numel() != 0) {
    compress<true>(out, from, where, p);
  }
  return out;
}

void cuda::masked_scatter(const Tensor& out, const Tensor& mask, const Tensor& source) {
  const Tensor where = contiguous_raw(expand_raw(on_device(mask, out), out.sizes()));
  const Places p = places_of(where);
  RL_CHECK(p.total <= source.numel(), "masked_scatter: the mask has ", p.total,
           " true elements, but source only ", source.numel());
  if (p.total != 0) {
    compress<false>(contiguous_raw(on_device(source, out)), out, where, p);
  }
}

}  // namespace rushlight
