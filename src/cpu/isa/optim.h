// What the fused optimiser steps share: pieces of all parameters and their states, in parallel.
#pragma once

#include "core/parallel.h"
#include "cpu/step_lists.h"

namespace rushlight::cpu::RL_ISA {

// Calls f(Tag<T>, at, n, i) for pieces of every parameter i; at(k) is the piece's first element in
// list k.
template <class F>
void for_all(const char* op, StepLists& lists, const F& f) {
  constexpr int64_t grain = 32768;
  parallel_for(0, lists.numel(), grain, [&](int64_t begin, int64_t end) {
    lists.for_pieces(begin, end, [&](size_t i, int64_t from, int64_t to) {
      const StepLists::Run& run = lists.runs()[i];
      visit_dtype<set_floating>(op, run.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const auto at = [&](int k) {
          return reinterpret_cast<T*>(run.data[k]) + (run.data[k] != nullptr ? from : 0);
        };
        f(tag, at, to - from, i);
      });
    });
  });
}

// Calls f<flag>().
template <class F>
void with_flag(bool flag, const F& f) {
  if (flag) {
    f.template operator()<true>();
  } else {
    f.template operator()<false>();
  }
}

}  // namespace rushlight::cpu::RL_ISA
