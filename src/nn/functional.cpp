// Functional forms with option structs, over ops.
#include <rushlight/nn/functional.h>

#include <rushlight/factories.h>

#include "nn/detail.h"

namespace torch::nn::functional {

#define RL_CONV(n)                                                                               \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Conv##n##dFuncOptions& o) { \
    if (!o.padding().word().empty()) {                                                           \
      return rushlight::conv##n##d(input, weight, o.bias(), o.stride(),                          \
                                   std::string_view(o.padding().word()), o.dilation(),           \
                                   o.groups());                                                  \
    }                                                                                            \
    return rushlight::conv##n##d(input, weight, o.bias(), o.stride(),                            \
                                 IntArrayRef(o.padding().sizes()), o.dilation(), o.groups());    \
  }                                                                                              \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight,                         \
                              const ConvTranspose##n##dFuncOptions& o) {                         \
    return rushlight::conv_transpose##n##d(input, weight, o.bias(), o.stride(), o.padding(),     \
                                           o.output_padding(), o.groups(), o.dilation());        \
  }
RL_CONV(1)
RL_CONV(2)
RL_CONV(3)
#undef RL_CONV

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return rushlight::linear(input, weight, bias);
}
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  return rushlight::bilinear(input1, input2, weight, bias);
}
Tensor one_hot(const Tensor& tensor, int64_t num_classes) {
  return rushlight::one_hot(tensor, num_classes);
}
Tensor prelu(const Tensor& input, const Tensor& weight) { return input.prelu(weight); }

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  const bool constant = o.mode() == "constant";
  return rushlight::pad(input, o.pad(), o.mode(),
                        constant ? std::optional<double>(o.value()) : std::nullopt);
}

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  OptionalIntArrayRef size;
  if (o.size()) {
    size = *o.size();
  }
  std::optional<ArrayRef<double>> scale;
  if (o.scale_factor()) {
    scale = ArrayRef<double>(*o.scale_factor());
  }
  return rushlight::interpolate(input, size, scale, o.mode(), o.align_corners(),
                                o.recompute_scale_factor(), o.antialias());
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  return rushlight::grid_sample(input, grid, o.mode(), o.padding_mode(), o.align_corners());
}
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return rushlight::affine_grid(theta, size, align_corners);
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  return rushlight::batch_norm(input, o.weight(), o.bias(), running_mean, running_var, o.training(),
                               o.momentum(), o.eps());
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  return rushlight::instance_norm(input, o.weight(), o.bias(), o.running_mean(), o.running_var(),
                                  o.use_input_stats(), o.momentum(), o.eps());
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return rushlight::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return rushlight::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  return rushlight::local_response_norm(input, o.size(), o.alpha(), o.beta(), o.k());
}
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  if (o.out()) {
    return div_out(*o.out(), input, input.norm(o.p(), {o.dim()}, true).clamp_min(o.eps()));
  }
  return rushlight::normalize(input, o.p(), o.dim(), o.eps());
}
Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingFuncOptions& o) {
  return _rows_of_embedding(indices, weight, o.padding_idx(), o.max_norm(), o.norm_type(),
                            o.scale_grad_by_freq(), o.sparse());
}
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  const std::string_view modes[] = {"sum", "mean", "max"};
  int64_t mode = 0;
  while (mode < 3 && o.mode() != modes[mode]) {
    mode++;
  }
  RL_CHECK_VALUE(mode < 3, "embedding_bag: mode has to be kSum, kMean or kMax");
  if (o.max_norm()) {
    const NoGradGuard no_grad;
    embedding_renorm_(weight, input, *o.max_norm(), o.norm_type());
  }
  Tensor starts = o.offsets();
  if (input.dim() == 2) {
    RL_CHECK_VALUE(!starts.defined(), "if input is 2D, then offsets has to be null");
    starts = arange(0, input.numel(), input.size(1), TensorOptions(kInt64).device(input.device()));
  }
  RL_CHECK_VALUE(starts.defined(), "offsets has to be a 1D Tensor but got null");
  const Tensor& weights = o.per_sample_weights();
  return std::get<0>(rushlight::embedding_bag(
      weight, input.reshape(-1), starts, o.scale_grad_by_freq(), mode, o.sparse(),
      weights.defined() ? weights.reshape(-1) : weights, o.include_last_offset(), o.padding_idx()));
}
Tensor pdist(const Tensor& input, double p) { return rushlight::pdist(input, p); }
Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& o) {
  return detail::hardtanh(input, o.min_val(), o.max_val(), o.inplace());
}
Tensor relu6(const Tensor& input, const ReLU6FuncOptions& o) {
  return detail::relu6(input, o.inplace());
}
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  return rushlight::gumbel_softmax(logits, o.tau(), o.hard(), o.dim());
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& o) {
  return rushlight::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(),
                             reduction_of(o.reduction()), o.zero_infinity());
}

}  // namespace torch::nn::functional
