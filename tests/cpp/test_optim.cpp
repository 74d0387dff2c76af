// Optimisers go on from saved state as if they had never stopped.
#include <torch/torch.h>

#include <sstream>

#include "check.h"

namespace optim = torch::optim;

namespace {

// Steps on a small regression, from a generator's numbers alone.
template <class O>
void steps(torch::nn::Linear& net, O& optimizer, int count) {
  for (int i = 0; i < count; i++) {
    const torch::Tensor x = torch::arange(12.0F).reshape({4, 3}).sin();
    const auto closure = [&] {
      optimizer.zero_grad();
      torch::Tensor loss = (net(x) - x.sum(1, true)).square().mean();
      loss.backward();
      return loss;
    };
    optimizer.step(closure);
  }
}

// Four steps, and two, then two more from what was saved in between.
template <class O, class Options>
bool resumes(Options options, Options others = {}) {
  torch::manual_seed(3);
  torch::nn::Linear net(3, 1);
  O optimizer(net->parameters(), options);
  steps(net, optimizer, 2);
  std::stringstream saved_net;
  std::stringstream saved;
  torch::save(net, saved_net);
  torch::save(optimizer, saved);
  steps(net, optimizer, 2);
  torch::nn::Linear again(3, 1);
  O from_file(again->parameters(), others);
  torch::load(again, saved_net);
  torch::load(from_file, saved);
  steps(again, from_file, 2);
  return torch::equal(net->weight, again->weight) && torch::equal(net->bias, again->bias);
}

RL_TEST(state_is_saved_whole) {
  CHECK(resumes<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9).nesterov(true)));
  CHECK(resumes<optim::Adam>(optim::AdamOptions(0.1).amsgrad(true).betas({0.8, 0.9})));
  CHECK(resumes<optim::AdamW>(optim::AdamWOptions(0.1).weight_decay(0.3)));
  CHECK(resumes<optim::RMSprop>(optim::RMSpropOptions(0.1).centered(true).momentum(0.5)));
  CHECK(resumes<optim::Adagrad>(optim::AdagradOptions(0.1).lr_decay(0.1)));
  CHECK(resumes<optim::Adadelta>(optim::AdadeltaOptions(0.5).rho(0.8)));
  CHECK(resumes<optim::Adamax>(optim::AdamaxOptions(0.1).eps(1e-3)));
  CHECK(resumes<optim::NAdam>(optim::NAdamOptions(0.1).momentum_decay(0.1)));
  CHECK(resumes<optim::RAdam>(optim::RAdamOptions(0.1).decoupled_weight_decay(true)));
  CHECK(resumes<optim::Rprop>(optim::RpropOptions(0.1).etas({0.4, 1.3})));
  CHECK(resumes<optim::ASGD>(optim::ASGDOptions(0.1).t0(1)));
  CHECK(resumes<optim::LBFGS>(optim::LBFGSOptions(0.1).max_iter(2)));
  CHECK(resumes<optim::LBFGS>(
      optim::LBFGSOptions(1).max_iter(3).history_size(2).line_search_fn("strong_wolfe")));
}

RL_TEST(state_of_lbfgs) {
  const torch::Tensor x = torch::full({2}, 3.0, torch::requires_grad());
  optim::LBFGS lbfgs({x}, optim::LBFGSOptions(1).max_iter(4));
  CHECK(lbfgs.state().empty());
  lbfgs.step([&] {
    lbfgs.zero_grad();
    const torch::Tensor loss = x.pow(4).sum();
    loss.backward();
    return loss;
  });
  auto& held = *lbfgs.state().at(x.unsafeGetTensorImpl());
  const auto& state = static_cast<optim::LBFGSParamState&>(held);
  CHECK(state.n_iter() == 4 && state.func_evals() == 4 && state.d().numel() == 2);
  CHECK(state.old_dirs().size() == state.ro().size() && !state.ro().empty());
  const auto copy = held.clone();
  CHECK(static_cast<optim::LBFGSParamState&>(*copy).n_iter() == 4);
}

RL_TEST(lbfgs_refuses) {
  torch::nn::Linear net(2, 1);
  optim::LBFGS lbfgs(net->parameters());
  CHECK_THROWS(c10::Error, "closure", lbfgs.step(nullptr));
  CHECK_THROWS(
      c10::Error, "strong_wolfe",
      optim::LBFGS(net->parameters(), optim::LBFGSOptions().line_search_fn("other")).step([] {
        return torch::zeros({});
      }));
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{net->weight});
  groups.emplace_back(std::vector<torch::Tensor>{net->bias});
  CHECK_THROWS(c10::Error, "parameter groups", (optim::LBFGS(groups), 0));
}

// An optimiser of a program's own: a step is all that it says.
struct Halving : optim::Optimizer {
  using optim::Optimizer::Optimizer;
  torch::Tensor step(LossClosure) override {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor p : parameters()) {
      p.mul_(0.5);
    }
    return {};
  }
};
RL_TEST(own_optimizer) {
  const torch::Tensor p = torch::ones({2}, torch::requires_grad());
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{p});
  Halving own(groups, std::make_unique<optim::SGDOptions>(1.0));
  own.step(nullptr);
  CHECK(torch::equal(p, torch::full({2}, 0.5)));
}

}  // namespace

// As programs do that add rows to a parameter while it is trained.
template <class Optimizer, class Options, class State>
void check_states_follow_parameters() {
  using namespace torch;  // NOLINT: as programs do
  manual_seed(0);
  Tensor w = randn({3, 2}).requires_grad_();
  Optimizer optimizer({w}, Options(0.1));
  const auto step = [&](Tensor& p) {
    optimizer.zero_grad();
    (p * p).sum().backward();
    optimizer.step();
  };
  CHECK(optimizer.state().empty());
  CHECK_THROWS(c10::IndexError, "keeps nothing", optimizer.state().at(w.unsafeGetTensorImpl()));
  step(w);
  step(w);
  CHECK(optimizer.state().size() == 1);
  auto& kept = static_cast<State&>(*optimizer.state().at(w.unsafeGetTensorImpl()));
  CHECK(kept.step() == 2);
  CHECK(kept.exp_avg().sizes() == w.sizes() && kept.exp_avg_sq().gt(0).all().template item<bool>());

  const Tensor more = cat({w.detach(), ones({1, 2})}).requires_grad_();
  auto fresh = std::make_unique<State>();
  fresh->step(kept.step());
  fresh->exp_avg(cat({kept.exp_avg(), zeros({1, 2})}));
  fresh->exp_avg_sq(cat({kept.exp_avg_sq(), zeros({1, 2})}));
  const Tensor average = kept.exp_avg().clone();
  CHECK(optimizer.state().erase(w.unsafeGetTensorImpl()) == 1);
  CHECK(optimizer.state().erase(w.unsafeGetTensorImpl()) == 0);
  optimizer.state()[more.unsafeGetTensorImpl()] = std::move(fresh);
  optimizer.param_groups()[0].params()[0] = more;
  Tensor grown = more;
  step(grown);
  step(w);  // another one's gradient: not this optimiser's any more
  auto& now = static_cast<State&>(*optimizer.state()[more.unsafeGetTensorImpl()]);
  CHECK(now.step() >= 3 && optimizer.state().count(w.unsafeGetTensorImpl()) == 0);
  CHECK(!now.exp_avg().slice(0, 0, 3).equal(average));
  const auto copy = now.clone();
  CHECK(static_cast<State&>(*copy).exp_avg().is_same(now.exp_avg()));

  auto wrong = std::make_unique<State>();
  wrong->exp_avg(zeros({1}));
  optimizer.state()[more.unsafeGetTensorImpl()] = std::move(wrong);
  grown.mutable_grad() = ones_like(grown);
  CHECK_THROWS(c10::Error, "exp_avg of a parameter of size", optimizer.step());
}
RL_TEST(states_of_parameters_can_be_read_and_replaced) {
  using namespace torch;         // NOLINT: as programs do
  using namespace torch::optim;  // NOLINT
  check_states_follow_parameters<Adam, AdamOptions, AdamParamState>();
  check_states_follow_parameters<AdamW, AdamWOptions, AdamWParamState>();
  Tensor w = ones({2}).requires_grad_();
  w.mutable_grad() = ones({2});
  SGD sgd({w}, SGDOptions(0.1).momentum(0.9));
  sgd.step();
  CHECK(static_cast<SGDParamState&>(*sgd.state()[w.impl()]).momentum_buffer().equal(ones({2})));
  RMSprop rmsprop({w}, RMSpropOptions(0.1).centered(true));
  rmsprop.step();
  auto& mean = static_cast<RMSpropParamState&>(*rmsprop.state()[w.impl()]);
  CHECK(mean.grad_avg().defined() && !mean.momentum_buffer().defined() && mean.step() == 1);
  Adagrad adagrad({w}, AdagradOptions(0.1));
  adagrad.step();
  CHECK(static_cast<AdagradParamState&>(*adagrad.state()[w.impl()]).sum().equal(ones({2})));
}

RL_TEST_MAIN()
