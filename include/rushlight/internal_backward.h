// Gradients of ops by libtorch's inner names, as in functions.h: by the ops' own derivatives, of any
// order where nothing else is said.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include <rushlight/functions.h>

namespace rushlight {

#pragma GCC visibility push(default)
Tensor elu_backward(const Tensor& grad, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result);
Tensor leaky_relu_backward(const Tensor& grad, const Tensor& self, const Scalar& negative_slope,
                           bool self_is_result);
Tensor rrelu_with_noise_backward(const Tensor& grad, const Tensor& self, const Tensor& noise,
                                 const Scalar& lower, const Scalar& upper, bool training,
                                 bool self_is_result);
Tensor infinitely_differentiable_gelu_backward(const Tensor& grad, const Tensor& self);
std::tuple<Tensor, Tensor> _prelu_kernel_backward(const Tensor& grad, const Tensor& self,
                                                  const Tensor& weight);
Tensor glu_backward_jvp(const Tensor& grad_x, const Tensor& grad_glu, const Tensor& x,
                        const Tensor& dgrad_glu, const Tensor& dx, int64_t dim);
Tensor _masked_softmax_backward(const Tensor& grad, const Tensor& output, const Tensor& mask,
                                std::optional<int64_t> dim = {});
Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices,
                          int64_t dim);
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes);
Tensor _gather_sparse_backward(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& grad);
std::tuple<Tensor, Tensor> _grid_sampler_2d_cpu_fallback_backward(
    const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
    int64_t padding_mode, bool align_corners);
Tensor _pdist_backward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist);
Tensor _segment_reduce_backward(const Tensor& grad, const Tensor& output, const Tensor& data,
                                std::string_view reduce, const Tensor& lengths = {},
                                const Tensor& offsets = {}, int64_t axis = 0,
                                const std::optional<Scalar>& initial = {});
#define RL_WEIGHT_NORM(name)                                                                   \
  std::tuple<Tensor, Tensor> _weight_norm_##name(const Tensor& grad_w, const Tensor& saved_v,  \
                                                 const Tensor& saved_g, const Tensor& norms,   \
                                                 int64_t dim);
RL_WEIGHT_NORM(interface_backward)
RL_WEIGHT_NORM(differentiable_backward)
#undef RL_WEIGHT_NORM
std::tuple<Tensor, Tensor, Tensor> conv_tbc_backward(const Tensor& grad, const Tensor& input,
                                                     const Tensor& weight, const Tensor& bias,
                                                     int64_t pad);
Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq);
// Of embedding_bag by its weight; modes by number: sum, mean, max.
Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size,
                               const Tensor& maximum_indices, int64_t num_weights,
                               bool scale_grad_by_freq, int64_t mode, bool sparse,
                               const Tensor& per_sample_weights, int64_t padding_idx = -1);
Tensor _embedding_bag_dense_backward(const Tensor& grad, const Tensor& indices,
                                     const Tensor& offset2bag, const Tensor& bag_size,
                                     const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode,
                                     const Tensor& per_sample_weights, int64_t padding_idx = -1);
Tensor _embedding_bag_sparse_backward(const Tensor& grad, const Tensor& indices,
                                      const Tensor& offsets, const Tensor& offset2bag,
                                      const Tensor& bag_size, int64_t num_weights,
                                      bool scale_grad_by_freq, int64_t mode,
                                      const Tensor& per_sample_weights, int64_t padding_idx = -1);
Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad, const Tensor& weight,
                                                  const Tensor& indices, const Tensor& offsets,
                                                  const Tensor& offset2bag, int64_t mode,
                                                  int64_t padding_idx = -1);
#define RL_BY_DIMS(n)                                                                            \
  Tensor fractional_max_pool##n##d_backward(const Tensor& grad, const Tensor& self,              \
                                            IntArrayRef kernel_size, IntArrayRef output_size,    \
                                            const Tensor& indices);
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS
#define RL_ANTIALIASED(name)                                                                     \
  Tensor _upsample_##name##2d_aa_backward(const Tensor& grad, IntArrayRef output_size,           \
                                          IntArrayRef input_size, bool align_corners,            \
                                          std::optional<double> scales_h = {},                   \
                                          std::optional<double> scales_w = {});
RL_ANTIALIASED(bilinear)
RL_ANTIALIASED(bicubic)
#undef RL_ANTIALIASED
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size,
                                          std::optional<double> scales = {});
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size,
                                          std::optional<double> scales_h = {},
                                          std::optional<double> scales_w = {});
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size,
                                          std::optional<double> scales_d = {},
                                          std::optional<double> scales_h = {},
                                          std::optional<double> scales_w = {});
Tensor to_dense_backward(const Tensor& grad, const Tensor& input,
                         std::optional<bool> masked_grad = {});
#pragma GCC visibility pop

RL_TAKE_OPTIONALS(_segment_reduce_backward, )
RL_TAKE_OPTIONALS(_embedding_bag_backward, )
RL_TAKE_OPTIONALS(_embedding_bag_dense_backward, )
RL_TAKE_OPTIONALS(_embedding_bag_sparse_backward, )

}  // namespace rushlight
