// Optimisers: their state and the op that is a step; schedules.
#include <rushlight/optim.h>

#include <cmath>
#include <cstdio>

#include <rushlight/ops.h>

namespace rushlight::optim {

OptimizerOptions::~OptimizerOptions() = default;
Optimizer::~Optimizer() = default;
LRScheduler::~LRScheduler() = default;

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) {
    add_param_group(group);
  }
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  for (const Tensor& p : group.params()) {
    RL_CHECK(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : groups_) {
      for (const Tensor& known : other.params()) {
        RL_CHECK(!known.is_same(p), "some parameters appear in more than one parameter group");
      }
    }
  }
  groups_.push_back(group);
  if (!groups_.back().has_options()) {
    groups_.back().set_options(defaults_->clone());
  }
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  RL_CHECK(!groups_.empty(), "there is no group to add parameters to");
  auto& params = groups_[0].params();
  params.insert(params.end(), parameters.begin(), parameters.end());
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> out;
  for (const OptimizerParamGroup& group : groups_) {
    out.insert(out.end(), group.params().begin(), group.params().end());
  }
  return out;
}

size_t Optimizer::size() const { return parameters().size(); }

void Optimizer::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    Tensor& grad = p.mutable_grad();
    if (grad.defined() && set_to_none) {
      grad.reset();
    } else if (grad.defined()) {
      grad = grad.detach();
      grad.zero_();
    }
  }
}

Tensor Optimizer::step(LossClosure closure) {
  Tensor loss;
  if (closure) {
    const AutoGradMode with_grad(true);
    loss = closure();
  }
  const NoGradGuard no_grad;
  const size_t names = state_names().size();
  for (const OptimizerParamGroup& group : groups_) {
    std::vector<Tensor> params;
    std::vector<Tensor> grads;
    std::vector<State> states(names);
    for (const Tensor& p : group.params()) {
      if (!p.grad().defined()) {
        continue;
      }
      auto found = state_.find(p.impl());
      if (found == state_.end()) {
        found = state_.emplace(p.impl(), new_state(p, group.options())).first;
      }
      params.push_back(p);
      grads.push_back(p.grad());
      for (size_t i = 0; i < names; i++) {
        states[i].push_back(found->second[i]);
      }
    }
    if (params.empty()) {
      continue;
    }
    step_group(group.options(), params, grads, states);
    for (size_t k = 0; k < params.size(); k++) {  // a step may have made what was not there
      State& own = state_[params[k].impl()];
      for (size_t i = 0; i < names; i++) {
        own[i] = states[i][k];
      }
    }
  }
  return loss;
}

void Optimizer::save(serialize::OutputArchive& archive) const {
  const std::vector<std::string> names = state_names();
  for (size_t g = 0; g < groups_.size(); g++) {
    archive.write(str("param_groups.", g, ".lr"), IValue(groups_[g].options().get_lr()));
  }
  int64_t number = 0;
  for (const Tensor& p : parameters()) {
    const auto found = state_.find(p.impl());
    for (size_t i = 0; found != state_.end() && i < names.size(); i++) {
      if (found->second[i].defined()) {
        archive.write(str("state.", number, '.', names[i]), found->second[i]);
      }
    }
    number++;
  }
}

void Optimizer::load(serialize::InputArchive& archive) {
  const std::vector<std::string> names = state_names();
  for (size_t g = 0; g < groups_.size(); g++) {
    IValue lr;
    archive.read(str("param_groups.", g, ".lr"), lr);
    groups_[g].options().set_lr(lr.toDouble());
  }
  state_.clear();
  int64_t number = 0;
  for (const Tensor& p : parameters()) {
    State state(names.size());
    bool any = false;
    for (size_t i = 0; i < names.size(); i++) {
      any |= archive.try_read(str("state.", number, '.', names[i]), state[i]);
    }
    if (any) {
      state_[p.impl()] = std::move(state);
    }
    number++;
  }
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

// ---- the optimisers ----

#define RL_OPTIMIZER(Name)                                                        \
  Name::Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults)     \
      : Optimizer(std::move(groups), std::make_unique<Name##Options>(defaults)) { \
    RL_CHECK(defaults.lr() >= 0, "Invalid learning rate: ", defaults.lr());       \
  }

namespace {
Tensor counter() { return zeros({}, kFloat32); }
std::vector<Tensor> if_any(bool any, const std::vector<Tensor>& list) {
  return any ? list : std::vector<Tensor>();
}
}  // namespace

RL_OPTIMIZER(SGD)
std::vector<std::string> SGD::state_names() const { return {"momentum_buffer"}; }
Optimizer::State SGD::new_state(const Tensor&, const OptimizerOptions&) const { return State(1); }
void SGD::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                     const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const SGDOptions&>(options);
  RL_CHECK(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
           "Nesterov momentum requires a momentum and zero dampening");
  // Those that have no buffer yet get one that holds their first gradient.
  struct Part {
    std::vector<Tensor> params, grads, buffers;
  };
  Part parts[2];
  for (size_t i = 0; i < params.size(); i++) {
    Tensor& buffer = states[0][i];
    Part& part = parts[buffer.defined() ? 0 : 1];
    if (o.momentum() != 0 && !buffer.defined()) {
      buffer = zeros_like(params[i]);
    }
    part.params.push_back(params[i]);
    part.grads.push_back(grads[i]);
    if (o.momentum() != 0) {
      part.buffers.push_back(buffer);
    }
  }
  for (const Part& part : parts) {
    if (!part.params.empty()) {
      sgd_step_(part.params, part.grads, part.buffers, o.lr(), o.momentum(), o.dampening(),
                o.weight_decay(), o.nesterov(), false, &part == &parts[1]);
    }
  }
}

RL_OPTIMIZER(Adam)
std::vector<std::string> Adam::state_names() const {
  return {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
}
Optimizer::State Adam::new_state(const Tensor& p, const OptimizerOptions& options) const {
  const bool amsgrad = static_cast<const AdamOptions&>(options).amsgrad();
  return {counter(), zeros_like(p), zeros_like(p), amsgrad ? zeros_like(p) : Tensor()};
}
void Adam::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                      const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const AdamOptions&>(options);
  adam_step_(params, grads, states[1], states[2], if_any(o.amsgrad(), states[3]), states[0], o.lr(),
             std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(), false,
             o.amsgrad(), false);
}

RL_OPTIMIZER(AdamW)
std::vector<std::string> AdamW::state_names() const {
  return {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
}
Optimizer::State AdamW::new_state(const Tensor& p, const OptimizerOptions& options) const {
  const bool amsgrad = static_cast<const AdamWOptions&>(options).amsgrad();
  return {counter(), zeros_like(p), zeros_like(p), amsgrad ? zeros_like(p) : Tensor()};
}
void AdamW::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                       const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const AdamWOptions&>(options);
  adam_step_(params, grads, states[1], states[2], if_any(o.amsgrad(), states[3]), states[0], o.lr(),
             std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(), true,
             o.amsgrad(), false);
}

RL_OPTIMIZER(RMSprop)
std::vector<std::string> RMSprop::state_names() const {
  return {"step", "square_avg", "momentum_buffer", "grad_avg"};
}
Optimizer::State RMSprop::new_state(const Tensor& p, const OptimizerOptions& options) const {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  return {counter(), zeros_like(p), o.momentum() != 0 ? zeros_like(p) : Tensor(),
          o.centered() ? zeros_like(p) : Tensor()};
}
void RMSprop::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                         const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const RMSpropOptions&>(options);
  rmsprop_step_(params, grads, states[1], if_any(o.momentum() != 0, states[2]),
                if_any(o.centered(), states[3]), states[0], o.lr(), o.alpha(), o.eps(),
                o.weight_decay(), o.momentum(), o.centered(), false);
}

RL_OPTIMIZER(Adagrad)
std::vector<std::string> Adagrad::state_names() const { return {"step", "sum"}; }
Optimizer::State Adagrad::new_state(const Tensor& p, const OptimizerOptions& options) const {
  const auto& o = static_cast<const AdagradOptions&>(options);
  return {counter(), full_like(p, o.initial_accumulator_value())};
}
void Adagrad::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                         const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const AdagradOptions&>(options);
  adagrad_step_(params, grads, states[1], states[0], o.lr(), o.lr_decay(), o.eps(),
                o.weight_decay(), false);
}

// ---- schedules ----

std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> out;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) {
    out.push_back(group.options().get_lr());
  }
  return out;
}

void LRScheduler::step() {
  const std::vector<double> rates = get_lrs();
  step_count_++;
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); i++) {
    groups[i].options().set_lr(rates[i]);
  }
}

std::vector<double> StepLR::get_lrs() {
  std::vector<double> rates = get_current_lrs();
  const unsigned step = step_count_ + 1;
  if (step % step_size_ == 0) {
    for (double& rate : rates) {
      rate *= gamma_;
    }
  }
  return rates;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode,
                                                       float factor, int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      threshold_mode_(threshold_mode),
      cooldown_(cooldown),
      min_lr_(min_lr.empty() ? std::vector<float>(optimizer.param_groups().size()) : min_lr),
      eps_(eps),
      verbose_(verbose),
      best_(mode == min ? INFINITY : -INFINITY) {
  RL_CHECK(factor < 1, "Factor should be < 1.0");
  RL_CHECK(min_lr_.size() == optimizer.param_groups().size(), "Number of learning rates not equal ",
           "to the number of param groups");
}

bool ReduceLROnPlateauScheduler::is_better(double metric) const {
  const double by = threshold_mode_ == rel ? std::abs(best_) * threshold_ : threshold_;
  if (std::isinf(best_)) {
    return true;
  }
  return mode_ == min ? metric < best_ - by : metric > best_ + by;
}

void ReduceLROnPlateauScheduler::step(float metric) {
  last_++;
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    bad_steps_++;
  }
  if (cooling_ > 0) {
    cooling_--;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= patience_) {
    return;
  }
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); i++) {
    const double old = groups[i].options().get_lr();
    const double lower = std::max(old * factor_, static_cast<double>(min_lr_[i]));
    if (old - lower > eps_) {
      groups[i].options().set_lr(lower);
      if (verbose_) {
        std::printf("Epoch %d: reducing learning rate of group %zu to %g\n", last_, i, lower);
      }
    }
  }
  cooling_ = cooldown_;
  bad_steps_ = 0;
}

}  // namespace rushlight::optim
