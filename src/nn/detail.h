// The functions behind modules and functional forms, flags in place of options: which op is meant.
#pragma once

#include <rushlight/nn/options.h>
#include <rushlight/ops.h>

namespace torch::nn::functional::detail {

using Optional = std::optional<int64_t>;

// As modules print their options.
template <class T>
const T& to_printable(const T& value) {
  return value;
}
inline const char* to_printable(bool value) { return value ? "true" : "false"; }
inline std::string to_printable(Optional value) { return value ? std::to_string(*value) : "None"; }

// ---- activations ----

#define RL_ACTIVATION(name)                               \
  inline Tensor name(const Tensor& input, bool inplace) { \
    return inplace ? input.name##_() : input.name();      \
  }
#define RL_ACTIVATION_OP(name)                                           \
  inline Tensor name(const Tensor& input, bool inplace) {                \
    return inplace ? rushlight::name##_(input) : rushlight::name(input); \
  }
RL_ACTIVATION(relu)
RL_ACTIVATION_OP(relu6)
RL_ACTIVATION_OP(selu)
RL_ACTIVATION_OP(silu)
RL_ACTIVATION_OP(mish)
RL_ACTIVATION_OP(hardswish)
RL_ACTIVATION_OP(hardsigmoid)
#undef RL_ACTIVATION
#undef RL_ACTIVATION_OP
#define RL_ACTIVATION1(name)                                                             \
  inline Tensor name(const Tensor& input, double number, bool inplace) {                 \
    return inplace ? rushlight::name##_(input, number) : rushlight::name(input, number); \
  }
RL_ACTIVATION1(leaky_relu)
RL_ACTIVATION1(elu)
RL_ACTIVATION1(celu)
#undef RL_ACTIVATION1
inline Tensor gelu(const Tensor& input, std::string_view approximate) {
  return rushlight::gelu(input, approximate);
}
inline Tensor sigmoid(const Tensor& input) { return input.sigmoid(); }
inline Tensor tanh(const Tensor& input) { return input.tanh(); }
inline Tensor logsigmoid(const Tensor& input) { return rushlight::log_sigmoid(input); }
inline Tensor softsign(const Tensor& input) { return rushlight::softsign(input); }
inline Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
inline Tensor softplus(const Tensor& input, double beta, double threshold) {
  return rushlight::softplus(input, beta, threshold);
}
inline Tensor softshrink(const Tensor& input, double lambda) {
  return rushlight::softshrink(input, lambda);
}
inline Tensor hardshrink(const Tensor& input, double lambda) { return input.hardshrink(lambda); }
inline Tensor hardtanh(const Tensor& input, double low, double high, bool inplace) {
  return inplace ? rushlight::hardtanh_(input, low, high) : rushlight::hardtanh(input, low, high);
}
inline Tensor threshold(const Tensor& input, double threshold, double value, bool inplace) {
  return inplace ? rushlight::threshold_(input, threshold, value)
                 : rushlight::threshold(input, threshold, value);
}
inline Tensor rrelu(const Tensor& input, double lower, double upper, bool training, bool inplace) {
  return inplace ? rushlight::rrelu_(input, lower, upper, training)
                 : rushlight::rrelu(input, lower, upper, training);
}
inline Tensor glu(const Tensor& input, int64_t dim) { return rushlight::glu(input, dim); }
// Where no dim is given: that of the classes, by the number of dimensions.
inline int64_t softmax_dim(const Tensor& input, Optional dim) {
  return dim.value_or(input.dim() == 0 || input.dim() == 1 || input.dim() == 3 ? 0 : 1);
}
inline Tensor softmax(const Tensor& input, Optional dim, std::optional<ScalarType> dtype = {}) {
  return input.softmax(softmax_dim(input, dim), dtype);
}
inline Tensor softmin(const Tensor& input, Optional dim, std::optional<ScalarType> dtype = {}) {
  return (-input).softmax(softmax_dim(input, dim), dtype);
}
inline Tensor log_softmax(const Tensor& input, Optional dim, std::optional<ScalarType> dtype = {}) {
  return input.log_softmax(softmax_dim(input, dim), dtype);
}

// ---- dropout ----

#define RL_DROPOUT(name, op)                                                                   \
  inline Tensor name(const Tensor& input, double p, bool training, bool inplace) {             \
    RL_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);  \
    return inplace ? rushlight::op##_(input, p, training) : rushlight::op(input, p, training); \
  }
RL_DROPOUT(dropout, dropout)
RL_DROPOUT(dropout1d, dropout1d)
RL_DROPOUT(dropout2d, feature_dropout)
RL_DROPOUT(dropout3d, feature_dropout)
RL_DROPOUT(alpha_dropout, alpha_dropout)
RL_DROPOUT(feature_alpha_dropout, feature_alpha_dropout)
#undef RL_DROPOUT

// ---- windows ----

// An open size is the input's own.
inline DimVector resolve_sizes(const Tensor& input, ArrayRef<Optional> sizes) {
  DimVector out;
  const int64_t first = input.dim() - static_cast<int64_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); i++) {
    out.push_back(sizes[i] ? *sizes[i] : input.size(first + static_cast<int64_t>(i)));
  }
  return out;
}
using Both = std::tuple<Tensor, Tensor>;  // maxima and their indices
#define RL_POOL(n)                                                                              \
  inline Both max_pool##n##d_with_indices(const Tensor& input, IntArrayRef kernel,              \
                                          IntArrayRef stride, IntArrayRef padding,              \
                                          IntArrayRef dilation, bool ceil_mode) {               \
    return rushlight::max_pool##n##d_with_indices(input, kernel, stride, padding, dilation,     \
                                                  ceil_mode);                                   \
  }                                                                                             \
  inline Both adaptive_max_pool##n##d_with_indices(const Tensor& input,                         \
                                                   ArrayRef<Optional> sizes) {                  \
    return rushlight::adaptive_max_pool##n##d(input, resolve_sizes(input, sizes));              \
  }                                                                                             \
  inline Tensor max_pool##n##d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,     \
                               IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {     \
    return rushlight::max_pool##n##d(input, kernel, stride, padding, dilation, ceil_mode);      \
  }                                                                                             \
  inline Tensor adaptive_max_pool##n##d(const Tensor& input, ArrayRef<Optional> sizes) {        \
    return std::get<0>(rushlight::adaptive_max_pool##n##d(input, resolve_sizes(input, sizes))); \
  }                                                                                             \
  inline Tensor adaptive_max_pool##n##d(const Tensor& input, IntArrayRef sizes) {               \
    return std::get<0>(rushlight::adaptive_max_pool##n##d(input, sizes));                       \
  }                                                                                             \
  inline Tensor adaptive_avg_pool##n##d(const Tensor& input, ArrayRef<Optional> sizes) {        \
    return rushlight::adaptive_avg_pool##n##d(input, resolve_sizes(input, sizes));              \
  }
RL_POOL(1)
RL_POOL(2)
RL_POOL(3)
#undef RL_POOL
inline Tensor avg_pool1d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, bool ceil_mode, bool count_include_pad) {
  return rushlight::avg_pool1d(input, kernel, stride, padding, ceil_mode, count_include_pad);
}
inline Tensor avg_pool2d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         Optional divisor) {
  return rushlight::avg_pool2d(input, kernel, stride, padding, ceil_mode, count_include_pad,
                               divisor);
}
inline Tensor avg_pool3d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         Optional divisor) {
  return rushlight::avg_pool3d(input, kernel, stride, padding, ceil_mode, count_include_pad,
                               divisor);
}
inline Tensor lp_pool1d(const Tensor& input, double norm, IntArrayRef kernel, IntArrayRef stride,
                        bool ceil_mode) {
  return rushlight::lp_pool1d(input, norm, kernel[0], stride, ceil_mode);
}
inline Tensor lp_pool2d(const Tensor& input, double norm, IntArrayRef kernel, IntArrayRef stride,
                        bool ceil_mode) {
  return rushlight::lp_pool2d(input, norm, kernel, stride, ceil_mode);
}
inline Tensor lp_pool3d(const Tensor& input, double norm, IntArrayRef kernel, IntArrayRef stride,
                        bool ceil_mode) {
  return rushlight::lp_pool3d(input, norm, kernel, stride, ceil_mode);
}
inline Tensor pad(const Tensor& input, IntArrayRef padding, std::string_view mode,
                  std::optional<double> value = {}) {
  return rushlight::pad(input, padding, mode, value);
}
inline Tensor fold(const Tensor& input, IntArrayRef output, IntArrayRef kernel,
                   IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  return rushlight::col2im(input, output, kernel, dilation, padding, stride);
}
inline Tensor unfold(const Tensor& input, IntArrayRef kernel, IntArrayRef dilation,
                     IntArrayRef padding, IntArrayRef stride) {
  return rushlight::im2col(input, kernel, dilation, padding, stride);
}
inline Tensor pixel_shuffle(const Tensor& input, int64_t factor) {
  return rushlight::pixel_shuffle(input, factor);
}
inline Tensor pixel_unshuffle(const Tensor& input, int64_t factor) {
  return rushlight::pixel_unshuffle(input, factor);
}
inline Tensor channel_shuffle(const Tensor& input, int64_t groups) {
  return rushlight::channel_shuffle(input, groups);
}

// ---- distances and losses ----

inline Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  return rushlight::cosine_similarity(a, b, dim, eps);
}
inline Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps,
                                bool keepdim) {
  return rushlight::pairwise_distance(a, b, p, eps, keepdim);
}
using Word = const Keyword&;
#define RL_LOSS(name)                                                             \
  inline Tensor name(const Tensor& input, const Tensor& target, Word reduction) { \
    return rushlight::name(input, target, reduction_of(reduction));               \
  }
RL_LOSS(l1_loss)
RL_LOSS(mse_loss)
RL_LOSS(soft_margin_loss)
RL_LOSS(multilabel_margin_loss)
#undef RL_LOSS
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Word reduction,
                             double beta) {
  return rushlight::smooth_l1_loss(input, target, reduction_of(reduction), beta);
}
inline Tensor huber_loss(const Tensor& input, const Tensor& target, Word reduction, double delta) {
  return rushlight::huber_loss(input, target, reduction_of(reduction), delta);
}
inline Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                       int64_t ignore_index, Word reduction) {
  return rushlight::nll_loss_nd(input, target, weight, reduction_of(reduction), ignore_index);
}
inline Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            int64_t ignore_index, Word reduction, double label_smoothing) {
  return rushlight::cross_entropy_loss(input, target, weight, reduction_of(reduction), ignore_index,
                                       label_smoothing);
}
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Word reduction) {
  return rushlight::binary_cross_entropy(input, target, weight, reduction_of(reduction));
}
inline Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                               const Tensor& weight, const Tensor& pos_weight,
                                               Word reduction) {
  return rushlight::binary_cross_entropy_with_logits(input, target, weight, pos_weight,
                                                     reduction_of(reduction));
}
inline Tensor kl_div(const Tensor& input, const Tensor& target, Word reduction, bool log_target) {
  if (reduction == "batchmean") {
    const Tensor sum = rushlight::kl_div(input, target, reduction_of("sum"), log_target);
    return input.dim() == 0 ? sum : sum / input.size(0);
  }
  return rushlight::kl_div(input, target, reduction_of(reduction), log_target);
}
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                               double eps, Word reduction) {
  return rushlight::poisson_nll_loss(input, target, log_input, full, eps, reduction_of(reduction));
}
inline Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                bool full, double eps, Word reduction) {
  return rushlight::gaussian_nll_loss(input, target, var, full, eps, reduction_of(reduction));
}
inline Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                                   Word reduction) {
  return rushlight::hinge_embedding_loss(input, target, margin, reduction_of(reduction));
}
inline Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                  double margin, Word reduction) {
  return rushlight::margin_ranking_loss(a, b, target, margin, reduction_of(reduction));
}
inline Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                    double margin, Word reduction) {
  return rushlight::cosine_embedding_loss(a, b, target, margin, reduction_of(reduction));
}
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative, double margin, double p, double eps,
                                  bool swap, Word reduction) {
  return rushlight::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                        reduction_of(reduction));
}
inline Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin,
                                const Tensor& weight, Word reduction) {
  return rushlight::multi_margin_loss(input, target, p, margin, weight, reduction_of(reduction));
}
inline Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                          const Tensor& weight, Word reduction) {
  return rushlight::multilabel_soft_margin_loss(input, target, weight, reduction_of(reduction));
}

}  // namespace torch::nn::functional::detail
