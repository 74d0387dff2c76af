"""Steps of optimisers over lists of tensors: one pass over the memory of all of them."""

from gen.table import composite, custom, op


def _each(lists):
    """Elements are stepped one by one, so a batch is more of them; counters are of all slices."""
    return {lists: "leading", "": "refused: a counter of steps is one for all slices"}



op("sgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, *, float lr, "
   "float momentum, "
   "float dampening, float weight_decay, bool nesterov, bool maximize, bool first) -> ()",
   kernel=custom(), variants="function", grad="none",
   doc="A step of stochastic gradient descent; `first` fills the momentum buffers, which are empty "
       "without momentum.", own=True,
   batch=_each("params, grads, momentum_buffers"))
op("adam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
   "exp_avg_sqs, "
   "Tensor(d!)[] max_exp_avg_sqs, Tensor(e!)[] steps, *, float lr, float beta1, float beta2, float "
   "eps, "
   "float weight_decay, bool decoupled, bool amsgrad, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none",
   doc="A step of Adam, of AdamW where decoupled; `steps` are float32 counters, max_exp_avg_sqs is "
       "empty without amsgrad.", own=True,
   batch=_each("params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs"))
op("rmsprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] "
   "momentum_buffers, "
   "Tensor(d!)[] grad_avgs, Tensor(e!)[] steps, *, float lr, float alpha, float eps, float "
   "weight_decay, float momentum, "
   "bool centered, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none",
   doc="A step of RMSprop; momentum_buffers is empty without momentum, grad_avgs unless centered.",
   own=True,
   batch=_each("params, grads, square_avgs, momentum_buffers, grad_avgs"))
op("adagrad_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, Tensor(c!)[] "
   "steps, *, float lr, "
   "float lr_decay, float eps, float weight_decay, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none", doc="A step of Adagrad.", own=True,
   batch=_each("params, grads, state_sums"))
op("adadelta_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] "
   "acc_deltas, "
   "Tensor(d!)[] steps, *, float lr, float rho, float eps, float weight_decay, bool maximize) -> "
   "()",
   kernel=custom(), variants="function", grad="none", doc="A step of Adadelta.", own=True,
   batch=_each("params, grads, square_avgs, acc_deltas"))
op("adamax_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
   "exp_infs, Tensor(d!)[] steps, *, "
   "float lr, float beta1, float beta2, float eps, float weight_decay, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none", doc="A step of Adamax.", own=True,
   batch=_each("params, grads, exp_avgs, exp_infs"))
op("nadam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
   "exp_avg_sqs, "
   "Tensor(d!)[] mu_products, Tensor(e!)[] steps, *, float lr, float beta1, float beta2, float "
   "eps, float weight_decay, "
   "float momentum_decay, bool decoupled, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none",
   doc="A step of NAdam; mu_products are float32 tensors of one element.", own=True,
   batch=_each("params, grads, exp_avgs, exp_avg_sqs"))
op("radam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
   "exp_avg_sqs, "
   "Tensor(d!)[] steps, *, float lr, float beta1, float beta2, float eps, float weight_decay, bool "
   "decoupled, "
   "bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none", doc="A step of RAdam.", own=True,
   batch=_each("params, grads, exp_avgs, exp_avg_sqs"))
op("rprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] prevs, Tensor(c!)[] step_sizes, "
   "Tensor(d!)[] steps, *, "
   "float eta_minus, float eta_plus, float step_size_min, float step_size_max, bool maximize) -> "
   "()",
   kernel=custom(), variants="function", grad="none", doc="A step of Rprop.", own=True,
   batch=_each("params, grads, prevs, step_sizes"))
op("asgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] axs, *, float lambd, float eta, "
   "float mu, "
   "float weight_decay, bool maximize) -> ()",
   kernel=custom(), variants="function", grad="none",
   doc="A step of ASGD with the rate eta and the averaging weight mu.", own=True,
   batch=_each("params, grads, axs"))

# ---- scaled gradients ----

composite("_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, "
          "Tensor inv_scale) -> ()", variants="function",
          doc="Multiplies all tensors by inv_scale, one number; found_inf becomes 1 where one has "
              "an element that is infinite or NaN.")
composite("_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, "
          "float scale_growth_factor, float scale_backoff_factor, int growth_interval) -> "
          "Tensor(a!)", variants="function",
          doc="The scale of the next step: times scale_backoff_factor after an infinite gradient, "
              "times scale_growth_factor after growth_interval steps without one, which "
              "growth_tracker counts.")
