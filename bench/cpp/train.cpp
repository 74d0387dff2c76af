// Training steps of two small networks; compiled against rushlight and against libtorch alike
// (bench/cpp/__main__.py). Reads "NAME STEPS" from lines and answers with the nanoseconds of a step
// and the last loss, so that two programs can take turns.
#include <torch/torch.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

namespace nn = torch::nn;

namespace {

struct Training {
  Training(nn::Sequential net, torch::Tensor x)
      : net(net),
        x(std::move(x)),
        y(torch::randint(10, {64}, torch::kInt64)),
        optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)) {}
  torch::Tensor step() {
    optimizer.zero_grad();
    torch::Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  }
  nn::Sequential net;
  torch::Tensor x;
  torch::Tensor y;
  torch::optim::SGD optimizer;
};

std::unique_ptr<Training> make(const std::string& name) {
  torch::manual_seed(1);
  if (name == "mlp_digits") {
    return std::make_unique<Training>(
        nn::Sequential(nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 64), nn::ReLU(),
                       nn::Linear(64, 10)),
        torch::rand({64, 64}));
  }
  return std::make_unique<Training>(
      nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(6, 16, 5)), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120), nn::ReLU(),
                     nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10)),
      torch::rand({64, 1, 28, 28}));
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::string name;
  long steps = 0;
  std::string made;
  std::unique_ptr<Training> training;
  while (std::cin >> name >> steps) {
    if (name != made) {
      training = make(name);
      made = name;
    }
    torch::Tensor loss;
    const auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < steps; i++) {
      loss = training->step();
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::cout << took.count() / static_cast<double>(steps) << ' ' << loss.item<float>()
              << std::endl;
  }
}
