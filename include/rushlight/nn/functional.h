// nn::functional: what layers compute, with weights as arguments. Those of stateless modules are
// generated (stateless.h).
#pragma once

#include <rushlight/nn/layers.h>
#include <rushlight/nn/stateless.h>

namespace torch::nn {

// Options by the number of dimensions: MaxPoolOptions<2> is MaxPool2dOptions.
#define RL_BY_DIMS(Name) \
  template <size_t D>    \
  using Name##Options =  \
      std::tuple_element_t<D - 1, std::tuple<Name##1dOptions, Name##2dOptions, Name##3dOptions>>
RL_BY_DIMS(AvgPool);
RL_BY_DIMS(MaxPool);
RL_BY_DIMS(LPPool);
RL_BY_DIMS(AdaptiveAvgPool);
RL_BY_DIMS(AdaptiveMaxPool);
RL_BY_DIMS(ReflectionPad);
RL_BY_DIMS(ReplicationPad);
RL_BY_DIMS(ZeroPad);
RL_BY_DIMS(ConstantPad);
#undef RL_BY_DIMS

}  // namespace torch::nn

namespace torch::nn::functional {

#define RL_CONV(n)                                                              \
  struct Conv##n##dFuncOptions {                                                \
    using padding_t = ConvPadding<n>;                                           \
    TORCH_ARG(Tensor, bias);                                                    \
    TORCH_ARG(ExpandingArray<n>, stride) = 1;                                   \
    TORCH_ARG(ConvPadding<n>, padding) = 0;                                     \
    TORCH_ARG(ExpandingArray<n>, dilation) = 1;                                 \
    TORCH_ARG(int64_t, groups) = 1;                                             \
  };                                                                            \
  RL_API Tensor conv##n##d(const Tensor& input, const Tensor& weight,           \
                           const Conv##n##dFuncOptions& options = {});          \
  struct ConvTranspose##n##dFuncOptions {                                       \
    TORCH_ARG(Tensor, bias);                                                    \
    TORCH_ARG(ExpandingArray<n>, stride) = 1;                                   \
    TORCH_ARG(ExpandingArray<n>, padding) = 0;                                  \
    TORCH_ARG(ExpandingArray<n>, output_padding) = 0;                           \
    TORCH_ARG(int64_t, groups) = 1;                                             \
    TORCH_ARG(ExpandingArray<n>, dilation) = 1;                                 \
  };                                                                            \
  RL_API Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, \
                                     const ConvTranspose##n##dFuncOptions& options = {})
RL_CONV(1);
RL_CONV(2);
RL_CONV(3);
#undef RL_CONV

RL_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
RL_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const Tensor& bias = {});
RL_API Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);
RL_API Tensor prelu(const Tensor& input, const Tensor& weight);

struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  TORCH_ARG(std::vector<int64_t>, pad);
  RL_KEYWORD_ARG(mode) = kConstant;
  TORCH_ARG(double, value) = 0;
};
RL_API Tensor pad(const Tensor& input, const PadFuncOptions& options);

struct InterpolateFuncOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size);
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor);
  RL_KEYWORD_ARG(mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners);
  TORCH_ARG(std::optional<bool>, recompute_scale_factor);
  TORCH_ARG(bool, antialias) = false;
};
RL_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});

struct GridSampleFuncOptions {
  RL_KEYWORD_ARG(mode) = kBilinear;
  RL_KEYWORD_ARG(padding_mode) = kZeros;
  TORCH_ARG(std::optional<bool>, align_corners);
};
RL_API Tensor grid_sample(const Tensor& input, const Tensor& grid,
                          const GridSampleFuncOptions& options = {});
RL_API Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);

struct BatchNormFuncOptions {
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(Tensor, bias);
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(double, eps) = 1e-5;
};
RL_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& options = {});
struct InstanceNormFuncOptions {
  TORCH_ARG(Tensor, running_mean);
  TORCH_ARG(Tensor, running_var);
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(Tensor, bias);
  TORCH_ARG(bool, use_input_stats) = true;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(double, eps) = 1e-5;
};
RL_API Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> shape) : normalized_shape_(std::move(shape)) {}
  TORCH_ARG(std::vector<int64_t>, normalized_shape);
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(Tensor, bias);
  TORCH_ARG(double, eps) = 1e-5;
};
RL_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  TORCH_ARG(int64_t, num_groups);
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(Tensor, bias);
  TORCH_ARG(double, eps) = 1e-5;
};
RL_API Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
using LocalResponseNormFuncOptions = LocalResponseNormOptions;
RL_API Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
struct NormalizeFuncOptions {
  TORCH_ARG(double, p) = 2;
  TORCH_ARG(int64_t, dim) = 1;
  TORCH_ARG(double, eps) = 1e-12;
  TORCH_ARG(std::optional<Tensor>, out);
};
RL_API Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});

struct EmbeddingFuncOptions {
  TORCH_ARG(std::optional<int64_t>, padding_idx);
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(bool, sparse) = false;
};
RL_API Tensor embedding(const Tensor& indices, const Tensor& weight,
                        const EmbeddingFuncOptions& options = {});

struct EmbeddingBagFuncOptions {
  TORCH_ARG(Tensor, offsets);
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  RL_KEYWORD_ARG(mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(Tensor, per_sample_weights);
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx);
};
RL_API Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                            const EmbeddingBagFuncOptions& options = {});
RL_API Tensor pdist(const Tensor& input, double p = 2);

// libtorch names these after the function.
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;

using HardtanhFuncOptions = HardtanhOptions;
RL_API Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& options = {});
using ReLU6FuncOptions = ReLU6Options;
RL_API Tensor relu6(const Tensor& input, const ReLU6FuncOptions& options = {});
struct GumbelSoftmaxFuncOptions {
  TORCH_ARG(double, tau) = 1;
  TORCH_ARG(bool, hard) = false;
  TORCH_ARG(int64_t, dim) = -1;
};
RL_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});
using CTCLossFuncOptions = CTCLossOptions;
RL_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, const CTCLossFuncOptions& options = {});

inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                             SmoothL1LossFuncOptions options, double beta) {
  return smooth_l1_loss(input, target, options.beta(beta));
}

}  // namespace torch::nn::functional
