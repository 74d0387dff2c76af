// What the expressions of `batch=` call beside ops (docs/adding-an-op.md). Tensors have a batch
// dimension in front, of size 1 where they lack one of their own, and dimensions are counted behind
// it.
#pragma once

#include <rushlight/ops.h>

namespace rushlight {

// ---- moves of the batch ----
Tensor first_of(const Tensor& t);                     // the first slice
Tensor expand_batch(const Tensor& t, int64_t batch);  // a batch of size 1 is repeated
// The batch joins a dimension of the slice, and leaves one that it had joined.
Tensor merge_batch(const Tensor& t, int64_t dim, int64_t batch);
Tensor split_batch(const Tensor& t, int64_t dim, int64_t batch);
template <class... T>
std::tuple<T...> split_batch(const std::tuple<T...>& results, int64_t dim, int64_t batch) {
  return std::apply([&](const T&... r) { return std::tuple<T...>(split_batch(r, dim, batch)...); },
                    results);
}
DimVector multiply_size(IntArrayRef sizes, int64_t dim, int64_t batch);  // one size is larger
Tensor flatten_slices(const Tensor& t, int64_t batch);                   // slices become vectors
Tensor with_dims(const Tensor& t, int64_t rank);  // ones in front of a slice's dimensions

// ---- indices ----
Tensor wrap_index(const Tensor& index, int64_t size);  // negative ones count from the end
// Indices of slices (batch, n) as indices of elements, in the shape of `like` with n along `dim`.
Tensor expand_index(const Tensor& index, int64_t dim, const Tensor& like, int64_t batch);
// Indices of rows of a table that follows those of the slices before.
Tensor offset_indices(const Tensor& indices, int64_t batch, int64_t rows);
// Tensors of a list, each with the batch; vectors without elements are no part of it, as `cat` has
// it.
std::vector<Tensor> expand_tensors(TensorList tensors, int64_t batch);
Tensor batched_index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                     int64_t batch);
Tensor batched_index_put(const Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                         const Tensor& values, bool accumulate, int64_t batch);
Tensor batched_put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
                   int64_t batch);
Tensor batched_searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                            bool right, std::optional<std::string_view> side, const Tensor& sorter,
                            int64_t batch);
Tensor batched_embedding_backward(const Tensor& grad_output, const Tensor& indices,
                                  int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                                  int64_t batch);

// ---- products ----
Tensor batched_mm(const Tensor& self, const Tensor& mat2, int64_t batch);
Tensor batched_bmm(const Tensor& self, const Tensor& mat2, int64_t batch);
Tensor batched_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha, int64_t batch);
Tensor batched_mv(const Tensor& self, const Tensor& vec);
Tensor batched_dot(const Tensor& self, const Tensor& tensor);
Tensor batched_int_mm(const Tensor& self, const Tensor& mat2, int64_t batch);
Tensor batched_baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                       const Scalar& beta, const Scalar& alpha, int64_t batch);
Tensor batched_linear(const Tensor& input, const Tensor& weight, const Tensor& bias);

// ---- recurrent layers ----
// Sequences of all slices, which share the weights, side by side.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> batched_recurrent_layer(
    const Tensor& gates, const Tensor& hidden, const Tensor& cell, const Tensor& weight_hh,
    const Tensor& bias_hh, const Tensor& weight_hr, IntArrayRef batch_sizes, std::string_view mode,
    bool reverse, bool batch_first, bool keep, int64_t batch);

// ---- factories ----
// `linspace` for each slice, from both ends to the middle; an end may be a number.
Tensor batched_space(const Tensor& start, const Tensor& end, int64_t steps,
                     const TensorOptions& options);
Tensor batched_space(const Tensor& start, const Scalar& end, int64_t steps,
                     const TensorOptions& options);
Tensor batched_space(const Scalar& start, const Tensor& end, int64_t steps,
                     const TensorOptions& options);

// ---- memory ----
Tensor batched_new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                 const TensorOptions& options, int64_t batch);

// ---- norms: what is normalised is that of all slices, weights are those of each ----
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
Three batched_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         double momentum, double eps, int64_t batch);
Three batched_batch_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  const Tensor& weight, const Tensor& running_mean,
                                  const Tensor& running_var, const Tensor& save_mean,
                                  const Tensor& save_invstd, bool training, double eps,
                                  int64_t batch);
Three batched_layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                         const Tensor& bias, double eps, int64_t batch);
Three batched_layer_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  IntArrayRef normalized_shape, const Tensor& mean,
                                  const Tensor& rstd, const Tensor& weight, int64_t batch);
Three batched_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         int64_t num_groups, double eps, int64_t batch);
Three batched_group_norm_backward(const Tensor& grad_output, const Tensor& input,
                                  const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                  int64_t num_groups, int64_t batch);
Two batched_rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                     std::optional<double> eps, int64_t batch);
Two batched_rms_norm_backward(const Tensor& grad_output, const Tensor& input,
                              IntArrayRef normalized_shape, const Tensor& rstd,
                              const Tensor& weight, int64_t batch);

// ---- losses of classes: those of single samples, reduced slice by slice ----
Two batched_nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                     int64_t reduction, int64_t ignore_index, int64_t batch);
Tensor batched_nll_loss_backward(const Tensor& grad_output, const Tensor& target,
                                 const Tensor& weight, const Tensor& total_weight,
                                 IntArrayRef sizes, int64_t reduction, int64_t ignore_index,
                                 int64_t batch);
Three batched_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction, int64_t ignore_index, double label_smoothing,
                            int64_t batch);
Tensor batched_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                      const Tensor& target, const Tensor& weight,
                                      const Tensor& log_sum, const Tensor& total_weight,
                                      int64_t reduction, int64_t ignore_index,
                                      double label_smoothing, int64_t batch);

}  // namespace rushlight
