// Parts of `jvp=` rules that are longer than the line they have in the op table, declared for the
// generated forward functions. All are written over public ops, so they have derivatives.
#pragma once

#include <rushlight/ops.h>

namespace rushlight {

// ---- complex ----
Tensor imag_of(const Tensor& t);  // 0 for real numbers
Tensor i_times_imag_of(const Tensor& t);

// ---- picking ----
// The elements of `t` that a reduction took; of images those at flat places are `gather_pooled`.
Tensor gather_along(const Tensor& t, int64_t dim, const Tensor& indices, bool keepdim);
// The same view of a tangent, whose memory may begin elsewhere.
Tensor as_strided_tangent(const Tensor& t, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset);

// ---- lapack ----
Tensor matrix_product(const Tensor& a, const Tensor& b, bool left);  // or b a
// What the solution changes by, but for its sign, where the triangle does.
Tensor triangle_tangent(const Tensor& triangle, const Tensor& triangle_t, const Tensor& solution,
                        bool upper, bool left, bool unitriangular);
Tensor cholesky_tangent(const Tensor& self_t, const Tensor& L, bool upper);
Tensor pinv_tangent(const Tensor& self_t, const Tensor& self, const Tensor& inverse);
// How eigenvectors turn into each other, none into itself.
Tensor eigh_turn(const Tensor& A_t, const Tensor& eigenvalues, const Tensor& eigenvectors);

// ---- losses and normalisations ----
Tensor multiply_weight(const Tensor& t, const Tensor& weight);  // by a weight that may be undefined
Tensor as_channels(const Tensor& t, const Tensor& images);      // a number for each channel
Tensor multiply_channels(const Tensor& t, const Tensor& weight);
// A sum over classes, or over everything, as the loss is one.
Tensor sum_like_loss(const Tensor& loss, const Tensor& t);
Tensor batch_norm_tangent(const Tensor& input_t, const Tensor& input, const Tensor& weight,
                          const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                          const Tensor& invstd, bool training, double eps);
// What is brought to mean 0 and variance 1. Statistics are results without a derivative, so they
// are computed anew where the input has one.
Tensor batch_norm_scaled(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& mean, const Tensor& invstd, bool training, double eps);
Tensor layer_norm_scaled(const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean,
                         const Tensor& rstd, double eps);
Tensor group_norm_scaled(const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         int64_t num_groups, double eps);
Tensor rms_norm_scaled(const Tensor& input, IntArrayRef normalized_shape, const Tensor& rstd,
                       std::optional<double> eps);

// ---- resample ----
// What `grid_sampler` changes by when its places move.
Tensor grid_sampler_tangent(const Tensor& grid_t, const Tensor& input, const Tensor& grid,
                            int64_t mode, int64_t padding, bool align_corners);

// ---- vision ----
// What columns change by when taps move.
Tensor deform_columns_tangent(const Tensor& offset_t, const Tensor& input, const Tensor& offset,
                              const Tensor& factor, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation);

}  // namespace rushlight
