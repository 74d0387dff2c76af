// Kernels that work on rows: a *team* of threads (a block, a warp or one thread) does each, reads
// it as often as it likes and agrees on sums and maxima. A row is n elements, `inner` apart; the
// body is a plain struct with
//
//   template <class Team> __device__ void operator()(const Team& team, int64_t row) const;
//
// which loops from team.rank() by team.size(). Rows whose elements lie apart get one thread each,
// so that neighbouring threads read neighbouring elements. The team is chosen by the shape alone.
#pragma once

#include "cuda/each.cuh"
#include "cuda/memory.h"
#include "kernels/math.h"

namespace rushlight::cuda {

struct SumOf {
  template <class A>
  __device__ static A combine(A a, A b) {
    return a + b;
  }
};
struct MaxOf {
  template <class A>
  __device__ static A combine(A a, A b) {
    return math::maximum(a, b);
  }
};

struct ThreadTeam {
  __device__ int rank() const { return 0; }
  __device__ int size() const { return 1; }
  template <class Op, class A>
  __device__ A all(A x) const {
    return x;
  }
};

struct WarpTeam {
  __device__ int rank() const { return static_cast<int>(threadIdx.x % 32); }
  __device__ int size() const { return 32; }
  // What all lanes hold, combined; every lane gets the same.
  template <class Op, class A>
  __device__ A all(A x) const {
    for (int step = 16; step > 0; step /= 2) {
      x = Op::combine(x, __shfl_down_sync(0xffffffffu, x, step));
    }
    return __shfl_sync(0xffffffffu, x, 0);
  }
};

struct BlockTeam {
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return block_size; }
  template <class Op, class A>
  __device__ A all(A x) const {
    __shared__ A room[32];
    const WarpTeam warp;
    const int which = static_cast<int>(threadIdx.x / 32);
    x = warp.all<Op>(x);
    __syncthreads();  // an earlier call may still be read
    if (warp.rank() == 0) {
      room[which] = x;
    }
    __syncthreads();
    A total = room[0];
    for (int i = 1; i < block_size / 32; i++) {
      total = Op::combine(total, room[i]);
    }
    return total;
  }
};

template <class Body>
__global__ void __launch_bounds__(block_size) rows_by_block(int64_t rows, Body body) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    body(BlockTeam(), row);
  }
}
template <class Body>
__global__ void __launch_bounds__(block_size) rows_by_warp(int64_t rows, Body body) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * block_size + threadIdx.x) / 32;
  if (row < rows) {
    body(WarpTeam(), row);
  }
}
template <class Body>
__global__ void __launch_bounds__(block_size) rows_by_thread(int64_t rows, Body body) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * block_size + threadIdx.x;
  if (row < rows) {
    body(ThreadTeam(), row);
  }
}

// Runs the body for every row of n elements that lie `inner` apart.
template <class Body>
void for_rows(const Launch& launch, int64_t rows, int64_t n, int64_t inner, const Body& body) {
  if (rows == 0) {
    return;
  }
  if (inner > 1) {
    rows_by_thread<Body><<<blocks_for(rows), block_size, 0, launch.stream()>>>(rows, body);
  } else if (n <= 1024) {
    rows_by_warp<Body>
        <<<blocks_for(rows, block_size / 32), block_size, 0, launch.stream()>>>(rows, body);
  } else {
    const auto blocks = static_cast<unsigned>(rows < 65536 ? rows : 65536);
    rows_by_block<Body><<<blocks, block_size, 0, launch.stream()>>>(rows, body);
  }
  launch.done();
}

// A contiguous tensor as [outer, n, inner] around a dimension; row number r is
// [r / inner, :, r % inner].
struct DimSplit {
  int64_t rows = 1;
  int64_t n = 1;
  int64_t inner = 1;
  __host__ __device__ int64_t first(int64_t row) const {
    return row / inner * n * inner + row % inner;
  }
};
inline DimSplit dim_split_of(const Tensor& t, int64_t dim) {
  DimSplit s;
  int64_t outer = 1;
  for (int64_t d = 0; d < t.dim(); d++) {
    const int64_t size = t.sizes()[d];
    if (d < dim) {
      outer *= size;
    } else if (d == dim) {
      s.n = size;
    } else {
      s.inner *= size;
    }
  }
  s.rows = outer * s.inner;
  return s;
}

}  // namespace rushlight::cuda
