// Derivatives that are longer than the line they have in the op table, declared for the generated
// backward functions. Each is defined in the file of its family; all are written over public ops,
// so they have derivatives.
#pragma once

#include <rushlight/forward.h>
#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight {

// The tensor that an op written over others is about to write into; a copy of it where a graph may
// keep what it was.
template <class... T>
Tensor before_write(const Tensor& self, const T&... others) {
  const bool kept = grad_enabled() && (needs_grad(self) || ... || needs_grad(others));
  return kept ? self.clone() : self;
}

// ---- sparse ----
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq, bool sparse);

// ---- shape ----
Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
Tensor split_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options,
                      IntArrayRef sizes, int64_t dim);
Tensor unbind_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options,
                       int64_t dim);
Tensor as_strided_backward(const Tensor& grad, IntArrayRef self_sizes, IntArrayRef self_strides,
                           int64_t self_offset, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> storage_offset);

// ---- pointwise ----
Tensor scale_gradient(const Tensor& grad,
                      const Scalar& factor);  // grad itself where the factor is 1
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
// A number in the dtype that `other` is computed in, which may hold more of it than the one that
// numbers alone have; tensors as they are.
Tensor number_beside(const Tensor& t, const Tensor& other);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                             const Tensor& result);
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor angle_backward(const Tensor& grad, const Tensor& self);
// Of the sides of a right angle: 0 where there is no length.
Tensor share_of_length(const Tensor& part, const Tensor& length);
// grad * part / (part^2 + rest^2), whose squares neither overflow nor vanish.
Tensor over_square_length(const Tensor& grad, const Tensor& part, const Tensor& rest);
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor sinc_backward(const Tensor& grad, const Tensor& self);
// (self^2 + 1)^-1/2, whose square does not overflow.
// self^2 + 1 and exp(-self^2), whose derivatives where self is infinite are no product of 0 and
// infinity.
Tensor square_and_one(const Tensor& self);
Tensor normal_factor(const Tensor& self);
Tensor asinh_slope(const Tensor& self);
// Slopes of special functions that neither cancel nor overflow where their formulas would, and
// whose own derivatives do not: `result` is the function.
Tensor erfcx_slope(const Tensor& self, const Tensor& result);
Tensor log_ndtr_slope(const Tensor& self, const Tensor& result);
// i1(self) / self and i1e(self) / self.
Tensor i1_over(const Tensor& self, const Tensor& result);
Tensor i1e_over(const Tensor& self, const Tensor& result);
// x^(a - 1) exp(-x) / gamma(a)
Tensor gamma_density(const Tensor& a, const Tensor& x);
Tensor maximum_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor minimum_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                           const Scalar& alpha, const Scalar& scale, const Scalar& input_scale);
Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate);
Tensor silu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor mish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor softplus_double_backward(const Tensor& grad, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold);

// ---- reduce ----
// Undoes a reduction's shape: the reduced dimensions come back by repetition.
Tensor expand_reduced(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim);
Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim);
Tensor prod_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                     OptionalIntArrayRef dim, bool keepdim);
// Elements equal to the extreme share its gradient.
Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                        OptionalIntArrayRef dim, bool keepdim);
Tensor aminmax_backward(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self,
                        const Tensor& min, const Tensor& max, std::optional<int64_t> dim,
                        bool keepdim);
// For ops that pick one element along a dimension.
Tensor scatter_along(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& indices,
                     bool keepdim);
Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim);
Tensor std_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                    OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool keepdim);
Tensor vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                            OptionalIntArrayRef dim, bool keepdim, const Tensor& result);
Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntArrayRef dim, bool keepdim);
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim);
Tensor reverse_cumsum(const Tensor& grad, int64_t dim);
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim);
Tensor scatter_add_along(const Tensor& grad, const Tensor& indices, int64_t dim);

// ---- index ----
Tensor index_backward(const Tensor& grad, IntArrayRef sizes,
                      const std::vector<std::optional<Tensor>>& indices);
Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                             const Tensor& index);
Tensor index_select_like(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes);
Tensor scatter_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                               IntArrayRef sizes);
std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                   int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result);
Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask);
RL_API Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes);
std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<TensorMeta>& tensors,
                                 int64_t dim);

// ---- sort ----
// For ops that pick elements along a dimension, in a tensor of the indices' shape.
Tensor gather_along_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                             const Tensor& indices);

// ---- loss ----
Tensor nll_loss_of_change(const Tensor& change, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, int64_t reduction, int64_t ignore_index);
std::tuple<Tensor, Tensor> cross_entropy_double_backward(
    const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
    const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight, int64_t reduction,
    int64_t ignore_index, double label_smoothing);
Tensor bce_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                           const Tensor& target);
Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq);

// ---- linalg ----
Tensor linear_input_backward(const Tensor& grad, const Tensor& weight);
Tensor linear_weight_backward(const Tensor& grad, const Tensor& input, int64_t weight_dim);

// ---- lapack ----
[[noreturn]] Tensor no_derivative(std::string_view op);  // RuntimeError
Tensor cholesky_backward(const Tensor& grad, const Tensor& L, bool upper);
Tensor lu_factor_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots);
Tensor inv_backward(const Tensor& grad, const Tensor& inverse);
std::tuple<Tensor, Tensor> linalg_solve_backward(const Tensor& grad, const Tensor& A,
                                                 const Tensor& result, bool left,
                                                 std::array<bool, 2> mask);
std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A,
                                                     const Tensor& result, bool upper, bool left,
                                                     bool unitriangular, std::array<bool, 2> mask);
std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad, const Tensor& A, const Tensor& B,
                                          std::array<bool, 2> mask);
Tensor pinv_backward(const Tensor& grad, const Tensor& inverse, const Tensor& A);
Tensor qr_backward(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R,
                   std::string_view mode);
std::tuple<Tensor, Tensor> householder_backward(const Tensor& grad, const Tensor& input,
                                                const Tensor& tau);
Tensor svd_backward(const Tensor& grad_U, const Tensor& grad_S, const Tensor& grad_Vh,
                    const Tensor& U, const Tensor& S, const Tensor& Vh);
Tensor eigh_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors);
Tensor eig_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                    const Tensor& vectors, bool is_complex);
Tensor det_backward(const Tensor& grad, const Tensor& det, const Tensor& A);
// The adjoint of the inverse; infinite where A is singular (sign 0).
Tensor log_det_slopes(const Tensor& A, const Tensor& sign);
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A,
                        const Tensor& sign);

// ---- fft ----
Tensor fft_r2c_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim,
                        int64_t normalization, bool onesided);
Tensor fft_c2r_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization);

// ---- conv ----
Tensor convolution_input_backward(const Tensor& grad, IntArrayRef input_size, const Tensor& weight,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                  bool transposed, int64_t groups);
Tensor convolution_output_gradient(const Tensor& grad, IntArrayRef size, const Tensor& input,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   int64_t groups);
Tensor convolution_weight_gradient(const Tensor& grad, const Tensor& input, IntArrayRef weight_size,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   bool transposed, int64_t groups);
Tensor sum_to_channels(const Tensor& grad);  // over all dimensions but the second

// ---- pool ----
Tensor gather_pooled(const Tensor& t, const Tensor& indices,
                     int64_t dims);  // elements of images at flat places
Tensor places_of_largest(const Tensor& images, IntArrayRef kernel_size, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
DimVector last_sizes(IntArrayRef sizes, int64_t dims);

// ---- pad ----
DimVector negate(IntArrayRef list);

// ---- norm ----
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
ThreeTensors batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const Tensor& running_mean, const Tensor& running_var,
                                 const Tensor& mean, const Tensor& invstd, bool training,
                                 double eps, std::array<bool, 3> mask);
ThreeTensors layer_norm_backward(const Tensor& grad, const Tensor& input,
                                 IntArrayRef normalized_shape, const Tensor& weight,
                                 const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                 double eps, std::array<bool, 3> mask);
DimVector in_groups(const Tensor& input, int64_t num_groups);  // [image][group][the rest]
ThreeTensors group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                 int64_t num_groups, double eps, std::array<bool, 3> mask);
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input,
                                             IntArrayRef normalized_shape, const Tensor& weight,
                                             const Tensor& rstd, std::optional<double> eps,
                                             std::array<bool, 2> mask);

// ---- distance ----
std::tuple<Tensor, Tensor> cdist_gradients(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                           double p, const Tensor& distance,
                                           std::array<bool, 2> mask);

// ---- recurrent ----
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> recurrent_layer_backward(
    const Tensor& grad_output, const Tensor& grad_hidden, const Tensor& grad_cell,
    const Tensor& gates, const Tensor& hidden, const Tensor& cell, const Tensor& weight_hh,
    const Tensor& bias_hh, const Tensor& weight_hr, const Tensor& output, const Tensor& kept_gates,
    const Tensor& kept_cells, IntArrayRef batch_sizes, std::string_view mode, bool reverse,
    bool batch_first, bool keep, std::array<bool, 6> mask);

// ---- resample ----
std::tuple<Tensor, Tensor> grid_sampler_gradients(const Tensor& grad, const Tensor& input,
                                                  const Tensor& grid, int64_t mode, int64_t padding,
                                                  bool align_corners, std::array<bool, 2> mask);
// The same over ops that can be differentiated.
std::tuple<Tensor, Tensor> grid_sampler_gradients_by_taps(const Tensor& grad, const Tensor& input,
                                                          const Tensor& grid, int64_t mode,
                                                          int64_t padding, bool align_corners,
                                                          std::array<bool, 2> mask);

// ---- vision ----
Tensor boxes_at(const Tensor& images, const Tensor& rois, const Tensor& indices);
std::tuple<Tensor, Tensor, Tensor> deform_columns_gradients(
    const Tensor& grad, const Tensor& input, const Tensor& offset, const Tensor& factor,
    IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
    std::array<bool, 3> mask);

// ---- attention ----
ThreeTensors attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                const Tensor& value, const Tensor& attn_mask, const Tensor& output,
                                const Tensor& logsumexp, bool is_causal, double scale,
                                std::array<bool, 3> mask);

}  // namespace rushlight
