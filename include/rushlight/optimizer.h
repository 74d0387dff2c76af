// What all optimisers are: options, groups of parameters, state, a step.
#pragma once

#include <functional>
#include <memory>

#include <rushlight/archive.h>

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
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options = {});
  OptimizerParamGroup(const OptimizerParamGroup& other);
  OptimizerParamGroup(OptimizerParamGroup&&) noexcept;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) noexcept;
  ~OptimizerParamGroup();
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  void set_options(std::unique_ptr<OptimizerOptions> options);
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

// What the library's optimisers keep of a parameter: tensors in the order of state_names().
class RL_API TensorsParamState : public OptimizerParamState {
 public:
  explicit TensorsParamState(size_t n = 0) : tensors(n) {}
  std::unique_ptr<OptimizerParamState> clone() const override;
  int64_t step() const;  // of those whose first tensor counts steps
  void step(int64_t n);
  std::vector<Tensor> tensors;
  bool is_complete = false;  // no: a step adds what is missing
};

// By a parameter's impl. A step asks for them in one order, so a search begins behind the last.
class RL_API ParamStates {
 public:
  struct Item {
    void* first;
    std::unique_ptr<OptimizerParamState> second;
  };
  Item* find(void* parameter);  // end() where there is none
  const Item* find(void* parameter) const {
    return const_cast<ParamStates*>(this)->find(parameter);
  }
  std::unique_ptr<OptimizerParamState>& operator[](void* parameter);
  std::unique_ptr<OptimizerParamState>& at(void* parameter);  // IndexError where there is none
  size_t count(void* parameter) { return find(parameter) == end() ? 0 : 1; }
  size_t erase(void* parameter);  // how many there were
  void clear() { items_.clear(); }
  bool empty() const { return items_.empty(); }
  Item* begin() { return items_.data(); }
  Item* end() { return items_.data() + items_.size(); }
  const Item* begin() const { return items_.data(); }
  const Item* end() const { return items_.data() + items_.size(); }
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
  // What is kept of each parameter, by its impl (unsafeGetTensorImpl).
  ParamStates& state() { return state_; }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  // What an optimiser says of itself that keeps step(); others take a step of their own.
  virtual std::vector<std::string> state_names() const;
  virtual State new_state(const Tensor& parameter, const OptimizerOptions& options) const;
  virtual std::unique_ptr<TensorsParamState> empty_state() const;
  // `states`: for each name the tensors of all parameters.
  virtual void step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                          const std::vector<Tensor>& grads, std::vector<State>& states);

  // The options of all groups; an archive that has other groups is refused.
  void save_groups(serialize::OutputArchive& archive) const;
  void load_groups(serialize::InputArchive& archive);

  std::vector<OptimizerParamGroup> param_groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  ParamStates state_;

 private:
  std::vector<Tensor>& tensors_of(const Tensor& parameter, const OptimizerOptions& options);
};
RL_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                            const Optimizer& optimizer);
RL_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer);

}  // namespace rushlight::optim
