// What the fused optimiser steps accept: lists of one length whose tensors match the parameters.
#include "core/op_support.h"
#include "generated/kernels.h"

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
void gather_expanded(std::vector<Tensor>& grads) {
  for (Tensor& g : grads) {
    g = g.defined() && has_internal_overlap(g) ? contiguous_raw(g) : g;
  }
}

void check_steps(const char* op, const std::vector<Tensor>& steps,
                 const std::vector<Tensor>& params) {
  RL_CHECK(steps.size() == params.size(), op, ": steps has ", steps.size(), " tensors for ",
           params.size(), " parameters");
  for (const Tensor& step : steps) {
    RL_CHECK(step.defined() && step.dtype() == kFloat32 && step.numel() == 1 && step.is_cpu(), op,
             ": steps must be float32 tensors of one element on the cpu");
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

}  // namespace

void shape::sgd_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                      std::vector<Tensor>& momentum_buffers, double&, double& momentum, double&,
                      double&, bool&, bool&, bool&) {
  check_params("sgd_step_", params);
  gather_expanded(grads);
  check_list("sgd_step_", "grads", grads, params, true);
  check_list("sgd_step_", "momentum_buffers", momentum_buffers, params, momentum != 0);
  as_real(params);
  as_real(grads);
  as_real(momentum_buffers);
}

void shape::adam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                       std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                       std::vector<Tensor>& max_exp_avg_sqs, std::vector<Tensor>& steps, double&,
                       double&, double&, double&, double&, bool&, bool& amsgrad, bool&) {
  check_params("adam_step_", params);
  gather_expanded(grads);
  check_list("adam_step_", "grads", grads, params, true);
  check_list("adam_step_", "exp_avgs", exp_avgs, params, true);
  check_list("adam_step_", "exp_avg_sqs", exp_avg_sqs, params, true);
  check_list("adam_step_", "max_exp_avg_sqs", max_exp_avg_sqs, params, amsgrad);
  check_steps("adam_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(exp_avgs);
  as_real(exp_avg_sqs);
  as_real(max_exp_avg_sqs);
}

void shape::rmsprop_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                          std::vector<Tensor>& square_avgs, std::vector<Tensor>& momentum_buffers,
                          std::vector<Tensor>& grad_avgs, std::vector<Tensor>& steps, double&,
                          double&, double&, double&, double& momentum, bool& centered, bool&) {
  check_params("rmsprop_step_", params);
  gather_expanded(grads);
  check_list("rmsprop_step_", "grads", grads, params, true);
  check_list("rmsprop_step_", "square_avgs", square_avgs, params, true);
  check_list("rmsprop_step_", "momentum_buffers", momentum_buffers, params, momentum > 0);
  check_list("rmsprop_step_", "grad_avgs", grad_avgs, params, centered);
  check_steps("rmsprop_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(square_avgs);
  as_real(momentum_buffers);
  as_real(grad_avgs);
}

void shape::adagrad_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                          std::vector<Tensor>& state_sums, std::vector<Tensor>& steps, double&,
                          double&, double&, double&, bool&) {
  check_params("adagrad_step_", params);
  gather_expanded(grads);
  check_list("adagrad_step_", "grads", grads, params, true);
  check_list("adagrad_step_", "state_sums", state_sums, params, true);
  check_steps("adagrad_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(state_sums);
}

void shape::adadelta_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                           std::vector<Tensor>& square_avgs, std::vector<Tensor>& acc_deltas,
                           std::vector<Tensor>& steps, double&, double&, double&, double&, bool&) {
  check_params("adadelta_step_", params);
  gather_expanded(grads);
  check_list("adadelta_step_", "grads", grads, params, true);
  check_list("adadelta_step_", "square_avgs", square_avgs, params, true);
  check_list("adadelta_step_", "acc_deltas", acc_deltas, params, true);
  check_steps("adadelta_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(square_avgs);
  as_real(acc_deltas);
}

void shape::adamax_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                         std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_infs,
                         std::vector<Tensor>& steps, double&, double&, double&, double&, double&,
                         bool&) {
  check_params("adamax_step_", params);
  gather_expanded(grads);
  check_list("adamax_step_", "grads", grads, params, true);
  check_list("adamax_step_", "exp_avgs", exp_avgs, params, true);
  check_list("adamax_step_", "exp_infs", exp_infs, params, true);
  check_steps("adamax_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(exp_avgs);
  as_real(exp_infs);
}

void shape::nadam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                        std::vector<Tensor>& mu_products, std::vector<Tensor>& steps, double&,
                        double&, double&, double&, double&, double&, bool&, bool&) {
  check_params("nadam_step_", params);
  gather_expanded(grads);
  check_list("nadam_step_", "grads", grads, params, true);
  check_list("nadam_step_", "exp_avgs", exp_avgs, params, true);
  check_list("nadam_step_", "exp_avg_sqs", exp_avg_sqs, params, true);
  RL_CHECK(mu_products.size() == params.size(), "nadam_step_: mu_products has ", mu_products.size(),
           " tensors for ", params.size(), " parameters");
  for (const Tensor& product : mu_products) {
    RL_CHECK(product.defined() && product.numel() == 1 && product.is_cpu() &&
                 (product.dtype() == kFloat32 || product.dtype() == kFloat64),
             "nadam_step_: mu_products must be float32 or float64 tensors of one element on the "
             "cpu");
  }
  check_steps("nadam_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(exp_avgs);
  as_real(exp_avg_sqs);
}

void shape::radam_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& exp_avgs, std::vector<Tensor>& exp_avg_sqs,
                        std::vector<Tensor>& steps, double&, double&, double&, double&, double&,
                        bool&, bool&) {
  check_params("radam_step_", params);
  gather_expanded(grads);
  check_list("radam_step_", "grads", grads, params, true);
  check_list("radam_step_", "exp_avgs", exp_avgs, params, true);
  check_list("radam_step_", "exp_avg_sqs", exp_avg_sqs, params, true);
  check_steps("radam_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(exp_avgs);
  as_real(exp_avg_sqs);
}

void shape::rprop_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                        std::vector<Tensor>& prevs, std::vector<Tensor>& step_sizes,
                        std::vector<Tensor>& steps, double&, double&, double&, double&, bool&) {
  check_params("rprop_step_", params);
  gather_expanded(grads);
  check_list("rprop_step_", "grads", grads, params, true);
  check_list("rprop_step_", "prevs", prevs, params, true);
  check_list("rprop_step_", "step_sizes", step_sizes, params, true);
  check_steps("rprop_step_", steps, params);
  as_real(params);
  as_real(grads);
  as_real(prevs);
  as_real(step_sizes);
}

void shape::asgd_step_(std::vector<Tensor>& params, std::vector<Tensor>& grads,
                       std::vector<Tensor>& axs, double&, double&, double&, double&, bool&) {
  check_params("asgd_step_", params);
  gather_expanded(grads);
  check_list("asgd_step_", "grads", grads, params, true);
  check_list("asgd_step_", "axs", axs, params, true);
  as_real(params);
  as_real(grads);
  as_real(axs);
}

}  // namespace rushlight
