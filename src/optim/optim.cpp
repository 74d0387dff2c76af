// What all optimisers share: groups, state, archives; schedules.
#include <rushlight/optim.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <typeinfo>
#include <unordered_map>

#include <rushlight/ops.h>

namespace rushlight::optim {

OptimizerOptions::~OptimizerOptions() = default;
OptimizerParamState::~OptimizerParamState() = default;
Optimizer::~Optimizer() = default;
LRScheduler::~LRScheduler() = default;

OptimizerParamGroup::OptimizerParamGroup(std::vector<Tensor> params,
                                         std::unique_ptr<OptimizerOptions> options)
    : params_(std::move(params)), options_(std::move(options)) {}
OptimizerParamGroup::OptimizerParamGroup(const OptimizerParamGroup& other)
    : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
OptimizerParamGroup::OptimizerParamGroup(OptimizerParamGroup&&) noexcept = default;
OptimizerParamGroup& OptimizerParamGroup::operator=(OptimizerParamGroup&&) noexcept = default;
OptimizerParamGroup::~OptimizerParamGroup() = default;
void OptimizerParamGroup::set_options(std::unique_ptr<OptimizerOptions> options) {
  options_ = std::move(options);
}

std::unique_ptr<OptimizerParamState> TensorsParamState::clone() const {
  return std::make_unique<TensorsParamState>(*this);
}
int64_t TensorsParamState::step() const {
  return tensors.empty() || !tensors[0].defined()
             ? 0
             : static_cast<int64_t>(tensors[0].item().toDouble());
}
void TensorsParamState::step(int64_t n) {
  RL_CHECK(!tensors.empty(), "step(): this state has no place for a number of steps");
  tensors[0] = full({}, static_cast<double>(n), kFloat32);
}

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) {
    add_param_group(group);
  }
}

Optimizer::Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))},
                std::move(defaults)) {}

ParamStates::Item* ParamStates::find(void* parameter) {
  for (size_t i = 0; i < items_.size(); i++) {
    const size_t place = (next_ + i) % items_.size();
    if (items_[place].first == parameter) {
      next_ = place + 1;
      return &items_[place];
    }
  }
  return end();
}

std::unique_ptr<OptimizerParamState>& ParamStates::operator[](void* parameter) {
  Item* found = find(parameter);
  if (found == end()) {
    items_.push_back({parameter, nullptr});
    found = &items_.back();
  }
  return found->second;
}

std::unique_ptr<OptimizerParamState>& ParamStates::at(void* parameter) {
  Item* const found = find(parameter);
  RL_CHECK_INDEX(found != end(), "state(): the optimizer keeps nothing of this parameter yet");
  return found->second;
}

size_t ParamStates::erase(void* parameter) {
  Item* const found = find(parameter);
  if (found == end()) {
    return 0;
  }
  items_.erase(items_.begin() + (found - begin()));
  return 1;
}

// What is kept of a parameter, as much as a step needs: programs may give states of their own, with
// some of their tensors.
std::vector<Tensor>& Optimizer::tensors_of(const Tensor& parameter,
                                           const OptimizerOptions& options) {
  std::unique_ptr<OptimizerParamState>& kept = state_[parameter.impl()];
  if (kept == nullptr) {
    kept = empty_state();
  }
  auto* const state = dynamic_cast<TensorsParamState*>(kept.get());
  RL_CHECK(state != nullptr,
           "step(): the state of a parameter is of a class that is not this optimizer's");
  if (!state->is_complete) {
    const State fresh = new_state(parameter, options);
    state->tensors.resize(fresh.size());
    for (size_t i = 0; i < fresh.size(); i++) {
      Tensor& own = state->tensors[i];
      own = own.defined() ? own : fresh[i];
      RL_CHECK(!fresh[i].defined() || fresh[i].sizes() == own.sizes(), "step(): the ",
               state_names()[i], " of a parameter of size ", parameter.sizes(), " has the size ",
               own.sizes());
    }
    state->is_complete = true;
  }
  return state->tensors;
}

std::unique_ptr<TensorsParamState> Optimizer::empty_state() const {
  return std::make_unique<TensorsParamState>();
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  for (const Tensor& p : group.params()) {
    RL_CHECK(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : param_groups_) {
      for (const Tensor& known : other.params()) {
        RL_CHECK(!known.is_same(p), "some parameters appear in more than one parameter group");
      }
    }
  }
  param_groups_.push_back(group);
  if (!param_groups_.back().has_options()) {
    param_groups_.back().set_options(defaults_->clone());
  } else {
    param_groups_.back().options().inherit(*defaults_);
  }
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  RL_CHECK(!param_groups_.empty(), "there is no group to add parameters to");
  auto& params = param_groups_[0].params();
  params.insert(params.end(), parameters.begin(), parameters.end());
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> out;
  for (const OptimizerParamGroup& group : param_groups_) {
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
  for (const OptimizerParamGroup& group : param_groups_) {
    std::vector<Tensor> params;
    std::vector<Tensor> grads;
    std::vector<State> states(names);
    for (const Tensor& p : group.params()) {
      if (!p.grad().defined()) {
        continue;
      }
      const std::vector<Tensor>& own = tensors_of(p, group.options());
      params.push_back(p);
      grads.push_back(p.grad());
      for (size_t i = 0; i < names; i++) {
        states[i].push_back(own[i]);
      }
    }
    if (params.empty()) {
      continue;
    }
    step_group(group.options(), params, grads, states);
    for (size_t k = 0; k < params.size(); k++) {  // a step may have made what was not there
      std::vector<Tensor>& own = tensors_of(params[k], group.options());
      for (size_t i = 0; i < names; i++) {
        own[i] = states[i][k];
      }
    }
  }
  return loss;
}

std::vector<std::string> Optimizer::state_names() const { return {}; }
Optimizer::State Optimizer::new_state(const Tensor&, const OptimizerOptions&) const { return {}; }
void Optimizer::step_group(const OptimizerOptions&, const std::vector<Tensor>&,
                           const std::vector<Tensor>&, std::vector<State>&) {
  throw Error("this optimizer does not say what a step is");
}

void OptimizerOptions::serialize(serialize::OutputArchive& archive) const {
  archive.write("lr", IValue(get_lr()));
}
void OptimizerOptions::serialize(serialize::InputArchive& archive) {
  IValue lr;
  archive.read("lr", lr);
  set_lr(lr.toDouble());
}

bool operator==(const OptimizerOptions& a, const OptimizerOptions& b) {
  if (typeid(a) != typeid(b)) {
    return false;
  }
  serialize::OutputArchive first;
  serialize::OutputArchive second;
  a.serialize(first);
  b.serialize(second);
  return std::equal(
      first.state().begin(), first.state().end(), second.state().begin(), second.state().end(),
      [](const auto& x, const auto& y) { return x.first == y.first && x.second.equal(y.second); });
}

void OptimizerOptions::inherit(const OptimizerOptions&) {}

void OptimizerOptions::inherit(const OptimizerOptions& defaults, const OptimizerOptions& fresh) {
  serialize::OutputArchive own;
  serialize::OutputArchive usual;
  serialize::OutputArchive given;
  serialize(own);
  fresh.serialize(usual);
  defaults.serialize(given);
  std::unordered_map<std::string, double> before;
  for (const auto& [name, value] : usual.state()) {
    before[name] = value.item().toDouble();
  }
  std::unordered_map<std::string, Tensor> changed;
  for (const auto& [name, value] : own.state()) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != value.item().toDouble()) {
      changed[name] = value;
    }
  }
  serialize::OutputArchive merged;
  for (const auto& [name, value] : given.state()) {
    if (changed.find(name) == changed.end()) {
      merged.write(name, value);
    }
  }
  std::ostringstream bytes;
  merged.save_to(bytes);
  std::istringstream source(bytes.str());
  serialize::InputArchive archive;
  archive.load_from(source);
  serialize(archive);
}

void Optimizer::save_groups(serialize::OutputArchive& archive) const {
  for (size_t g = 0; g < param_groups_.size(); g++) {
    serialize::OutputArchive own;
    param_groups_[g].options().serialize(own);
    archive.write(str("param_groups.", g), own);
  }
}
void Optimizer::load_groups(serialize::InputArchive& archive) {
  for (size_t g = 0; g < param_groups_.size(); g++) {
    serialize::InputArchive own;
    RL_CHECK(archive.try_read(str("param_groups.", g), own),
             "loaded state dict has a different number of parameter groups");
    param_groups_[g].options().serialize(own);
  }
}

void Optimizer::save(serialize::OutputArchive& archive) const {
  const std::vector<std::string> names = state_names();
  save_groups(archive);
  int64_t number = 0;
  for (const Tensor& p : parameters()) {
    const ParamStates::Item* const found = state_.find(p.impl());
    const auto* kept = found == state_.end()
                           ? nullptr
                           : dynamic_cast<const TensorsParamState*>(found->second.get());
    for (size_t i = 0; kept != nullptr && i < kept->tensors.size(); i++) {
      if (kept->tensors[i].defined()) {
        archive.write(str("state.", number, '.', names[i]), kept->tensors[i]);
      }
    }
    number++;
  }
}

void Optimizer::load(serialize::InputArchive& archive) {
  const std::vector<std::string> names = state_names();
  load_groups(archive);
  if (!names.empty()) {
    state_.clear();
  }
  int64_t number = 0;
  for (const Tensor& p : parameters()) {
    State state(names.size());
    bool any = false;
    for (size_t i = 0; i < names.size(); i++) {
      any |= archive.try_read(str("state.", number, '.', names[i]), state[i]);
    }
    if (any) {
      std::unique_ptr<TensorsParamState> kept = empty_state();
      kept->tensors = std::move(state);
      state_[p.impl()] = std::move(kept);
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
