// What the steps of optimisers accept: lists of one length whose tensors match the parameters.
#include "ops/step_checks.h"

#include "core/op_support.h"

namespace rushlight {

namespace {

void check_list(const char* op, const char* name, const std::vector<Tensor>& list,
                const std::vector<Tensor>& params) {
  RL_CHECK(list.size() == params.size(), op, ": ", name, " has ", list.size(), " tensors for ",
           params.size(), " parameters");
  for (size_t i = 0; i < list.size(); i++) {
    RL_CHECK(list[i].defined(), op, ": ", name, "[", i, "] is None");
    RL_CHECK(list[i].sizes() == params[i].sizes(), op, ": ", name, "[", i, "] has shape ",
             list[i].sizes(), ", its parameter ", params[i].sizes());
    RL_CHECK(list[i].dtype() == params[i].dtype(), op, ": ", name, "[", i, "] is ",
             dtype_info(list[i].dtype()).name, ", its parameter ",
             dtype_info(params[i].dtype()).name);
    RL_CHECK(list[i].device() == params[i].device(), op, ": ", name, "[", i,
             "] lies on another device than its parameter");
    check_no_internal_overlap(op, list[i]);
  }
}

void check_params(const char* op, const std::vector<Tensor>& params) {
  for (size_t i = 0; i < params.size(); i++) {
    RL_CHECK(params[i].defined(), op, ": params[", i, "] is None");
    if (!is_differentiable(params[i].dtype())) {
      dtype_not_implemented(op, params[i].dtype());
    }
    check_no_internal_overlap(op, params[i]);
  }
}

// A gradient may be expanded, for it is only read.
void make_contiguous(std::vector<Tensor>& grads) {
  for (Tensor& g : grads) {
    g = g.defined() && has_internal_overlap(g) ? contiguous_raw(g) : g;
  }
}

void check_counter(const char* op, const StepList& counter, size_t params, bool may_be_wide) {
  RL_CHECK(counter.tensors.size() == params, op, ": ", counter.name, " has ",
           counter.tensors.size(), " tensors for ", params, " parameters");
  for (const Tensor& t : counter.tensors) {
    RL_CHECK(t.defined() && t.numel() == 1 && (t.is_cpu() || t.is_meta()) &&
                 (t.dtype() == kFloat32 || (may_be_wide && t.dtype() == kFloat64)),
             op, ": ", counter.name, " must be float32 ", may_be_wide ? "or float64 " : "",
             "tensors of one element on the cpu");
  }
}

}  // namespace

void check_lists(const char* op, ArrayRef<StepList> lists, ArrayRef<StepList> counters,
                 unsigned touched) {
  const std::vector<Tensor>& params = lists.front().tensors;
  check_params(op, params);
  for (size_t k = 1; k < lists.size(); k++) {
    const auto& [name, tensors] = lists[k];
    if ((touched >> k & 1) == 0) {
      tensors.clear();
      continue;
    }
    if (k == 1) {
      make_contiguous(tensors);
    }
    check_list(op, name, tensors, params);
  }
  for (const StepList& counter : counters) {
    check_counter(op, counter, params.size(), &counter != &counters.back());
  }
}

void make_real(ArrayRef<StepList> lists) {
  for (const StepList& list : lists) {
    for (Tensor& t : list.tensors) {
      if (is_complex(t.dtype())) {
        t = make_view(t, views::view_as_real(t));
      }
    }
  }
}

}  // namespace rushlight
