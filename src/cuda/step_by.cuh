// Fused optimiser steps: one launch for dozens of parameters, each element read once and written
// once. What a step does stands in kernels/optim.h; step_by is the kernel that a rule becomes.
#pragma once

#include "cpu/step_lists.h"
#include "cuda/column.h"
#include "cuda/each.cuh"
#include "kernels/optim.h"

namespace rushlight::cuda {

using cpu::StepLists;

constexpr int max_runs = 40;
constexpr int per_thread = 4;

// What a launch works on; it travels as an argument, of which there may be 4 KB.
struct StepBatch {
  int count = 0;
  char* data[max_runs][StepLists::max_lists];
  int64_t numel[max_runs];
  int64_t first_block[max_runs + 1];
  double extra[max_runs][rules::max_extra];
};

static_assert(sizeof(StepBatch) < 3584);

template <class T, class Step>
__global__ void __launch_bounds__(block_size) step_kernel(StepBatch batch, Step step) {
  using C = compute_t<T>;
  int run = 0;
  while (blockIdx.x >= batch.first_block[run + 1]) {
    run++;
  }
  const int64_t block = blockIdx.x - batch.first_block[run];
  const int64_t start = block * block_size * per_thread + threadIdx.x;
  const auto list = [&](int k) { return reinterpret_cast<T*>(batch.data[run][k]); };
  for (int j = 0; j < per_thread; j++) {
    const int64_t i = start + j * block_size;
    if (i >= batch.numel[run]) {
      return;
    }
    C x[StepLists::max_lists];
    rules::for_lists<Step>([&](auto k) { x[k] = widen(list(k)[i]); });
    step(x, batch.extra[run]);
    rules::for_lists<Step>([&](auto k) {
      if constexpr (k != 1) {  // gradients are only read
        list(k)[i] = narrow<T>(x[k]);
      }
    });
  }
}

// extra(i, to): what differs by parameter.
template <class Rule, class Extra>
void run_steps(const char* op, ArrayRef<TensorList> given, const Rule& rule, const Extra& extra) {
  StepLists lists(given);
  const std::vector<StepLists::Run>& runs = lists.runs();
  if (runs.empty()) {
    return;
  }
  const Launch launch(lists.device());
  for (size_t begin = 0; begin < runs.size();) {
    StepBatch batch;
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
        rule.template visit<compute_t<T>>([&](const auto& step) {
          step_kernel<T><<<static_cast<unsigned>(batch.first_block[batch.count]), block_size, 0,
                           launch.stream()>>>(batch, step);
        });
      });
      launch.done();
    }
    begin = end;
  }
  lists.write_back();
}

#include "kernels/step_by.inc"

}  // namespace rushlight::cuda
