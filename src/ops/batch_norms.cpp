// Functions of the expressions of `batch=` for norms: what is normalised is that of all slices,
// weights are those of each.
#include "core/op_support.h"
#include "ops/batch_formulas.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

DimVector trailing_dims(IntArrayRef shape) {
  DimVector out;
  for (size_t i = shape.size(); i > 0; i--) {
    out.push_back(-static_cast<int64_t>(i));
  }
  return out;
}

// What is brought to mean 0 and variance 1, and the gradient through it.
Tensor normalize_values(const Tensor& t, const Tensor& scaled, const Tensor& rstd,
                        IntArrayRef dims) {
  return rstd * (t - t.mean(dims, true) - scaled * (scaled * t).mean(dims, true));
}

// Sums over the rows of slices, which gradients of weights are.
Tensor sum_rows(const Tensor& t, IntArrayRef normalized_shape, int64_t batch) {
  DimVector rows;
  for (int64_t d = 1; d < t.dim() - static_cast<int64_t>(normalized_shape.size()); d++) {
    rows.push_back(d);
  }
  return rows.empty() ? expand_batch(t, batch) : expand_batch(t, batch).sum(rows);
}

Tensor multiply_slices(const Tensor& t, const Tensor& weight) {
  return weight.defined() ? t * with_dims(weight, t.dim() - 1) : t;
}
Tensor add_bias(const Tensor& t, const Tensor& bias) {
  return bias.defined() ? t + with_dims(bias, t.dim() - 1) : t;
}

}  // namespace

Three batched_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         double momentum, double eps, int64_t batch) {
  // Channels of all slices side by side. What is kept running is written where it lies.
  const Tensor running[] = {merge_batch(running_mean, 0, batch),
                            merge_batch(running_var, 0, batch)};
  const auto [out, mean, invstd] = native_batch_norm(
      merge_batch(input, 1, batch), merge_batch(weight, 0, batch), merge_batch(bias, 0, batch),
      running[0], running[1], training, momentum, eps);
  if (training && running_mean.defined()) {
    RL_CHECK(batch == 1 || (running_mean.size(0) == batch && running_var.size(0) == batch),
             "Batch norm got a batched tensor, but running_mean or running_var, which training "
             "writes to, without a batch. Give vmap those, too, or set track_running_stats=False");
    running_mean.copy_(split_batch(running[0], 0, batch));
    running_var.copy_(split_batch(running[1], 0, batch));
  }
  const bool kept = mean.numel() > 0;
  return {split_batch(out, 1, batch),
          kept ? split_batch(mean, 0, batch) : expand_batch(mean.unsqueeze(0), batch),
          kept ? split_batch(invstd, 0, batch) : expand_batch(invstd.unsqueeze(0), batch)};
}

Three batched_batch_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  const Tensor& weight, const Tensor& running_mean,
                                  const Tensor& running_var, const Tensor& save_mean,
                                  const Tensor& save_invstd, bool training, double eps,
                                  int64_t batch) {
  const auto [out, weights, biases] = native_batch_norm_backward(
      merge_batch(grad_output, 1, batch), merge_batch(input, 1, batch),
      merge_batch(weight, 0, batch), merge_batch(running_mean, 0, batch),
      merge_batch(running_var, 0, batch), merge_batch(save_mean, 0, batch),
      merge_batch(save_invstd, 0, batch), training, eps);
  return {split_batch(out, 1, batch), split_batch(weights, 0, batch),
          split_batch(biases, 0, batch)};
}

Three batched_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                         const Tensor& bias, double eps, int64_t batch) {
  const auto [out, mean, rstd] =
      native_layer_norm(expand_batch(input, batch), normalized_shape, {}, {}, eps);
  return {add_bias(multiply_slices(out, weight), bias), mean, rstd};
}

Three batched_layer_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  IntArrayRef normalized_shape, const Tensor& mean,
                                  const Tensor& rstd, const Tensor& weight, int64_t batch) {
  const Tensor scaled = (input - mean) * rstd;
  const Tensor found = normalize_values(multiply_slices(grad_output, weight), scaled, rstd,
                                        trailing_dims(normalized_shape));
  return {expand_batch(found, batch), sum_rows(grad_output * scaled, normalized_shape, batch),
          sum_rows(grad_output, normalized_shape, batch)};
}

Two batched_rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                     std::optional<double> eps, int64_t batch) {
  const auto [out, rstd] = _fused_rms_norm(expand_batch(input, batch), normalized_shape, {}, eps);
  return {multiply_slices(out, weight), rstd};
}

Two batched_rms_norm_backward(const Tensor& grad_output, const Tensor& input,
                              IntArrayRef normalized_shape, const Tensor& rstd,
                              const Tensor& weight, int64_t batch) {
  const Tensor scaled = input * rstd;
  const Tensor given = multiply_slices(grad_output, weight);
  const Tensor found =
      rstd * (given - scaled * (scaled * given).mean(trailing_dims(normalized_shape), true));
  return {expand_batch(found, batch), sum_rows(grad_output * scaled, normalized_shape, batch)};
}

namespace {

// Weights of channels beside images.
Tensor per_channel(const Tensor& t, int64_t rank) {
  DimVector sizes(static_cast<size_t>(rank), 1);
  sizes[0] = t.size(0);
  sizes[2] = t.size(1);
  return t.reshape(sizes);
}

}  // namespace

Three batched_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         int64_t num_groups, double eps, int64_t batch) {
  auto [out, mean, rstd] = _group_norm(merge_batch(input, 0, batch), {}, {}, num_groups, eps);
  out = split_batch(out, 0, batch);
  out = weight.defined() ? out * per_channel(weight, input.dim()) : out;
  out = bias.defined() ? out + per_channel(bias, input.dim()) : out;
  return {out, split_batch(mean, 0, batch), split_batch(rstd, 0, batch)};
}

Three batched_group_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                  int64_t num_groups, int64_t batch) {
  const Tensor images = merge_batch(input, 0, batch);
  const DimVector groups = in_groups(images, num_groups);
  const Tensor scale = merge_batch(rstd, 0, batch).unsqueeze(-1);
  const Tensor scaled =
      (images.reshape(groups) - merge_batch(mean, 0, batch).unsqueeze(-1)) * scale;
  const Tensor grad = expand_batch(grad_output, batch);
  const auto sums = [&](const Tensor& t) { return t.unsqueeze(-1).flatten(3).sum({1, 3}); };
  const Tensor given = weight.defined() ? grad * per_channel(weight, grad.dim()) : grad;
  const Tensor found = normalize_values(given.flatten(0, 1).reshape(groups), scaled, scale, {-1});
  const Tensor product = grad * scaled.reshape(images.sizes()).reshape(grad.sizes());
  return {split_batch(found.reshape(images.sizes()), 0, batch), sums(product), sums(grad)};
}

}  // namespace rushlight
