// nn::init: fills tensors with the starting values of parameters, drawn as Python draws them.
#pragma once

#include <rushlight/nn/options.h>

namespace torch::nn::init {

using NonlinearityType = Keyword;
using FanModeType = Keyword;

RL_API double calculate_gain(const Keyword& nonlinearity, double param = 0.01);
RL_API Tensor constant_(Tensor tensor, Scalar value);
RL_API Tensor ones_(Tensor tensor);
RL_API Tensor zeros_(Tensor tensor);
RL_API Tensor eye_(Tensor matrix);
RL_API Tensor dirac_(Tensor tensor, int64_t groups = 1);
RL_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
RL_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
RL_API Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2,
                            double b = 2);
RL_API Tensor orthogonal_(Tensor tensor, double gain = 1);
RL_API Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);
RL_API Tensor xavier_uniform_(Tensor tensor, double gain = 1);
RL_API Tensor xavier_normal_(Tensor tensor, double gain = 1);
RL_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, const Keyword& mode = kFanIn,
                               const Keyword& nonlinearity = kLeakyReLU);
RL_API Tensor kaiming_normal_(Tensor tensor, double a = 0, const Keyword& mode = kFanIn,
                              const Keyword& nonlinearity = kLeakyReLU);
RL_API std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace torch::nn::init
