// Learns the sine of numbers between -3 and 3, shows how it goes, and saves the network:
//
//   build/train [STEPS]
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <torch/torch.h>

#include "model.h"
#include "progress.h"

namespace {

void train(int64_t steps) {
  torch::manual_seed(0);  // the same numbers each time
  Curve net;
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
  torch::optim::StepLR schedule(optimizer, /*step_size=*/100, /*gamma=*/0.7);

  Progress progress(steps);
  for (int64_t step = 0; step < steps; step++) {
    const torch::Tensor x = torch::rand({64, 1}) * 6 - 3;
    const torch::Tensor loss = torch::mse_loss(net(x), x.sin());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    schedule.step();
    progress.step(loss.item<double>());
  }
  std::printf("%s", progress.curve().c_str());

  const torch::NoGradGuard no_grad;
  net->eval();
  const torch::Tensor x = torch::linspace(-3, 3, 601).unsqueeze(1);
  const auto worst = (net(x) - x.sin()).abs().max().item<double>();
  std::printf("the largest error between -3 and 3: %.3f\n", worst);
  torch::save(net, "model.pt");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? std::atoll(argv[1]) : 1000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
