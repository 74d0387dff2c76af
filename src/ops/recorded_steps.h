// The steps of optimisers as ops that autograd records: the rules of kernels/optim.h for Recorded.
#pragma once

#include "ops/recorded.h"
// Behind what formulas call.
#include "cpu/step_lists.h"
#include "ops/step_checks.h"

namespace rushlight::recorded {

// As kernels do it, one parameter after the other; lists that are not used are empty.
template <class Rule, class Extra>
void run_steps(const char*, ArrayRef<TensorList> lists, const Rule& rule, const Extra& extra) {
  constexpr size_t max = cpu::StepLists::max_lists;
  for (size_t i = 0; i < lists.front().size(); i++) {
    double given[rules::max_extra] = {};
    extra(i, given);
    Tensor place[max];
    Recorded x[max];
    for (size_t k = 0; k < lists.size(); k++) {
      if (!lists[k].empty()) {
        place[k] = lists[k][i].is_complex() ? view_as_real(lists[k][i]) : lists[k][i];
        // A copy, which is not changed when the new value is written.
        x[k] = Recorded(k == 1 ? place[k] : place[k].clone());
      }
    }
    rule.template visit<Recorded>([&](const auto& step) { step(x, given); });
    for (size_t k = 0; k < lists.size(); k++) {
      if (k != 1 && place[k].defined()) {
        place[k].copy_(x[k].tensor());
      }
    }
  }
}

#include "kernels/step_by.inc"

}  // namespace rushlight::recorded

namespace rushlight {

struct NamedTensors {
  const char* name;
  TensorList tensors;
};

template <class Rule>
void record_step(const char* op, ArrayRef<NamedTensors> lists, ArrayRef<NamedTensors> counters,
                 const Rule& rule) {
  const size_t count = lists.size();
  std::vector<std::vector<Tensor>> checked;  // in the place of what is given, which is recorded
  checked.reserve(count + counters.size());
  std::vector<StepList> said;
  for (const ArrayRef<NamedTensors> group : {lists, counters}) {
    for (const NamedTensors& list : group) {
      checked.push_back(list.tensors.vec());
      said.push_back({list.name, checked.back()});
    }
  }
  const ArrayRef<StepList> all = said;
  check_lists(op, all.slice(0, count), all.slice(count), rules::touched_lists(rule));
  std::vector<TensorList> used, counts;
  for (size_t k = 0; k < count; k++) {
    used.push_back(checked[k].empty() ? TensorList() : lists[k].tensors);
  }
  for (const NamedTensors& list : counters) {
    counts.push_back(list.tensors);
  }
  recorded::step_by(op, used, counts, rule);
}

}  // namespace rushlight
