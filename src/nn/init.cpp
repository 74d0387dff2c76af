// Starting values of parameters.
#include <rushlight/nn/init.h>

#include <cmath>

#include <rushlight/indexing.h>
#include <rushlight/ops.h>
#include <rushlight/thread_state.h>

namespace torch::nn::init {

double calculate_gain(const Keyword& nonlinearity, double param) {
  const std::string& name = nonlinearity.text();
  if (name == "linear" || name == "sigmoid" || name.compare(0, 4, "conv") == 0) {
    return 1;
  }
  if (name == "tanh") {
    return 5.0 / 3;
  }
  if (name == "relu") {
    return std::sqrt(2.0);
  }
  if (name == "leaky_relu") {
    return std::sqrt(2.0 / (1 + param * param));
  }
  if (name == "selu") {
    return 3.0 / 4;
  }
  throw ValueError(str("Unsupported nonlinearity ", name));
}

Tensor constant_(Tensor tensor, Scalar value) {
  const NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }

Tensor eye_(Tensor matrix) {
  RL_CHECK_VALUE(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  const NoGradGuard no_grad;
  matrix.zero_();
  matrix.diagonal().fill_(1);
  return matrix;
}

Tensor dirac_(Tensor tensor, int64_t groups) {
  RL_CHECK_VALUE(tensor.dim() >= 3 && tensor.dim() <= 5,
                 "Only tensors with 3, 4, or 5 dimensions are supported");
  RL_CHECK_VALUE(tensor.size(0) % groups == 0, "dim 0 must be divisible by groups");
  const NoGradGuard no_grad;
  tensor.zero_();
  const int64_t share = tensor.size(0) / groups;
  for (int64_t group = 0; group < groups; group++) {
    for (int64_t channel = 0; channel < std::min(share, tensor.size(1)); channel++) {
      Tensor place = tensor[group * share + channel][channel];
      while (place.dim() > 0) {
        place = place[place.size(0) / 2];
      }
      place.fill_(1);
    }
  }
  return tensor;
}

Tensor uniform_(Tensor tensor, double low, double high) {
  const NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}
Tensor normal_(Tensor tensor, double mean, double std) {
  const NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}

// As Python's trunc_normal_ (nn/init.py), which says why.
Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  constexpr int rounds = 100'000;
  const auto below = [&](double x) {
    return (1.0 + std::erf((x - mean) / std / std::sqrt(2.0))) / 2.0;
  };
  const bool from_normal = below(b) - below(a) >= 0.3;
  const double peak = std::min(std::max(mean, a), b);
  const NoGradGuard no_grad;
  Tensor waiting;
  for (int round = 0; round < rounds; round++) {
    const Tensor drawn = empty_like(tensor);
    Tensor refused;
    if (from_normal) {
      drawn.normal_(mean, std);
      refused = (drawn < a) | (drawn > b);
    } else {
      drawn.uniform_(a, b);
      const Tensor ratio =
          ((drawn - mean).pow(2) - (peak - mean) * (peak - mean)) / (-2 * std * std);
      refused = empty_like(tensor).uniform_(0.0, 1.0).log() > ratio;
    }
    if (!waiting.defined()) {
      tensor.copy_(drawn);
      waiting = refused;
    } else {
      tensor.copy_(where(waiting, drawn, tensor));
      waiting = waiting & refused;
    }
    if (!waiting.any().item<bool>()) {
      return tensor;
    }
  }
  throw Error(str("trunc_normal_: no numbers were found in [", a, ", ", b, "]"));
}

Tensor orthogonal_(Tensor tensor, double gain) {
  RL_CHECK_VALUE(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  if (tensor.numel() == 0) {
    return tensor;
  }
  const NoGradGuard no_grad;
  const int64_t rows = tensor.size(0);
  const int64_t columns = tensor.numel() / rows;
  Tensor flat = empty({rows, columns}, tensor.options()).normal_(0, 1);
  if (rows < columns) {
    flat = flat.t();
  }
  auto [q, r] = linalg_qr(flat);
  q = q * r.diagonal().sign();  // makes the distribution uniform over orthogonal matrices
  if (rows < columns) {
    q = q.t();
  }
  tensor.view_as(q).copy_(q);
  return tensor.mul_(gain);
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  RL_CHECK_VALUE(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const NoGradGuard no_grad;
  const auto zeros =
      static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(tensor.size(0))));
  tensor.normal_(0, std);
  for (int64_t column = 0; column < tensor.size(1); column++) {
    const Tensor rows = randperm(tensor.size(0)).slice(0, 0, zeros);
    tensor.index_put_({rows, column}, 0);
  }
  return tensor;
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  RL_CHECK_VALUE(
      tensor.dim() >= 2,
      "Fan in and fan out can not be computed: expected a tensor of 2 dimensions or more, but got ",
      tensor.dim());
  int64_t field = 1;
  for (const int64_t n : tensor.sizes().slice(2)) {
    field *= n;
  }
  return {tensor.size(1) * field, tensor.size(0) * field};
}

namespace {
double xavier_std(const Tensor& tensor, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}
double kaiming_std(const Tensor& tensor, double a, const Keyword& mode,
                   const Keyword& nonlinearity) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  const double fan = static_cast<double>(mode == "fan_in" ? in : out);
  return calculate_gain(nonlinearity, a) / std::sqrt(fan);
}
}  // namespace

Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return init::uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return init::normal_(std::move(tensor), 0, std);
}
Tensor kaiming_uniform_(Tensor tensor, double a, const Keyword& mode, const Keyword& nonlinearity) {
  if (tensor.numel() == 0) {
    return tensor;
  }
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return init::uniform_(std::move(tensor), -bound, bound);
}
Tensor kaiming_normal_(Tensor tensor, double a, const Keyword& mode, const Keyword& nonlinearity) {
  if (tensor.numel() == 0) {
    return tensor;
  }
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return init::normal_(std::move(tensor), 0, std);
}

}  // namespace torch::nn::init
