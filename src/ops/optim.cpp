// What the fused optimiser steps accept: lists of one length whose tensors match the parameters.
#include <rushlight/ops.h>

#include "core/op_support.h"
#include "generated/contracts.h"

namespace rushlight {

namespace {

void check_list(const char* op, const char* name, std::vector<Tensor>& list,
                std::vector<Tensor>& params, bool needed) {
  if (!needed) {
    list.clear();
    return;
  }
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

void check_steps(const char* op, const std::vector<Tensor>& steps,
                 const std::vector<Tensor>& params) {
  RL_CHECK(steps.size() == params.size(), op, ": steps has ", steps.size(), " tensors for ",
           params.size(), " parameters");
  for (const Tensor& step : steps) {
    RL_CHECK(step.defined() && step.dtype() == kFloat32 && step.numel() == 1 &&
                 (step.is_cpu() || step.is_meta()),
             op, ": steps must be float32 tensors of one element on the cpu");
  }
}

// Complex numbers are optimised as pairs of real ones.
void as_real(std::vector<Tensor>& list) {
  for (Tensor& t : list) {
    if (is_complex(t.dtype())) {
      t = make_view(t, views::view_as_real(t));
    }
  }
}

// A list of the optimiser's state, one tensor for each parameter where it is needed.
struct State {
  const char* name;
  std::vector<Tensor>& list;
  bool needed = true;
};

// Checks all that a step takes, and leaves real tensors.
void check_step(const char* op, std::vector<Tensor>& params, std::vector<Tensor>& grads,
                std::initializer_list<State> states, const std::vector<Tensor>* steps = nullptr) {
  check_params(op, params);
  make_contiguous(grads);
  check_list(op, "grads", grads, params, true);
  for (const State& state : states) {
    check_list(op, state.name, state.list, params, state.needed);
  }
  if (steps != nullptr) {
    check_steps(op, *steps, params);
  }
  as_real(params);
  as_real(grads);
  for (const State& state : states) {
    as_real(state.list);
  }
}

}  // namespace

void shape::sgd_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                      std::vector<Tensor>& momentum_buffers, double&, double& momentum, double&,
                      double&, bool&, bool&, bool&) {
  check_step("sgd_step_", params, grads, {{"momentum_buffers", momentum_buffers, momentum != 0}});
}

void shape::adam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                       std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                       std::vector<Tensor>& max_exp_avg_sqs, std::vector<Tensor>& steps, double&,
                       double&, double&, double&, double&, bool&, bool& amsgrad, bool&) {
  check_step("adam_step_", params, grads,
             {{"exp_avgs", exp_avgs},
              {"exp_avg_sqs", exp_avg_sqs},
              {"max_exp_avg_sqs", max_exp_avg_sqs, amsgrad}},
             &steps);
}

void shape::rmsprop_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                          std::vector<Tensor>& square_avgs, std::vector<Tensor>& momentum_buffers,
                          std::vector<Tensor>& grad_avgs, std::vector<Tensor>& steps, double&,
                          double&, double&, double&, double& momentum, bool& centered, bool&) {
  check_step("rmsprop_step_", params, grads,
             {{"square_avgs", square_avgs},
              {"momentum_buffers", momentum_buffers, momentum > 0},
              {"grad_avgs", grad_avgs, centered}},
             &steps);
}

void shape::adagrad_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                          std::vector<Tensor>& state_sums, std::vector<Tensor>& steps, double&,
                          double&, double&, double&, bool&) {
  check_step("adagrad_step_", params, grads, {{"state_sums", state_sums}}, &steps);
}

void shape::adadelta_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                           std::vector<Tensor>& square_avgs, std::vector<Tensor>& acc_deltas,
                           std::vector<Tensor>& steps, double&, double&, double&, double&, bool&) {
  check_step("adadelta_step_", params, grads,
             {{"square_avgs", square_avgs}, {"acc_deltas", acc_deltas}}, &steps);
}

void shape::adamax_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                         std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_infs,
                         std::vector<Tensor>& steps, double&, double&, double&, double&, double&,
                         bool&) {
  check_step("adamax_step_", params, grads, {{"exp_avgs", exp_avgs}, {"exp_infs", exp_infs}},
             &steps);
}

void shape::nadam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                        std::vector<Tensor>& mu_products, std::vector<Tensor>& steps, double&,
                        double&, double&, double&, double&, double&, bool&, bool&) {
  check_step("nadam_step_", params, grads, {{"exp_avgs", exp_avgs}, {"exp_avg_sqs", exp_avg_sqs}},
             &steps);
  RL_CHECK(mu_products.size() == params.size(), "nadam_step_: mu_products has ", mu_products.size(),
           " tensors for ", params.size(), " parameters");
  for (const Tensor& product : mu_products) {
    RL_CHECK(product.defined() && product.numel() == 1 && (product.is_cpu() || product.is_meta()) &&
                 (product.dtype() == kFloat32 || product.dtype() == kFloat64),
             "nadam_step_: mu_products must be float32 or float64 tensors of one element on the "
             "cpu");
  }
}

void shape::radam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                        std::vector<Tensor>& steps, double&, double&, double&, double&, double&,
                        bool&, bool&) {
  check_step("radam_step_", params, grads, {{"exp_avgs", exp_avgs}, {"exp_avg_sqs", exp_avg_sqs}},
             &steps);
}

void shape::rprop_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& prevs, std::vector<Tensor>& step_sizes,
                        std::vector<Tensor>& steps, double&, double&, double&, double&, bool&) {
  check_step("rprop_step_", params, grads, {{"prevs", prevs}, {"step_sizes", step_sizes}}, &steps);
}

void shape::asgd_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                       std::vector<Tensor>& axs, double&, double&, double&, double&, bool&) {
  check_step("asgd_step_", params, grads, {{"axs", axs}});
}

// ---- scaled gradients ----

void composite::_amp_foreach_non_finite_check_and_unscale_(TensorList self, const Tensor& found_inf,
                                                           const Tensor& inv_scale) {
  const char* const op = "_amp_foreach_non_finite_check_and_unscale_";
  for (const auto& [name, t] : {std::pair("found_inf", &found_inf), {"inv_scale", &inv_scale}}) {
    RL_CHECK(t->numel() == 1, op, ": ", name, " must be a 1-element tensor, but has shape ",
             t->sizes());
    RL_CHECK(t->dtype() == kFloat32, op, ": ", name, " must be a float tensor, but is ",
             dtype_info(t->dtype()).name);
  }
  const NoGradGuard no_grad;
  std::vector<Tensor> finite;
  for (const Tensor& t : self) {
    RL_CHECK(is_differentiable(t.dtype()), op, ": expected floating-point gradients, got ",
             dtype_info(t.dtype()).name);
    if (t.numel() != 0) {
      finite.push_back(isfinite(linalg_vector_norm(t, std::numeric_limits<double>::infinity())));
      t.mul_(inv_scale.to(t.device()));
    }
  }
  if (!finite.empty()) {
    const Tensor found = stack(finite).all().logical_not().to(kFloat32);
    found_inf.copy_(maximum(found_inf, found.expand_as(found_inf)));
  }
}

Tensor& composite::_amp_update_scale_(const Tensor& self, const Tensor& growth_tracker,
                                      const Tensor& found_inf, double scale_growth_factor,
                                      double scale_backoff_factor, int64_t growth_interval) {
  const char* const op = "_amp_update_scale_";
  RL_CHECK(self.numel() == 1 && self.dtype() == kFloat32, op,
           ": the scale must be a 1-element float tensor");
  RL_CHECK(growth_tracker.numel() == 1 && growth_tracker.dtype() == kInt32, op,
           ": growth_tracker must be a 1-element int tensor");
  RL_CHECK(found_inf.numel() == 1 && found_inf.dtype() == kFloat32, op,
           ": found_inf must be a 1-element float tensor");
  const NoGradGuard no_grad;
  // No value is looked at, so that a device need not be waited for.
  const Tensor found = ne(found_inf, 0).view_as(self);
  const Tensor count = where(found, 0, growth_tracker.view_as(self) + 1);
  const Tensor grown = self * scale_growth_factor;
  const Tensor grows = eq(count, growth_interval);
  const Tensor next = where(logical_and(grows, isfinite(grown)), grown, self);
  growth_tracker.copy_(where(grows, 0, count).view_as(growth_tracker));
  self.copy_(where(found, self * scale_backoff_factor, next));
  return const_cast<Tensor&>(self);
}

}  // namespace rushlight
