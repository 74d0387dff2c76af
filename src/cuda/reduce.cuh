// The driver of reductions. A reduction is a plain struct:
//
//   using A = …;    // what elements are read as
//   using Acc = …;  // a partial result
//   __device__ Acc identity() const;
//   __device__ Acc step(Acc acc, A x, int64_t index) const;  // index: place among the reduced
//   __device__ Acc combine(Acc a, Acc b) const;
//   __device__ void finish(Acc acc, int64_t out) const;      // writes output number `out`
//
// A group of threads reduces each output, first in registers, then by a tree in shared memory;
// where there are few outputs, several blocks take a piece of each and a second kernel combines
// what they found. How work is cut depends on shapes only, so the bits of a result depend neither
// on the GPU nor on what else runs.
#pragma once

#include <algorithm>

#include "cuda/each.cuh"
#include "cuda/memory.h"

namespace rushlight::cuda {

struct ReduceShape {
  const char* in = nullptr;
  ScalarType dtype = ScalarType::Undefined;
  Walk<1> kept;     // offsets in bytes; one dimension may be longer than 2^31
  Walk<1> reduced;  // the same
  int64_t outputs = 1;
  int64_t count = 1;   // elements for each output
  int width = 1;       // threads for each output: a power of two
  bool inner = true;   // neighbouring threads share an output; else they have neighbouring ones
  int64_t splits = 1;  // pieces that an output's elements are cut into
  int64_t piece = 1;   // elements of a piece
};

__device__ __forceinline__ int64_t offset_in(const Walk<1>& walk, int64_t i) {
  if (walk.ndim <= 1) {
    return walk.ndim == 0 ? 0 : i * walk.strides[0][0];
  }
  int64_t at[1];
  walk.offsets(static_cast<uint32_t>(i), at);
  return at[0];
}

template <class Op>
__device__ typename Op::Acc combine_block(const Op& op, typename Op::Acc acc, int width,
                                          int distance) {
  using Acc = typename Op::Acc;
  __shared__ alignas(16) char room[block_size * sizeof(Acc)];
  Acc* const shared = reinterpret_cast<Acc*>(room);
  const int rank = distance == 1 ? threadIdx.x % width : threadIdx.x / distance;
  shared[threadIdx.x] = acc;
  __syncthreads();
  for (int half = width / 2; half > 0; half /= 2) {
    if (rank < half) {
      acc = op.combine(acc, shared[threadIdx.x + half * distance]);
      shared[threadIdx.x] = acc;
    }
    __syncthreads();
  }
  return acc;
}

// S: the dtype that is read without a conversion by hand.
template <class S, class Op>
__global__ void __launch_bounds__(block_size)
    reduce_kernel(Op op, ReduceShape shape, typename Op::Acc* partial) {
  using A = typename Op::A;
  using Acc = typename Op::Acc;
  const int groups = block_size / shape.width;
  const int rank = shape.inner ? threadIdx.x % shape.width : threadIdx.x / groups;
  const int group = shape.inner ? threadIdx.x / shape.width : threadIdx.x % groups;
  const int64_t out = static_cast<int64_t>(blockIdx.x) * groups + group;
  const int64_t begin = blockIdx.y * shape.piece;
  const int64_t end = begin + shape.piece < shape.count ? begin + shape.piece : shape.count;
  constexpr int lanes = 4;
  Acc acc[lanes];
  for (int k = 0; k < lanes; k++) {
    acc[k] = op.identity();
  }
  if (out < shape.outputs) {
    const char* const in = shape.in + offset_in(shape.kept, out);
    const auto load = [&](int64_t i) -> A {
      const char* const p = in + offset_in(shape.reduced, i);
      if (shape.dtype == dtype_of_v<S>) {
        return convert<A>(widen(*reinterpret_cast<const S*>(p)));
      }
      return load_other<A>(p, shape.dtype);
    };
    int64_t i = begin + rank;
    for (; i + (lanes - 1) * shape.width < end; i += lanes * shape.width) {
      A x[lanes];
      for (int k = 0; k < lanes; k++) {
        x[k] = load(i + k * shape.width);
      }
      for (int k = 0; k < lanes; k++) {
        acc[k] = op.step(acc[k], x[k], i + k * shape.width);
      }
    }
    for (; i < end; i += shape.width) {
      acc[0] = op.step(acc[0], load(i), i);
    }
  }
  Acc total = op.combine(op.combine(acc[0], acc[1]), op.combine(acc[2], acc[3]));
  total = combine_block(op, total, shape.width, shape.inner ? 1 : groups);
  if (rank == 0 && out < shape.outputs) {
    if (partial != nullptr) {
      partial[out * shape.splits + blockIdx.y] = total;
    } else {
      op.finish(total, out);
    }
  }
}

template <class Op>
__global__ void __launch_bounds__(block_size)
    combine_kernel(Op op, const typename Op::Acc* partial, int64_t splits) {
  const int64_t out = blockIdx.x;
  typename Op::Acc acc = op.identity();
  for (int64_t i = threadIdx.x; i < splits; i += block_size) {
    acc = op.combine(acc, partial[out * splits + i]);
  }
  acc = combine_block(op, acc, block_size, 1);
  if (threadIdx.x == 0) {
    op.finish(acc, out);
  }
}

// Which dimensions of `self` are reduced; nothing means all. `ordered`: step is told places in the
// order of the input's indices.
ReduceShape plan_reduction(const Tensor& self, OptionalIntArrayRef dims, bool ordered,
                           Tensor& keep);

template <class S, class Op>
void reduce(const Tensor& self, OptionalIntArrayRef dims, bool ordered, const Op& op) {
  Tensor keep;  // a copy of self, where its layout is beyond the walks
  ReduceShape shape = plan_reduction(self, dims, ordered, keep);
  if (shape.outputs == 0) {
    return;
  }
  const Launch launch(self.device());
  const int groups = block_size / shape.width;
  const int64_t blocks = (shape.outputs + groups - 1) / groups;
  RL_CHECK(blocks <= 2147483647, "a reduction to ", shape.outputs, " elements is too large");
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(shape.splits));
  if (shape.splits == 1) {
    reduce_kernel<S, Op><<<grid, block_size, 0, launch.stream()>>>(op, shape, nullptr);
  } else {
    using Acc = typename Op::Acc;
    const Scratch partial(static_cast<size_t>(shape.outputs * shape.splits) * sizeof(Acc),
                          self.device());
    reduce_kernel<S, Op><<<grid, block_size, 0, launch.stream()>>>(op, shape, partial.as<Acc>());
    combine_kernel<Op><<<static_cast<unsigned>(shape.outputs), block_size, 0, launch.stream()>>>(
        op, partial.as<Acc>(), shape.splits);
  }
  launch.done();
}

}  // namespace rushlight::cuda
