// The optimisers: what they keep of each parameter, and the op that is a step.
#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/ops.h>
#include <rushlight/optim.h>

#include "optim/fields.h"

namespace rushlight::optim {

// The options of an optimiser as an archive has them: visit(options, f) names them.
#define RL_OPTIONS(Name, ...)                                              \
  template <class Options, class F>                                        \
  static void visit_##Name(Options& o, const F& f) {                       \
    __VA_ARGS__                                                            \
  }                                                                        \
  void Name##Options::serialize(serialize::OutputArchive& archive) const { \
    visit_##Name(*this, Writer{archive});                                  \
  }                                                                        \
  void Name##Options::serialize(serialize::InputArchive& archive) {        \
    visit_##Name(*this, Reader{archive});                                  \
  }

namespace {
// What an optimiser's state is by name; those that libtorch lacks have none.
template <class O>
struct StateOf {
  using type = TensorsParamState;
};
#define RL_STATE_OF(Name)          \
  template <>                      \
  struct StateOf<Name> {           \
    using type = Name##ParamState; \
  };
RL_STATE_OF(SGD)
RL_STATE_OF(Adam)
RL_STATE_OF(AdamW)
RL_STATE_OF(RMSprop)
RL_STATE_OF(Adagrad)
#undef RL_STATE_OF
}  // namespace
#define RL_CLONE(State)                                       \
  std::unique_ptr<OptimizerParamState> State::clone() const { \
    return std::make_unique<State>(*this);                    \
  }
RL_CLONE(SGDParamState)
RL_CLONE(AdamParamState)
RL_CLONE(RMSpropParamState)
RL_CLONE(AdagradParamState)
#undef RL_CLONE

#define RL_OPTIMIZER(Name)                                                             \
  template class OptimizerCloneableOptions<Name##Options>;                             \
  Name::Name(std::vector<Tensor> params, Name##Options defaults)                       \
      : Name(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, \
             std::move(defaults)) {}                                                   \
  Name::Name(std::vector<OptimizerParamGroup> groups, Name##Options defaults)          \
      : Optimizer(std::move(groups), std::make_unique<Name##Options>(defaults)) {      \
    RL_CHECK(defaults.lr() >= 0, "Invalid learning rate: ", defaults.lr());            \
  }                                                                                    \
  std::unique_ptr<TensorsParamState> Name::empty_state() const {                       \
    return std::make_unique<StateOf<Name>::type>();                                    \
  }

namespace {
Tensor counter() { return zeros({}, kFloat32); }
std::vector<Tensor> if_any(bool any, const std::vector<Tensor>& list) {
  return any ? list : std::vector<Tensor>();
}
}  // namespace

RL_OPTIMIZER(SGD)
RL_OPTIONS(SGD, f("lr", o.lr()); f("momentum", o.momentum()); f("dampening", o.dampening());
           f("weight_decay", o.weight_decay()); f("nesterov", o.nesterov());)
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
RL_OPTIONS(Adam, f("lr", o.lr()); f("betas", o.betas()); f("eps", o.eps());
           f("weight_decay", o.weight_decay()); f("amsgrad", o.amsgrad());)
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
RL_OPTIONS(AdamW, f("lr", o.lr()); f("betas", o.betas()); f("eps", o.eps());
           f("weight_decay", o.weight_decay()); f("amsgrad", o.amsgrad());)
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
RL_OPTIONS(RMSprop, f("lr", o.lr()); f("alpha", o.alpha()); f("eps", o.eps());
           f("weight_decay", o.weight_decay()); f("momentum", o.momentum());
           f("centered", o.centered());)
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
RL_OPTIONS(Adagrad, f("lr", o.lr()); f("lr_decay", o.lr_decay());
           f("weight_decay", o.weight_decay());
           f("initial_accumulator_value", o.initial_accumulator_value()); f("eps", o.eps());)
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

RL_OPTIMIZER(Adadelta)
RL_OPTIONS(Adadelta, f("lr", o.lr()); f("rho", o.rho()); f("eps", o.eps());
           f("weight_decay", o.weight_decay());)
std::vector<std::string> Adadelta::state_names() const {
  return {"step", "square_avg", "acc_delta"};
}
Optimizer::State Adadelta::new_state(const Tensor& p, const OptimizerOptions&) const {
  return {counter(), zeros_like(p), zeros_like(p)};
}
void Adadelta::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                          const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const AdadeltaOptions&>(options);
  adadelta_step_(params, grads, states[1], states[2], states[0], o.lr(), o.rho(), o.eps(),
                 o.weight_decay(), false);
}

RL_OPTIMIZER(Adamax)
RL_OPTIONS(Adamax, f("lr", o.lr()); f("betas", o.betas()); f("eps", o.eps());
           f("weight_decay", o.weight_decay());)
std::vector<std::string> Adamax::state_names() const { return {"step", "exp_avg", "exp_inf"}; }
Optimizer::State Adamax::new_state(const Tensor& p, const OptimizerOptions&) const {
  return {counter(), zeros_like(p), zeros_like(p)};
}
void Adamax::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                        const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const AdamaxOptions&>(options);
  adamax_step_(params, grads, states[1], states[2], states[0], o.lr(), std::get<0>(o.betas()),
               std::get<1>(o.betas()), o.eps(), o.weight_decay(), false);
}

RL_OPTIMIZER(NAdam)
RL_OPTIONS(NAdam, f("lr", o.lr()); f("betas", o.betas()); f("eps", o.eps());
           f("weight_decay", o.weight_decay()); f("momentum_decay", o.momentum_decay());
           f("decoupled_weight_decay", o.decoupled_weight_decay());)
std::vector<std::string> NAdam::state_names() const {
  return {"step", "mu_product", "exp_avg", "exp_avg_sq"};
}
Optimizer::State NAdam::new_state(const Tensor& p, const OptimizerOptions&) const {
  return {counter(), ones({}, kFloat32), zeros_like(p), zeros_like(p)};
}
void NAdam::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                       const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const NAdamOptions&>(options);
  nadam_step_(params, grads, states[2], states[3], states[1], states[0], o.lr(),
              std::get<0>(o.betas()), std::get<1>(o.betas()), o.eps(), o.weight_decay(),
              o.momentum_decay(), o.decoupled_weight_decay(), false);
}

RL_OPTIMIZER(RAdam)
RL_OPTIONS(RAdam, f("lr", o.lr()); f("betas", o.betas()); f("eps", o.eps());
           f("weight_decay", o.weight_decay());
           f("decoupled_weight_decay", o.decoupled_weight_decay());)
std::vector<std::string> RAdam::state_names() const { return {"step", "exp_avg", "exp_avg_sq"}; }
Optimizer::State RAdam::new_state(const Tensor& p, const OptimizerOptions&) const {
  return {counter(), zeros_like(p), zeros_like(p)};
}
void RAdam::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                       const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const RAdamOptions&>(options);
  radam_step_(params, grads, states[1], states[2], states[0], o.lr(), std::get<0>(o.betas()),
              std::get<1>(o.betas()), o.eps(), o.weight_decay(), o.decoupled_weight_decay(), false);
}

RL_OPTIMIZER(Rprop)
RL_OPTIONS(Rprop, f("lr", o.lr()); f("etas", o.etas()); f("step_sizes", o.step_sizes());)
std::vector<std::string> Rprop::state_names() const { return {"step", "prev", "step_size"}; }
Optimizer::State Rprop::new_state(const Tensor& p, const OptimizerOptions& options) const {
  const double lr = options.get_lr();
  const Scalar length = p.is_complex() ? Scalar(complex<double>(lr, lr)) : Scalar(lr);
  return {counter(), zeros_like(p), full_like(p, length)};
}
void Rprop::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                       const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const RpropOptions&>(options);
  rprop_step_(params, grads, states[1], states[2], states[0], std::get<0>(o.etas()),
              std::get<1>(o.etas()), std::get<0>(o.step_sizes()), std::get<1>(o.step_sizes()),
              false);
}

RL_OPTIMIZER(ASGD)
RL_OPTIONS(ASGD, f("lr", o.lr()); f("lambd", o.lambd()); f("alpha", o.alpha()); f("t0", o.t0());
           f("weight_decay", o.weight_decay());)
std::vector<std::string> ASGD::state_names() const { return {"step", "eta", "mu", "ax"}; }
Optimizer::State ASGD::new_state(const Tensor& p, const OptimizerOptions& options) const {
  return {counter(), full({}, options.get_lr(), kFloat32), ones({}, kFloat32), zeros_like(p)};
}
void ASGD::step_group(const OptimizerOptions& options, const std::vector<Tensor>& params,
                      const std::vector<Tensor>& grads, std::vector<State>& states) {
  const auto& o = static_cast<const ASGDOptions&>(options);
  for (size_t i = 0; i < params.size(); i++) {
    asgd_step_({params[i]}, {grads[i]}, {states[3][i]}, o.lambd(), states[1][i].item<double>(),
               states[2][i].item<double>(), o.weight_decay(), false);
    states[0][i].add_(1);
    const auto count = states[0][i].item<double>();
    states[1][i].fill_(o.lr() / std::pow(1 + o.lambd() * o.lr() * count, o.alpha()));
    states[2][i].fill_(1 / std::max(1.0, count - o.t0()));
  }
}

}  // namespace rushlight::optim
