// The network of this project: one number in, one number out. Layers that are registered by name
// have their weights trained, saved under that name, and named in errors.
#pragma once

#include <torch/torch.h>

struct CurveImpl : torch::nn::Module {
  explicit CurveImpl(int64_t width = 32)
      : up(register_module("up", torch::nn::Linear(1, width))),
        middle(register_module("middle", torch::nn::Linear(width, width))),
        down(register_module("down", torch::nn::Linear(width, 1))) {}

  // (N, 1) → (N, 1)
  torch::Tensor forward(torch::Tensor x) {
    x = torch::tanh(up(x));
    x = torch::tanh(middle(x));
    return down(x);
  }

  torch::nn::Linear up, middle, down;
};
TORCH_MODULE(Curve);
