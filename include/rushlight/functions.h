// Functions that libtorch has beside the ops of the table, each written over these.
#pragma once

#include <rushlight/ops.h>
#include <rushlight/reduction.h>

namespace rushlight {

// ---- random numbers: a new tensor like `self` ----
RL_API Tensor uniform(const Tensor& self, double from = 0, double to = 1,
                      const Generator& generator = {});
RL_API Tensor exponential(const Tensor& self, double lambd = 1, const Generator& generator = {});
RL_API Tensor geometric(const Tensor& self, double p, const Generator& generator = {});
RL_API Tensor cauchy(const Tensor& self, double median = 0, double sigma = 1,
                     const Generator& generator = {});
RL_API Tensor log_normal(const Tensor& self, double mean = 1, double std = 2,
                         const Generator& generator = {});
RL_API Tensor normal_functional(const Tensor& self, double mean = 0, double std = 1,
                                const Generator& generator = {});
RL_API Tensor random(const Tensor& self, const Generator& generator = {});
RL_API Tensor random(const Tensor& self, int64_t to, const Generator& generator = {});
RL_API Tensor random(const Tensor& self, int64_t from, std::optional<int64_t> to,
                     const Generator& generator = {});

// ---- functional forms, and what is known of a tensor ----
inline bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
inline bool is_complex(const Tensor& self) { return self.is_complex(); }
RL_API Tensor zero(const Tensor& self);
RL_API Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking = false);
RL_API Tensor& gelu_(const Tensor& self, std::string_view approximate = "none");
RL_API Tensor _shape_as_tensor(const Tensor& self);
RL_API Tensor _softmax(const Tensor& self, int64_t dim, bool half_to_float);
RL_API Tensor _log_softmax(const Tensor& self, int64_t dim, bool half_to_float);
RL_API std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                                 bool return_inverse = false,
                                                                 bool return_counts = false);
// The logarithm, and an empty buffer, which its gradient does not need.
RL_API std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self);

// ---- reductions of everything, with a dtype alone ----
#define RL_WITH_DTYPE(op)                                             \
  template <class T, std::enable_if_t<is_dtype_argument<T>, int> = 0> \
  Tensor op(const Tensor& self, T dtype) {                            \
    return self.op(dtype);                                            \
  }                                                                   \
  template <class T, std::enable_if_t<is_dtype_argument<T>, int> = 0> \
  Tensor& op##_out(const Tensor& out, const Tensor& self, T dtype) {  \
    return op##_out(out, self, OptionalIntArrayRef(), false, dtype);  \
  }
RL_WITH_DTYPE(sum)
RL_WITH_DTYPE(nansum)
RL_WITH_DTYPE(mean)
RL_WITH_DTYPE(prod)
#undef RL_WITH_DTYPE

// Without padding at the ends.
inline Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, const Tensor& window, bool normalized,
                   std::optional<bool> onesided, std::optional<bool> return_complex = {},
                   std::optional<bool> align_to_window = {}) {
  return stft(self, n_fft, hop_length, win_length, window, false, "reflect", normalized, onesided,
              return_complex, align_to_window);
}

// ---- lists ----
// Sequences of different lengths as one tensor, filled up at the end or ("left") at the beginning.
RL_API Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0,
                           std::string_view padding_side = "right");
RL_API Tensor flatten_dense_tensors(TensorList tensors);
// Views of `flat` with the sizes of `tensors`.
RL_API std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors);

// ---- norms ----
// Over all dimensions but `dim`, which is kept; -1: over all.
RL_API Tensor norm_except_dim(const Tensor& v, int64_t pow = 2, int64_t dim = 0);
RL_API Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim = 0);

// Batch norm in steps, for batches that lie on several devices. A mean and an inverse standard
// deviation of each channel; what they make of the input.
RL_API std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps);
RL_API Tensor batch_norm_elemt(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& mean, const Tensor& invstd, double eps);
// Those of the whole, from a row and a count for each part; running ones are updated.
RL_API std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(
    const Tensor& input, const Tensor& mean, const Tensor& invstd, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps, const Tensor& counts);
RL_API std::tuple<Tensor, Tensor> batch_norm_gather_stats(
    const Tensor& input, const Tensor& mean, const Tensor& invstd, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps, int64_t count);
// The batch's mean and variance; running ones are updated.
RL_API std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input,
                                                          const Tensor& running_mean,
                                                          const Tensor& running_var,
                                                          double momentum);
// Sums of a channel's gradients, of their products with what is above the mean, and the gradients
// of weight and bias; undefined what is not asked for.
RL_API std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const Tensor& weight, bool input_g, bool weight_g, bool bias_g);
RL_API Tensor batch_norm_backward_elemt(const Tensor& grad_out, const Tensor& input,
                                        const Tensor& mean, const Tensor& invstd,
                                        const Tensor& weight, const Tensor& sum_dy,
                                        const Tensor& sum_dy_xmu, const Tensor& count);

// ---- convolutions by the names of kernels; RuntimeError where kernel_size is not the weight's
// ----
RL_API Tensor thnn_conv2d(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                          const Tensor& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0);
RL_API Tensor slow_conv3d(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                          const Tensor& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0);
#define RL_SLOW_CONV(n)                                                                           \
  RL_API Tensor slow_conv_dilated##n##d(                                                          \
      const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const Tensor& bias = {}, \
      IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef dilation = 1);                 \
  RL_API Tensor slow_conv_transpose##n##d(                                                        \
      const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const Tensor& bias = {}, \
      IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef output_padding = 0,            \
      IntArrayRef dilation = 1);
RL_SLOW_CONV(2)
RL_SLOW_CONV(3)
#undef RL_SLOW_CONV

// ---- gradients of ops, for custom functions: by the ops' own derivatives, of any order ----
RL_API Tensor mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                int64_t reduction);
RL_API Tensor smooth_l1_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                      int64_t reduction, double beta);
RL_API Tensor huber_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                  int64_t reduction, double delta);
RL_API Tensor soft_margin_loss_backward(const Tensor& grad, const Tensor& self,
                                        const Tensor& target, int64_t reduction);
RL_API Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& self,
                                            const Tensor& target, const Tensor& weight = {},
                                            int64_t reduction = Reduction::Mean);
RL_API Tensor nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                const Tensor& weight, int64_t reduction, int64_t ignore_index,
                                const Tensor& total_weight);
RL_API Tensor nll_loss2d_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                  const Tensor& weight, int64_t reduction, int64_t ignore_index,
                                  const Tensor& total_weight);
RL_API Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim);
RL_API Tensor logit_backward(const Tensor& grad, const Tensor& self,
                             std::optional<double> eps = {});
RL_API Tensor softshrink_backward(const Tensor& grad, const Tensor& self, const Scalar& lambd);
RL_API Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor& buffer);
RL_API Tensor multi_margin_loss_backward(const Tensor& grad, const Tensor& self,
                                         const Tensor& target, const Scalar& p,
                                         const Scalar& margin, const Tensor& weight = {},
                                         int64_t reduction = Reduction::Mean);
RL_API Tensor multilabel_margin_loss_backward(const Tensor& grad, const Tensor& self,
                                              const Tensor& target, int64_t reduction,
                                              const Tensor& is_target);
RL_API Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim,
                               const Tensor& output);
RL_API Tensor matrix_exp_backward(const Tensor& self, const Tensor& grad);
RL_API Tensor affine_grid_generator_backward(const Tensor& grad, IntArrayRef size,
                                             bool align_corners);
RL_API Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                                  IntArrayRef stride = {}, IntArrayRef padding = 0,
                                  IntArrayRef dilation = 1, bool ceil_mode = false);
// Of an op that picks one element along a dimension: the largest, the median.
RL_API Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim,
                                                 const Tensor& indices, IntArrayRef sizes,
                                                 bool keepdim);
RL_API Tensor trace_backward(const Tensor& grad, IntArrayRef sizes);
RL_API Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                              const Tensor& index, bool sparse_grad);
RL_API Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask);
RL_API Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                                    const Tensor& index);
RL_API Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq, bool sparse);
// Of the arguments that the mask names; undefined ones for the others.
RL_API std::tuple<Tensor, Tensor> matmul_backward(const Tensor& grad, const Tensor& self,
                                                  const Tensor& other, std::array<bool, 2> mask);
RL_API std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& self, const Tensor& grad,
                                                          const Tensor& weight,
                                                          std::array<bool, 3> mask);
RL_API std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, OptionalIntArrayRef bias_sizes,
    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
    IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask);
#define RL_BY_DIMS(n)                                                                          \
  RL_API Tensor avg_pool##n##d_backward(                                                       \
      const Tensor& grad, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,     \
      IntArrayRef padding, bool ceil_mode, bool count_include_pad,                             \
      std::optional<int64_t> divisor_override);                                                \
  RL_API Tensor adaptive_max_pool##n##d_backward(const Tensor& grad, const Tensor& self,       \
                                                 const Tensor& indices);                       \
  RL_API std::tuple<Tensor, Tensor> grid_sampler_##n##d_backward(                              \
      const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode, \
      int64_t padding_mode, bool align_corners, std::array<bool, 2> mask);
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS
#define RL_BY_DIMS(n)                                                                  \
  RL_API Tensor reflection_pad##n##d_backward(const Tensor& grad, const Tensor& self,  \
                                              IntArrayRef padding);                    \
  RL_API Tensor replication_pad##n##d_backward(const Tensor& grad, const Tensor& self, \
                                               IntArrayRef padding);
RL_BY_DIMS(1)
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS
// The scales are those that the op was given.
#define RL_SCALES_1 std::optional<double> scales = {}
#define RL_SCALES_2 std::optional<double> scales_h = {}, std::optional<double> scales_w = {}
#define RL_SCALES_3 std::optional<double> scales_d = {}, RL_SCALES_2
#define RL_UPSAMPLE(name, n)                                                                \
  RL_API Tensor upsample_##name##n##d_backward(const Tensor& grad, IntArrayRef output_size, \
                                               IntArrayRef input_size, bool align_corners,  \
                                               RL_SCALES_##n);
RL_UPSAMPLE(linear, 1)
RL_UPSAMPLE(bilinear, 2)
RL_UPSAMPLE(bicubic, 2)
RL_UPSAMPLE(trilinear, 3)
#undef RL_UPSAMPLE
#define RL_UPSAMPLE(n)                                                                       \
  RL_API Tensor upsample_nearest##n##d_backward(const Tensor& grad, IntArrayRef output_size, \
                                                IntArrayRef input_size, RL_SCALES_##n);
RL_UPSAMPLE(1)
RL_UPSAMPLE(2)
RL_UPSAMPLE(3)
#undef RL_UPSAMPLE
#undef RL_SCALES_1
#undef RL_SCALES_2
#undef RL_SCALES_3

inline Tensor& adaptive_avg_pool3d_backward_out(const Tensor& out, const Tensor& grad,
                                                const Tensor& self) {
  const Tensor result = _adaptive_avg_pool3d_backward(grad, self);
  return out.resize_(result.sizes()).copy_(result);
}

RL_TAKE_OPTIONALS(batch_norm_elemt, )
RL_TAKE_OPTIONALS(batch_norm_gather_stats, )
RL_TAKE_OPTIONALS(batch_norm_gather_stats_with_counts, )
RL_TAKE_OPTIONALS(batch_norm_update_stats, )
RL_TAKE_OPTIONALS(batch_norm_backward_reduce, )
RL_TAKE_OPTIONALS(batch_norm_backward_elemt, )
RL_TAKE_OPTIONALS(thnn_conv2d, )
RL_TAKE_OPTIONALS(slow_conv3d, )
RL_TAKE_OPTIONALS(slow_conv_dilated2d, )
RL_TAKE_OPTIONALS(slow_conv_dilated3d, )
RL_TAKE_OPTIONALS(slow_conv_transpose2d, )
RL_TAKE_OPTIONALS(slow_conv_transpose3d, )
RL_TAKE_OPTIONALS(binary_cross_entropy_backward, )
RL_TAKE_OPTIONALS(nll_loss_backward, )
RL_TAKE_OPTIONALS(nll_loss2d_backward, )
RL_TAKE_OPTIONALS(multi_margin_loss_backward, )

}  // namespace rushlight
