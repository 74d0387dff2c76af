// Scans along a dimension. A block walks over a row in tiles and carries the total from one to the
// next; rows whose elements lie apart have a thread each. scan_by is the kernel that a formula of
// src/kernels/reduce.h becomes as a running reduction.
#pragma once

#include "cuda/column.h"
#include "cuda/rows.cuh"
#include "kernels/math.h"
#include "kernels/reduce.h"

namespace rushlight::cuda {

// A scan is a struct: Acc, identity(), read(element), combine(earlier, later), write(acc, at).
template <class Scan>
__global__ void __launch_bounds__(block_size) scan_rows(Scan scan, DimSplit split) {
  using Acc = typename Scan::Acc;
  __shared__ alignas(16) char room[block_size * sizeof(Acc)];
  Acc* const shared = reinterpret_cast<Acc*>(room);
  const int t = static_cast<int>(threadIdx.x);
  for (int64_t row = blockIdx.x; row < split.rows; row += gridDim.x) {
    Acc carry = scan.identity();
    for (int64_t tile = 0; tile < split.n; tile += block_size) {
      const int64_t i = tile + t;
      const int64_t at = row * split.n + i;
      Acc acc = i < split.n ? scan.read(at, i) : scan.identity();
      shared[t] = acc;
      __syncthreads();
      for (int step = 1; step < block_size; step *= 2) {  // Hillis and Steele
        if (t >= step) {
          acc = scan.combine(shared[t - step], acc);
        }
        __syncthreads();
        shared[t] = acc;
        __syncthreads();
      }
      acc = scan.combine(carry, acc);
      if (i < split.n) {
        scan.write(acc, at);
      }
      carry = scan.combine(carry, shared[block_size - 1]);
      __syncthreads();
    }
  }
}

template <class Scan>
__global__ void __launch_bounds__(block_size) scan_columns(Scan scan, DimSplit split) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * block_size + threadIdx.x;
  if (row >= split.rows) {
    return;
  }
  typename Scan::Acc acc = scan.identity();
  const int64_t first = split.first(row);
  for (int64_t i = 0; i < split.n; i++) {
    const int64_t at = first + i * split.inner;
    acc = scan.combine(acc, scan.read(at, i));
    scan.write(acc, at);
  }
}

template <class Scan>
void run_scan(const Tensor& out, int64_t dim, const Scan& scan) {
  if (out.numel() == 0) {
    return;
  }
  const DimSplit split = dim_split_of(out, dim);
  const Launch launch(out.device());
  if (split.inner == 1) {
    const auto blocks = static_cast<unsigned>(split.rows < 65536 ? split.rows : 65536);
    scan_rows<Scan><<<blocks, block_size, 0, launch.stream()>>>(scan, split);
  } else {
    scan_columns<Scan><<<blocks_for(split.rows), block_size, 0, launch.stream()>>>(scan, split);
  }
  launch.done();
}

template <class F, class R>
struct Running {
  using Acc = typename F::type;
  R* out;
  const char* in;
  ScalarType dtype;
  int64_t width;
  __device__ Acc identity() const { return F::identity(); }
  __device__ Acc read(int64_t at, int64_t) const {
    return convert<Acc>(load_as<compute_t<Acc>>(in + at * width, dtype));
  }
  __device__ Acc combine(Acc a, Acc b) const { return F::combine(a, b); }
  __device__ void write(Acc acc, int64_t at) const {
    out[at] = narrow<R>(convert<compute_t<R>>(acc));
  }
};

// `Set`: the dtypes of the result.
template <template <class> class F, uint32_t Set>
void scan_by(const char* name, InputList outs, const Tensor& given, int64_t dim) {
  const Tensor& out = *outs[0];
  const Tensor self = contiguous_raw(given);
  visit_dtype<Set>(name, out.dtype(), [&](auto tag) {
    using R = typename decltype(tag)::type;
    using A = typename fold::computed_in<R, fold::Over::Result>::type;
    run_scan(out, dim,
             Running<F<A>, R>{out.data<R>(), static_cast<const char*>(self.data_ptr()),
                              self.dtype(), self.element_size()});
  });
}

}  // namespace rushlight::cuda
