// optim: optimisers and schedules of their rates. A step is one op over all tensors of a group.
#pragma once

#include <functional>
#include <memory>

#include <rushlight/nn/module.h>
#include <rushlight/nn/options.h>
#include <rushlight/optimizer.h>

namespace rushlight::optim {

#define RL_SERIALIZED                                               \
 public:                                                            \
  void serialize(serialize::OutputArchive& archive) const override; \
  void serialize(serialize::InputArchive& archive) override;

// The state of a parameter by libtorch's names.
#define RL_PARAM_STATE(Name, size, accessors)                    \
  class RL_API Name : public TensorsParamState {                 \
   public:                                                       \
    Name() : TensorsParamState(size) {}                          \
    std::unique_ptr<OptimizerParamState> clone() const override; \
    accessors                                                    \
  }
#define RL_STATE_TENSOR(name, i)        \
  Tensor& name() { return tensors[i]; } \
  void name(const Tensor& value) { tensors[i] = value; }

#define RL_OPTIMIZER(Name, usual)                                                             \
  extern template class OptimizerCloneableOptions<Name##Options>;                             \
  class RL_API Name : public Optimizer {                                                      \
   public:                                                                                    \
    explicit Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults = usual);   \
    explicit Name(std::vector<Tensor> params, Name##Options defaults = usual);                \
                                                                                              \
   protected:                                                                                 \
    std::vector<std::string> state_names() const override;                                    \
    State new_state(const Tensor& parameter, const OptimizerOptions& options) const override; \
    std::unique_ptr<TensorsParamState> empty_state() const override;                          \
    void step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,       \
                    const std::vector<Tensor>& grads, std::vector<State>& states) override;   \
  }

struct RL_API SGDOptions : OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, nesterov) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(SGD, SGDOptions());
RL_PARAM_STATE(SGDParamState, 1, RL_STATE_TENSOR(momentum_buffer, 0));

struct RL_API AdamOptions : OptimizerCloneableOptions<AdamOptions> {
  using Betas = std::tuple<double, double>;
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, amsgrad) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(Adam, AdamOptions());
RL_PARAM_STATE(AdamParamState, 4,
               RL_STATE_TENSOR(exp_avg, 1) RL_STATE_TENSOR(exp_avg_sq, 2)
                   RL_STATE_TENSOR(max_exp_avg_sq, 3));

struct RL_API AdamWOptions : OptimizerCloneableOptions<AdamWOptions> {
  using Betas = std::tuple<double, double>;
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, amsgrad) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(AdamW, AdamWOptions());
using AdamWParamState = AdamParamState;

struct RL_API RMSpropOptions : OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(RMSprop, RMSpropOptions());
RL_PARAM_STATE(RMSpropParamState, 4,
               RL_STATE_TENSOR(square_avg, 1) RL_STATE_TENSOR(momentum_buffer, 2)
                   RL_STATE_TENSOR(grad_avg, 3));

struct RL_API AdagradOptions : OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;
  RL_SERIALIZED
};
RL_OPTIMIZER(Adagrad, AdagradOptions());
RL_PARAM_STATE(AdagradParamState, 2, RL_STATE_TENSOR(sum, 1));

struct RL_API AdadeltaOptions : OptimizerCloneableOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;
  RL_SERIALIZED
};
RL_OPTIMIZER(Adadelta, AdadeltaOptions());

struct RL_API AdamaxOptions : OptimizerCloneableOptions<AdamaxOptions> {
  using Betas = std::tuple<double, double>;
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  RL_SERIALIZED
};
RL_OPTIMIZER(Adamax, AdamaxOptions());

struct RL_API NAdamOptions : OptimizerCloneableOptions<NAdamOptions> {
  using Betas = std::tuple<double, double>;
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum_decay) = 4e-3;
  TORCH_ARG(bool, decoupled_weight_decay) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(NAdam, NAdamOptions());

struct RL_API RAdamOptions : OptimizerCloneableOptions<RAdamOptions> {
  using Betas = std::tuple<double, double>;
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, decoupled_weight_decay) = false;
  RL_SERIALIZED
};
RL_OPTIMIZER(RAdam, RAdamOptions());

struct RL_API RpropOptions : OptimizerCloneableOptions<RpropOptions> {
  using Pair = std::tuple<double, double>;
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, etas) = Pair(0.5, 1.2);
  TORCH_ARG(Pair, step_sizes) = Pair(1e-6, 50);
  RL_SERIALIZED
};
RL_OPTIMIZER(Rprop, RpropOptions());

struct RL_API ASGDOptions : OptimizerCloneableOptions<ASGDOptions> {
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lambd) = 1e-4;
  TORCH_ARG(double, alpha) = 0.75;
  TORCH_ARG(double, t0) = 1e6;
  TORCH_ARG(double, weight_decay) = 0;
  RL_SERIALIZED
};
RL_OPTIMIZER(ASGD, ASGDOptions());
#undef RL_OPTIMIZER

// Quasi-Newton steps from the last changes of gradient and parameters; steps need a closure.
struct RL_API LBFGSOptions : OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval);  // 5/4 of max_iter
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  TORCH_ARG(std::optional<std::string>, line_search_fn);  // "strong_wolfe"
  RL_SERIALIZED
};
#undef RL_SERIALIZED
// What is kept from step to step, as the state of the first parameter.
class RL_API LBFGSParamState : public OptimizerParamState {
  TORCH_ARG(int64_t, func_evals) = 0;
  TORCH_ARG(int64_t, n_iter) = 0;
  TORCH_ARG(double, t) = 0;
  TORCH_ARG(double, prev_loss) = 0;
  TORCH_ARG(Tensor, d);
  TORCH_ARG(Tensor, H_diag);
  TORCH_ARG(Tensor, prev_flat_grad);
  TORCH_ARG(std::vector<Tensor>, old_dirs);  // changes of the gradient
  TORCH_ARG(std::vector<Tensor>, old_stps);  // the steps that made them
  TORCH_ARG(std::vector<Tensor>, ro);        // one over their products
  TORCH_ARG(std::optional<std::vector<Tensor>>, al);

 public:
  std::unique_ptr<OptimizerParamState> clone() const override;
};
class RL_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults = LBFGSOptions());
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = LBFGSOptions());
  Tensor step(LossClosure closure) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  LBFGSParamState& memory();
};

// ---- schedules ----

// Sets the rates of an optimiser's groups, one step after the other.
class RL_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler();
  void step();

 protected:
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_ = 0;

 private:
  Optimizer& optimizer_;
};

class RL_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override;
  unsigned step_size_;
  double gamma_;
};

// Lowers the rates when a number has not become better for a while.
class RL_API ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                             int patience = 10, double threshold = 1e-4,
                             ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = {}, double eps = 1e-8,
                             bool verbose = false);
  void step(float metric);

 private:
  bool is_better(double metric) const;
  Optimizer& optimizer_;
  SchedulerMode mode_;
  double factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_;
  std::vector<float> min_lr_;
  double eps_;
  bool verbose_;
  double best_;
  int bad_steps_ = 0;
  int cooling_ = 0;
  int last_ = 0;
};

}  // namespace rushlight::optim
