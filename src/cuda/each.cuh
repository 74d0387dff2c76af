// Kernels that are no formula but have one thread for each element of some shape: `each` walks over
// the shape with N operands and calls f(offsets) on the device, offsets in elements or bytes as the
// strides say. F is a plain struct with a `__device__ void operator()(const int64_t (&at)[N])`.
#pragma once

#include <array>

#include "core/op_support.h"
#include "cuda/element.cuh"
#include "cuda/offset.h"
#include "cuda/runtime.h"
#include "kernels/by_size.h"

namespace rushlight::cuda {

template <int N, class F>
__global__ void __launch_bounds__(block_size) each_kernel(uint32_t n, Walk<N> walk, F f) {
  const uint32_t element = blockIdx.x * block_size + threadIdx.x;
  if (element < n) {
    int64_t at[N];
    walk.offsets(element, at);
    f(at);
  }
}

// A shape and the strides of N operands over it, outermost dimension first.
template <int N>
struct Space {
  DimVector sizes;
  std::array<DimVector, N> strides;

  int64_t numel() const { return product(sizes); }
};

// Innermost first, without dimensions of size 1, joined where they lie seamlessly.
template <int N>
struct FlatSpace {
  int ndim = 0;
  int64_t sizes[64];
  int64_t strides[64][N];
};
template <int N>
FlatSpace<N> flatten(const Space<N>& space) {
  FlatSpace<N> flat;
  for (size_t k = space.sizes.size(); k-- > 0;) {
    if (space.sizes[k] == 1) {
      continue;
    }
    bool joins = flat.ndim > 0;
    for (int i = 0; i < N && joins; i++) {
      joins = space.strides[i][k] == flat.strides[flat.ndim - 1][i] * flat.sizes[flat.ndim - 1];
    }
    if (joins) {
      flat.sizes[flat.ndim - 1] *= space.sizes[k];
      continue;
    }
    flat.sizes[flat.ndim] = space.sizes[k];
    for (int i = 0; i < N; i++) {
      flat.strides[flat.ndim][i] = space.strides[i][k];
    }
    flat.ndim++;
  }
  return flat;
}

// Calls f(walk, numel) for pieces of at most 2^31 - 1 elements and Walk::max_dims dimensions.
template <int N, class F>
void for_each_walk(FlatSpace<N> flat, std::array<int64_t, N> base, const F& f) {
  int64_t numel = 1;
  for (int d = 0; d < flat.ndim; d++) {
    numel *= flat.sizes[d];
  }
  if (numel == 0) {
    return;
  }
  if (numel <= 2147483647 && flat.ndim <= Walk<N>::max_dims) {
    Walk<N> walk;
    walk.ndim = flat.ndim;
    for (int d = 0; d < flat.ndim; d++) {
      walk.sizes[d] = Divider(static_cast<uint32_t>(flat.sizes[d]));
      for (int i = 0; i < N; i++) {
        walk.strides[d][i] = flat.strides[d][i];
      }
    }
    for (int i = 0; i < N; i++) {
      walk.base[i] = base[i];
    }
    f(walk, numel);
    return;
  }
  const int last = flat.ndim - 1;
  const int64_t size = flat.sizes[last];
  const int64_t step = flat.ndim > Walk<N>::max_dims ? 1 : (size + 1) / 2;
  for (int64_t at = 0; at < size; at += step) {
    FlatSpace<N> part = flat;
    part.sizes[last] = step < size - at ? step : size - at;
    part.ndim -= part.sizes[last] == 1 && last > 0 ? 1 : 0;
    std::array<int64_t, N> moved = base;
    for (int i = 0; i < N; i++) {
      moved[i] += at * flat.strides[last][i];
    }
    for_each_walk<N>(part, moved, f);
  }
}

template <int N, class F>
void each(const Launch& launch, const Space<N>& space, F f) {
  for_each_walk<N>(flatten(space), {}, [&](const Walk<N>& walk, int64_t n) {
    each_kernel<N, F>
        <<<blocks_for(n), block_size, 0, launch.stream()>>>(static_cast<uint32_t>(n), walk, f);
  });
  launch.done();
}

// Strides of t as an operand over its own sizes; those of dimensions that it lacks are 0.
inline DimVector strides_over(const Tensor& t, IntArrayRef sizes) {
  DimVector out(sizes.size());
  const size_t shift = sizes.size() - t.sizes().size();
  for (size_t d = 0; d < sizes.size(); d++) {
    out[d] = d < shift || (t.sizes()[d - shift] == 1 && sizes[d] != 1) ? 0 : t.strides()[d - shift];
  }
  return out;
}
inline DimVector with_zero(DimVector strides, int64_t dim) {
  if (!strides.empty()) {
    strides[static_cast<size_t>(dim)] = 0;
  }
  return strides;
}

// A tensor of the host's (a 0-d one may meet others) on the device of `like`.
inline Tensor on_device(const Tensor& t, const Tensor& like) {
  if (!t.defined() || t.device() == like.device()) {
    return t;
  }
  const Tensor moved = make_empty(t.sizes(), t.dtype(), like.device());
  copy_raw(moved, t);
  return moved;
}

}  // namespace rushlight::cuda
