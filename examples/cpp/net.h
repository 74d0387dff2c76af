// The network for digits: trained by digits.cpp, asked by server.cpp.
#pragma once

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv1(torch::nn::Conv2dOptions(1, 16, 3).padding(1)),
        conv2(torch::nn::Conv2dOptions(16, 32, 3).padding(1)),
        norm(32),
        fc(32 * 2 * 2, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("norm", norm);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(norm(conv2(x))), 2);
    return fc(x.flatten(1));
  }
  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d norm;
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);
