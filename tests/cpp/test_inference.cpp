// Eight threads infer on one module at once: each gets what one thread alone gets, bit for bit.
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "check.h"

namespace nn = torch::nn;

namespace {

constexpr int count = 8;

// What `infer` gives for inputs of its own in each of eight threads, thrice, beside serial calls.
template <class Infer>
bool agrees(const std::vector<torch::Tensor>& inputs, const Infer& infer) {
  std::vector<torch::Tensor> alone;
  for (const torch::Tensor& input : inputs) {
    const torch::NoGradGuard no_grad;
    alone.push_back(infer(input));
  }
  std::atomic<int> ready{0};
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; i++) {
    threads.emplace_back([&, i] {
      const auto n = static_cast<size_t>(i);
      ready++;
      while (ready < count) {
        std::this_thread::yield();
      }
      for (int round = 0; round < 3; round++) {
        if (i % 2 == 0) {
          const torch::NoGradGuard no_grad;
          right += torch::equal(infer(inputs[n]), alone[n]) ? 1 : 0;
        } else {
          const torch::InferenceMode inference;
          right += torch::equal(infer(inputs[n]), alone[n]) ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return right == 3 * count;
}

std::vector<torch::Tensor> inputs(torch::IntArrayRef sizes) {
  std::vector<torch::Tensor> out;
  for (int i = 0; i < count; i++) {
    out.push_back(torch::randn(sizes));
  }
  return out;
}

RL_TEST(images_of_one_convolutional_network) {
  torch::manual_seed(0);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(6, 16, 5).bias(false)),
                     nn::BatchNorm2d(16), nn::ReLU(), nn::AdaptiveAvgPool2d(5), nn::Flatten(),
                     nn::Linear(400, 84), nn::Dropout(0.5), nn::GELU(), nn::Linear(84, 10),
                     nn::Softmax(1));
  net->eval();
  CHECK(agrees(inputs({3, 1, 28, 28}), [&](const torch::Tensor& x) { return net->forward(x); }));
}

RL_TEST(sequences_of_one_transformer_and_one_recurrent_network) {
  torch::manual_seed(0);
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(16, 4));
  layer->eval();
  CHECK(agrees(inputs({7, 2, 16}), [&](const torch::Tensor& x) { return layer(x); }));
  nn::LSTM lstm(nn::LSTMOptions(16, 8).num_layers(2));
  nn::LayerNorm norm(nn::LayerNormOptions({8}));
  lstm->eval();
  CHECK(agrees(inputs({7, 2, 16}),
               [&](const torch::Tensor& x) { return norm(std::get<0>(lstm(x))); }));
}

RL_TEST(gradients_of_inputs_in_threads_of_their_own) {
  torch::manual_seed(0);
  nn::Sequential net(nn::Linear(20, 30), nn::Tanh(), nn::Linear(30, 5));
  for (torch::Tensor parameter : net->parameters()) {
    parameter.requires_grad_(false);
  }
  std::vector<torch::Tensor> given = inputs({4, 20});
  std::vector<torch::Tensor> grads(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; i++) {
    threads.emplace_back([&, i] {
      torch::Tensor x = given[i].clone().requires_grad_();
      net->forward(x).square().sum().backward();
      grads[i] = x.grad();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (size_t i = 0; i < count; i++) {
    torch::Tensor x = given[i].clone().requires_grad_();
    net->forward(x).square().sum().backward();
    CHECK(torch::equal(x.grad(), grads[i]));
  }
}

}  // namespace

RL_TEST_MAIN()
