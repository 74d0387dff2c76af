// What the steps of optimisers accept, for the shape functions that the generator writes.
#pragma once

#include <vector>

#include "generated/contracts.h"
#include "kernels/optim.h"

namespace rushlight {

struct StepList {
  const char* name;
  std::vector<Tensor>& tensors;
};

// Checks the lists of a step: parameters, gradients, what the rule keeps. Those that it does not
// touch (kernels/optim.h) are emptied; gradients may be expanded, for they are only read.
void check_lists(const char* op, ArrayRef<StepList> lists, ArrayRef<StepList> counters,
                 unsigned touched);
// Complex numbers are optimised as pairs of real ones.
void make_real(ArrayRef<StepList> lists);

template <class Rule>
void check_step(const char* op, ArrayRef<StepList> lists, ArrayRef<StepList> counters,
                const Rule& rule) {
  check_lists(op, lists, counters, rules::touched_lists(rule));
  make_real(lists);
}

}  // namespace rushlight
