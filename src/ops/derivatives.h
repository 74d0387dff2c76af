// Derivatives that are longer than the line they have in the op table, declared for the generated backward
// functions. Each is defined in the file of its family; all are written over public ops, so they have derivatives.
#pragma once

#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight {

// ---- shape ----
Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
Tensor split_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options, IntArrayRef sizes,
                      int64_t dim);
Tensor unbind_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options, int64_t dim);
Tensor as_strided_backward(const Tensor& grad, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> storage_offset);

// ---- pointwise ----
Tensor scaled(const Tensor& grad, const Scalar& factor);  // grad itself where the factor is 1
Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result);
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor angle_backward(const Tensor& grad, const Tensor& self);
Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor sinc_backward(const Tensor& grad, const Tensor& self);
Tensor maximum_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor minimum_backward(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor elu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Scalar& alpha,
                           const Scalar& scale, const Scalar& input_scale);
Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate);
Tensor silu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor mish_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self);
Tensor softplus_double_backward(const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold);

// ---- reduce ----

// ---- index ----

// ---- sort ----

// ---- loss ----

// ---- linalg ----
Tensor scaled(const Tensor& t, const Scalar& factor);  // t itself where the factor is 1
Tensor linear_input_backward(const Tensor& grad, const Tensor& weight);
Tensor linear_weight_backward(const Tensor& grad, const Tensor& input, int64_t weight_dim);

// ---- conv ----
Tensor convolution_input_backward(const Tensor& grad, IntArrayRef input_size, const Tensor& weight, IntArrayRef stride,
                                  IntArrayRef padding, IntArrayRef dilation, bool transposed, int64_t groups);
Tensor convolution_weight_gradient(const Tensor& grad, const Tensor& input, IntArrayRef weight_size, IntArrayRef stride,
                                   IntArrayRef padding, IntArrayRef dilation, bool transposed, int64_t groups);
Tensor sum_to_channels(const Tensor& grad);  // over all dimensions but the second

// ---- pool ----
Tensor pooled_at(const Tensor& t, const Tensor& indices, int64_t dims);  // elements of images at flat places
DimVector last_sizes(IntArrayRef sizes, int64_t dims);

// ---- norm ----
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
ThreeTensors batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                 const Tensor& invstd, bool training, double eps, std::array<bool, 3> mask);
ThreeTensors layer_norm_backward(const Tensor& grad, const Tensor& input, IntArrayRef normalized_shape,
                                 const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                 double eps, std::array<bool, 3> mask);
ThreeTensors group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& bias,
                                 const Tensor& mean, const Tensor& rstd, int64_t num_groups, double eps,
                                 std::array<bool, 3> mask);
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input, IntArrayRef normalized_shape,
                                             const Tensor& weight, const Tensor& rstd, std::optional<double> eps,
                                             std::array<bool, 2> mask);

}  // namespace rushlight
