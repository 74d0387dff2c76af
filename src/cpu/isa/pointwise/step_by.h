// Fused optimiser steps: every parameter, gradient and state is read once and written once. What a
// step does stands in kernels/optim.h; elements do not depend on each other, so bits do not depend
// on threads. step_by is the kernel that a rule becomes.
#pragma once

#include "core/parallel.h"
#include "cpu/step_lists.h"
#include "generated/kernels.h"
#include "kernels/optim.h"

namespace rushlight::cpu::RL_ISA {

// Elements [from, from + n) of the lists that the step touches.
template <class T, class Step>
void step_run(char* const* data, int64_t from, int64_t n, const Step& rule, const double* given) {
  using C = compute_t<T>;
  const Step step = rule;  // copies that no store to a list can change
  const double extra[] = {given[0], given[1], given[2]};
  constexpr int max = StepLists::max_lists;
  T* list[max];
  for (int k = 0; k < max; k++) {
    list[k] = reinterpret_cast<T*>(data[k]) + ((Step::lists >> k & 1) != 0 ? from : 0);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    C x[max];
    rules::for_lists<Step>([&](auto k) { x[k] = static_cast<C>(list[k][i]); });
    step(x, extra);
    rules::for_lists<Step>([&](auto k) {
      if constexpr (k != 1) {  // gradients are only read
        list[k][i] = static_cast<T>(x[k]);
      }
    });
  }
}

// extra(i, to): what differs by parameter.
template <class Rule, class Extra>
void run_steps(const char* op, ArrayRef<TensorList> given, const Rule& rule, const Extra& extra) {
  StepLists lists(given);
  constexpr int64_t grain = 32768;
  parallel_for(0, lists.numel(), grain, [&](int64_t begin, int64_t end) {
    lists.for_pieces(begin, end, [&](size_t i, int64_t from, int64_t to) {
      const StepLists::Run& run = lists.runs()[i];
      double given[rules::max_extra] = {};
      extra(i, given);
      visit_dtype<set_floating>(op, run.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        rule.template visit<compute_t<T>>(
            [&](const auto& step) { step_run<T>(run.data, from, to - from, step, given); });
      });
    });
  });
  lists.write_back();
}

#include "kernels/step_by.inc"

}  // namespace rushlight::cpu::RL_ISA
