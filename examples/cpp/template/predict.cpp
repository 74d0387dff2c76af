// Asks the saved network for the values of numbers:
//
//   build/predict NUMBER...
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <torch/torch.h>

#include "model.h"

int main(int argc, char** argv) {
  try {
    Curve net;
    torch::load(net, "model.pt");
    net->eval();
    const torch::InferenceMode inference;
    std::vector<double> numbers;
    for (int i = 1; i < argc; i++) {
      numbers.push_back(std::atof(argv[i]));
    }
    const torch::Tensor x = torch::tensor(numbers).to(torch::kFloat).unsqueeze(1);
    const torch::Tensor y = net(x).squeeze(1).contiguous();
    for (int64_t i = 0; i < y.size(0); i++) {
      std::printf("%g -> %.3f\n", numbers[static_cast<size_t>(i)], y[i].item<double>());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
