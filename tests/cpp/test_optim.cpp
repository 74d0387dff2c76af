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

RL_TEST_MAIN()
