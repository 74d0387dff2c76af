"""Steps of optimisers over lists of tensors: one pass over the memory of all of them."""

from gen.table import composite, optimizer

_means = "Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs"

optimizer("sgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, *, "
          "float lr, float momentum, float dampening, float weight_decay, bool nesterov, "
          "bool maximize, bool first) -> ()", "Sgd",
          doc="A step of stochastic gradient descent; `first` fills the momentum buffers, which "
              "are empty without momentum.")
optimizer(f"adam_step_(Tensor(a!)[] params, Tensor[] grads, {_means}, "
          "Tensor(d!)[] max_exp_avg_sqs, Count(e!)[] steps, *, float lr, float beta1, "
          "float beta2, float eps, float weight_decay, bool decoupled, bool amsgrad, "
          "bool maximize) -> ()", "Adam",
          doc="A step of Adam, of AdamW where decoupled; `steps` are float32 counters, "
              "max_exp_avg_sqs is empty without amsgrad.")
optimizer("rmsprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, "
          "Tensor(c!)[] momentum_buffers, Tensor(d!)[] grad_avgs, Count(e!)[] steps, *, float lr, "
          "float alpha, float eps, float weight_decay, float momentum, bool centered, "
          "bool maximize) -> ()", "Rmsprop",
          doc="A step of RMSprop; momentum_buffers is empty without momentum, grad_avgs unless "
              "centered.")
optimizer("adagrad_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, "
          "Count(c!)[] steps, *, float lr, float lr_decay, float eps, float weight_decay, "
          "bool maximize) -> ()", "Adagrad", doc="A step of Adagrad.")
optimizer("adadelta_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, "
          "Tensor(c!)[] acc_deltas, Count(d!)[] steps, *, float lr, float rho, float eps, "
          "float weight_decay, bool maximize) -> ()", "Adadelta", doc="A step of Adadelta.")
optimizer("adamax_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, "
          "Tensor(c!)[] exp_infs, Count(d!)[] steps, *, float lr, float beta1, float beta2, "
          "float eps, float weight_decay, bool maximize) -> ()", "Adamax",
          doc="A step of Adamax.")
optimizer(f"nadam_step_(Tensor(a!)[] params, Tensor[] grads, {_means}, "
          "Count(d!)[] mu_products, Count(e!)[] steps, *, float lr, float beta1, float beta2, "
          "float eps, float weight_decay, float momentum_decay, bool decoupled, "
          "bool maximize) -> ()", "Nadam",
          doc="A step of NAdam; mu_products are float32 tensors of one element.")
optimizer(f"radam_step_(Tensor(a!)[] params, Tensor[] grads, {_means}, Count(d!)[] steps, *, "
          "float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, "
          "bool maximize) -> ()", "Radam", doc="A step of RAdam.")
optimizer("rprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] prevs, "
          "Tensor(c!)[] step_sizes, Count(d!)[] steps, *, float eta_minus, float eta_plus, "
          "float step_size_min, float step_size_max, bool maximize) -> ()", "Rprop",
          doc="A step of Rprop.")
optimizer("asgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] axs, *, float lambd, "
          "float eta, float mu, float weight_decay, bool maximize) -> ()", "Asgd",
          doc="A step of ASGD with the rate eta and the averaging weight mu.")

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
