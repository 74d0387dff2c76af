// optim: optimisers and schedules of their rates. A step is one op over all tensors of a group.
#pragma once

#include <functional>
#include <memory>

#include <rushlight/archive.h>
#include <rushlight/nn/module.h>
#include <rushlight/nn/options.h>

namespace rushlight::optim {

class RL_API OptimizerOptions {
 public:
  OptimizerOptions() = default;
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;
  virtual ~OptimizerOptions();
  // RuntimeError of these where the class has none of its own.
  virtual std::unique_ptr<OptimizerOptions> clone() const { refuse("clone"); }
  virtual double get_lr() const { refuse("get_lr"); }
  virtual void set_lr(double) { refuse("set_lr"); }
  // Whole options to and from an archive; what an archive lacks stays as it is.
  virtual void serialize(serialize::OutputArchive& archive) const;
  virtual void serialize(serialize::InputArchive& archive);
  // Fields that are as a constructor leaves them become those of `defaults`, where both are of one
  // class.
  virtual void inherit(const OptimizerOptions& defaults);

 protected:
  void inherit(const OptimizerOptions& defaults, const OptimizerOptions& fresh);

 private:
  [[noreturn]] static void refuse(const char* method) {
    throw Error(std::string(method) + " has not been implemented for these OptimizerOptions");
  }
};
// Whether both are of one class and an archive of each would say the same.
RL_API bool operator==(const OptimizerOptions& a, const OptimizerOptions& b);
inline bool operator!=(const OptimizerOptions& a, const OptimizerOptions& b) { return !(a == b); }
template <class Derived>
class RL_API OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(double lr) override { static_cast<Derived&>(*this).lr(lr); }
  void inherit(const OptimizerOptions& defaults) override {
    if constexpr (std::is_default_constructible_v<Derived>) {
      if (dynamic_cast<const Derived*>(&defaults) != nullptr) {
        OptimizerOptions::inherit(defaults, Derived());
      }
    }
  }
};

// Parameters with options of their own; what those leave as it is, and without them all, is as the
// optimiser's.
class RL_API OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options = {})
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

// What an optimiser with a step of its own keeps of a parameter.
class RL_API OptimizerParamState {
 public:
  OptimizerParamState() = default;
  OptimizerParamState(const OptimizerParamState&) = default;
  OptimizerParamState& operator=(const OptimizerParamState&) = default;
  virtual ~OptimizerParamState();
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
};
template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::unique_ptr<OptimizerParamState>(new Derived(static_cast<const Derived&>(*this)));
  }
};

// By a parameter's impl. A step asks for them in one order, so a search begins behind the last.
class RL_API ParamStates {
 public:
  struct Item {
    void* first;
    std::unique_ptr<OptimizerParamState> second;
  };
  Item* find(void* parameter);  // end() where there is none
  std::unique_ptr<OptimizerParamState>& operator[](void* parameter);
  Item* begin() { return items_.data(); }
  Item* end() { return items_.data() + items_.size(); }
  size_t size() const { return items_.size(); }

 private:
  std::vector<Item> items_;
  size_t next_ = 0;
};

class RL_API Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using State = std::vector<Tensor>;  // of one parameter, in the order of state_names()
  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer();

  // Computes the loss anew where a closure is given, and changes the parameters.
  virtual Tensor step(LossClosure closure = nullptr);
  void zero_grad(bool set_to_none = true);
  void add_param_group(const OptimizerParamGroup& group);
  void add_parameters(const std::vector<Tensor>& parameters);
  std::vector<Tensor> parameters() const;
  size_t size() const;
  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  std::vector<OptimizerParamGroup>& param_groups() { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return param_groups_; }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  // What an optimiser says of itself that keeps step(); others take a step of their own.
  virtual std::vector<std::string> state_names() const;
  virtual State new_state(const Tensor& parameter, const OptimizerOptions& options) const;
  // `states`: for each name the tensors of all parameters.
  virtual void step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                          const std::vector<Tensor>& grads, std::vector<State>& states);

  // The options of all groups; an archive that has other groups is refused.
  void save_groups(serialize::OutputArchive& archive) const;
  void load_groups(serialize::InputArchive& archive);

  std::vector<OptimizerParamGroup> param_groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  ParamStates state_;  // of those that take a step of their own

 private:
  std::shared_ptr<void> kept_;  // the State of each parameter; only optim.cpp knows its type
};
RL_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                            const Optimizer& optimizer);
RL_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

#define RL_SERIALIZED                                               \
 public:                                                            \
  void serialize(serialize::OutputArchive& archive) const override; \
  void serialize(serialize::InputArchive& archive) override;

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
class RL_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults = LBFGSOptions());
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = LBFGSOptions());
  Tensor step(LossClosure closure) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  struct Memory;
  Memory& memory() const;
  std::shared_ptr<void> memory_;  // a Memory
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
