// Fused optimiser steps: one launch for dozens of parameters, each element read once and written
// once, with the arithmetic of src/cpu/isa, operation by operation. A step is a plain struct whose
// operator() does one element: x[k] is its value in list k, written back where it is changed. To
// add one: such a struct and a call of run_steps.
#pragma once

#include "cpu/step_lists.h"
#include "cuda/each.cuh"
#include "kernels/math.h"

namespace rushlight::cuda {

using cpu::StepLists;

inline constexpr int max_runs = 40;
inline constexpr int per_thread = 4;
inline constexpr int max_extra = 3;

// What a launch works on; it travels as an argument, of which there may be 4 KB.
struct Batch {
  int count = 0;
  char* data[max_runs][StepLists::max_lists];
  int64_t numel[max_runs];
  int64_t first_block[max_runs + 1];
  double extra[max_runs][max_extra];  // what differs by parameter
};

static_assert(sizeof(Batch) < 3584);

template <class T, class Step>
__global__ void __launch_bounds__(block_size) step_kernel(Batch batch, Step step) {
  using C = compute_t<T>;
  int run = 0;
  while (blockIdx.x >= batch.first_block[run + 1]) {
    run++;
  }
  const int64_t block = blockIdx.x - batch.first_block[run];
  const int64_t start = block * block_size * per_thread + threadIdx.x;
  for (int k = 0; k < per_thread; k++) {
    const int64_t i = start + k * block_size;
    if (i >= batch.numel[run]) {
      return;
    }
    C x[StepLists::max_lists];
    for (int l = 0; l < StepLists::max_lists; l++) {
      const T* const p = reinterpret_cast<const T*>(batch.data[run][l]);
      x[l] = p != nullptr ? widen(p[i]) : C(0);
    }
    step(x, batch.extra[run]);
    for (int l = 0; l < StepLists::max_lists; l++) {
      T* const p = reinterpret_cast<T*>(batch.data[run][l]);
      if (p != nullptr && l != 1) {  // gradients are only read
        p[i] = narrow<T>(x[l]);
      }
    }
  }
}

// Calls make(Tag<C>{}) for the step in a compute type; extra(i) gives what differs by parameter.
template <class Make, class Extra>
void run_steps(const char* op, const Tensor& like, StepLists& lists, const Make& make,
               const Extra& extra) {
  const Launch launch(like.device());
  const std::vector<StepLists::Run>& runs = lists.runs();
  for (size_t begin = 0; begin < runs.size();) {
    Batch batch;
    batch.first_block[0] = 0;
    size_t end = begin;
    for (; end < runs.size() && batch.count < max_runs && runs[end].dtype == runs[begin].dtype;
         end++) {
      const StepLists::Run& run = runs[end];
      if (run.numel == 0) {
        continue;
      }
      const int at = batch.count++;
      std::copy(std::begin(run.data), std::end(run.data), batch.data[at]);
      batch.numel[at] = run.numel;
      const int64_t blocks = (run.numel + block_size * per_thread - 1) / (block_size * per_thread);
      batch.first_block[at + 1] = batch.first_block[at] + blocks;
      extra(end, batch.extra[at]);
    }
    if (batch.count > 0) {
      RL_CHECK(batch.first_block[batch.count] <= 2147483647, op, ": parameters are too large");
      visit_dtype<set_floating>(op, runs[begin].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const auto step = make(Tag<compute_t<T>>{});
        step_kernel<T><<<static_cast<unsigned>(batch.first_block[batch.count]), block_size, 0,
                         launch.stream()>>>(batch, step);
      });
      launch.done();
    }
    begin = end;
  }
  lists.write_back();
}
inline constexpr auto nothing = [](size_t, double (&)[max_extra]) {};

template <class C>
__device__ C gradient(C grad, C param, C decay, bool maximize) {
  const C g = maximize ? -grad : grad;
  return decay != C(0) ? math::fused(decay, param, g) : g;
}

}  // namespace rushlight::cuda
