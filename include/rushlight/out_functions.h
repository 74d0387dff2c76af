// out= forms of functions that have no kernel which writes into a given tensor: the result is
// computed and copied, into tensors that are given its sizes.
#pragma once

#include <tuple>

#include <rushlight/internal_backward.h>
#include <rushlight/internal_functions.h>

namespace rushlight {

// Tensors that want a gradient cannot be written so: RuntimeError.
RL_API Tensor& write_result(const Tensor& out, const Tensor& result);
RL_API void write_results(TensorList out, TensorList results);

// Several results. A template, which names no std::tuple of references before there is a call:
// those cost programs more memory to compile than all functions of this header.
template <class Results, class... Out>
auto write_each(const Results& results, const Out&... out) {
  return std::apply(
      [&](const auto&... found) {
        return std::tuple<decltype(write_result(out, found))...>{write_result(out, found)...};
      },
      results);
}

#define RL_WRITES(name)                                    \
  template <class... A>                                    \
  Tensor& name##_out(const Tensor& out, A&&... a) {        \
    return write_result(out, name(std::forward<A>(a)...)); \
  }
#define RL_WRITES_2(name)                                       \
  template <class... A>                                         \
  auto name##_out(const Tensor& x, const Tensor& y, A&&... a) { \
    return write_each(name(std::forward<A>(a)...), x, y);       \
  }
#define RL_WRITES_3(name)                                                        \
  template <class... A>                                                          \
  auto name##_out(const Tensor& x, const Tensor& y, const Tensor& z, A&&... a) { \
    return write_each(name(std::forward<A>(a)...), x, y, z);                     \
  }
#define RL_WRITES_4(name)                                                                         \
  template <class... A>                                                                           \
  auto name##_out(const Tensor& x, const Tensor& y, const Tensor& z, const Tensor& w, A&&... a) { \
    return write_each(name(std::forward<A>(a)...), x, y, z, w);                                   \
  }
#define RL_WRITES_LIST(name)                         \
  template <class... A>                              \
  void name##_out(TensorList out, A&&... a) {        \
    write_results(out, name(std::forward<A>(a)...)); \
  }

RL_WRITES(_adaptive_avg_pool2d_backward)
RL_WRITES(_adaptive_avg_pool2d)
RL_WRITES(_adaptive_avg_pool3d_backward)
RL_WRITES(_adaptive_avg_pool3d)
RL_WRITES(_add_relu)
RL_WRITES(_addmm_activation)
RL_WRITES_2(_aminmax)
RL_WRITES(_cholesky_solve_helper)
RL_WRITES(_coalesce)
RL_WRITES(_coalesced)
RL_WRITES(_compute_linear_combination)
RL_WRITES(_conj_copy)
RL_WRITES(_conj_physical)
RL_WRITES(_conv_depthwise2d)
RL_WRITES(_convert_indices_from_coo_to_csr)
RL_WRITES(_convert_indices_from_csr_to_coo)
RL_WRITES(_copy_from_and_resize)
RL_WRITES(_copy_from)
RL_WRITES(_efficientzerotensor)
RL_WRITES(_embedding_bag_dense_backward)
RL_WRITES(_embedding_bag_per_sample_weights_backward)
RL_WRITES(_euclidean_dist)
RL_WRITES(_fw_primal_copy)
RL_WRITES_LIST(_histogramdd_bin_edges)
RL_WRITES(_histogramdd_from_bin_cts)
RL_WRITES(_histogramdd_from_bin_tensors)
RL_WRITES(_index_put_impl)
RL_WRITES(_indices_copy)
RL_WRITES_3(_linalg_det)
RL_WRITES_4(_linalg_slogdet)
RL_WRITES_4(_linalg_solve_ex)
RL_WRITES(_log_softmax)
RL_WRITES(_logcumsumexp)
RL_WRITES(_masked_scale)
RL_WRITES(_masked_softmax_backward)
RL_WRITES(_neg_view_copy)
RL_WRITES(_new_zeros_with_same_feature_meta)
RL_WRITES(_nnpack_spatial_convolution)
RL_WRITES_2(_pack_padded_sequence)
RL_WRITES(_pdist_backward)
RL_WRITES(_reshape_alias_copy)
RL_WRITES(_resize_output)
RL_WRITES(_segment_reduce_backward)
RL_WRITES(_softmax)
RL_WRITES(_sparse_addmm)
RL_WRITES(_sparse_log_softmax)
RL_WRITES(_sparse_softmax)
RL_WRITES(_sparse_sparse_matmul)
RL_WRITES(_sparse_sum)
RL_WRITES(_stack)
RL_WRITES_3(_transform_bias_rescale_qkv)
RL_WRITES(_trilinear)
RL_WRITES_2(_unique)
RL_WRITES(_unsafe_view)
RL_WRITES(_upsample_bicubic2d_aa_backward)
RL_WRITES(_upsample_bilinear2d_aa_backward)
RL_WRITES(_upsample_nearest_exact1d_backward)
RL_WRITES(_upsample_nearest_exact2d_backward)
RL_WRITES(_upsample_nearest_exact3d_backward)
RL_WRITES(_values_copy)
RL_WRITES_2(_weight_norm_interface_backward)
RL_WRITES_2(_weight_norm_interface)
RL_WRITES(adaptive_max_pool2d_backward)
RL_WRITES(adaptive_max_pool3d_backward)
RL_WRITES(avg_pool2d_backward)
RL_WRITES(avg_pool3d_backward)
RL_WRITES(batch_norm_backward_elemt)
RL_WRITES_4(batch_norm_backward_reduce)
RL_WRITES(batch_norm_elemt)
RL_WRITES_2(batch_norm_gather_stats)
RL_WRITES_2(batch_norm_gather_stats_with_counts)
RL_WRITES_2(batch_norm_stats)
RL_WRITES_2(batch_norm_update_stats)
RL_WRITES(binary_cross_entropy_backward)
RL_WRITES(cauchy)
RL_WRITES(ccol_indices_copy)
RL_WRITES(col_indices_copy)
RL_WRITES(conv_depthwise3d)
RL_WRITES(copy_sparse_to_sparse)
RL_WRITES(crow_indices_copy)
RL_WRITES(elu_backward)
RL_WRITES(embedding_renorm)
RL_WRITES(exponential)
RL_WRITES_2(fake_quantize_per_channel_affine_cachemask)
RL_WRITES_2(fake_quantize_per_tensor_affine_cachemask)
RL_WRITES(fractional_max_pool2d_backward)
RL_WRITES(fractional_max_pool3d_backward)
RL_WRITES(geometric)
RL_WRITES(glu_backward_jvp)
RL_WRITES(glu_backward)
RL_WRITES(glu_jvp)
RL_WRITES(hspmm)
RL_WRITES(huber_loss_backward)
RL_WRITES(indices_copy)
RL_WRITES(leaky_relu_backward)
RL_WRITES(lift_fresh_copy)
RL_WRITES(lift)
RL_WRITES(log_normal)
RL_WRITES(log_sigmoid_backward)
RL_WRITES(logit_backward)
RL_WRITES(max_pool2d_backward)
RL_WRITES(max_pool2d_with_indices_backward)
RL_WRITES(max_pool3d_with_indices_backward)
RL_WRITES(mkldnn_convolution)
RL_WRITES(mse_loss_backward)
RL_WRITES(multi_margin_loss_backward)
RL_WRITES(multilabel_margin_loss_backward)
RL_WRITES(native_norm)
RL_WRITES(nll_loss2d_backward)
RL_WRITES(nll_loss_backward)
RL_WRITES(random)
RL_WRITES(reflection_pad1d_backward)
RL_WRITES(reflection_pad1d)
RL_WRITES(reflection_pad2d_backward)
RL_WRITES(reflection_pad2d)
RL_WRITES(reflection_pad3d_backward)
RL_WRITES(reflection_pad3d)
RL_WRITES(replication_pad1d_backward)
RL_WRITES(replication_pad1d)
RL_WRITES(replication_pad2d_backward)
RL_WRITES(replication_pad2d)
RL_WRITES(replication_pad3d_backward)
RL_WRITES(replication_pad3d)
RL_WRITES(resize_as)
RL_WRITES(resize_as_sparse)
RL_WRITES(resize)
RL_WRITES(row_indices_copy)
RL_WRITES(rrelu_with_noise_backward)
RL_WRITES(segment_reduce)
RL_WRITES(set)
RL_WRITES(slow_conv3d)
RL_WRITES(slow_conv_dilated2d)
RL_WRITES(slow_conv_dilated3d)
RL_WRITES(slow_conv_transpose2d)
RL_WRITES(slow_conv_transpose3d)
RL_WRITES(smooth_l1_loss_backward)
RL_WRITES(soft_margin_loss_backward)
RL_WRITES(softshrink_backward)
RL_WRITES(sparse_resize_and_clear)
RL_WRITES(sparse_resize)
RL_WRITES(sparse_sampled_addmm)
RL_WRITES_LIST(split_copy)
RL_WRITES_LIST(split_with_sizes_copy)
RL_WRITES(sspaddmm)
RL_WRITES_LIST(unbind_copy)
RL_WRITES(uniform)
RL_WRITES_3(unique_dim_consecutive)
RL_WRITES_LIST(unsafe_split)
RL_WRITES_LIST(unsafe_split_with_sizes)
RL_WRITES(upsample_bicubic2d_backward)
RL_WRITES(upsample_bilinear2d_backward)
RL_WRITES(upsample_linear1d_backward)
RL_WRITES(upsample_nearest1d_backward)
RL_WRITES(upsample_nearest2d_backward)
RL_WRITES(upsample_nearest3d_backward)
RL_WRITES(upsample_trilinear3d_backward)
RL_WRITES(values_copy)
RL_WRITES(zero)
RL_WRITES(copy)
RL_WRITES(thnn_conv2d)
RL_WRITES_2(grid_sampler_2d_backward)
RL_WRITES_2(grid_sampler_3d_backward)
RL_WRITES_2(log_sigmoid_forward)
RL_WRITES_2(matmul_backward)
RL_WRITES_3(linear_backward)
RL_WRITES_3(convolution_backward)
#undef RL_WRITES
#undef RL_WRITES_2
#undef RL_WRITES_3
#undef RL_WRITES_4
#undef RL_WRITES_LIST

#define RL_WRITES_METHOD(name)                                          \
  template <class... A>                                                 \
  Tensor& name##_out(const Tensor& out, const Tensor& self, A&&... a) { \
    return write_result(out, self.name(std::forward<A>(a)...));         \
  }
RL_WRITES_METHOD(_to_dense)
RL_WRITES_METHOD(_to_sparse)
RL_WRITES_METHOD(_to_sparse_csr)
RL_WRITES_METHOD(_to_sparse_csc)
RL_WRITES_METHOD(_to_sparse_bsr)
RL_WRITES_METHOD(_to_sparse_bsc)
RL_WRITES_METHOD(sparse_mask)
#undef RL_WRITES_METHOD
template <class... A>
Tensor& rrelu_with_noise_out(const Tensor& out, A&&... a) {
  return write_result(out, rrelu_with_noise(std::forward<A>(a)...));
}
RL_API Tensor& complex_out(const Tensor& out, const Tensor& real, const Tensor& imag);
// The tracker is written, too.
RL_API Tensor& _amp_update_scale_out(const Tensor& out, const Tensor& self, const Tensor& tracker,
                                     const Tensor& found_inf, double growth, double backoff,
                                     int64_t interval);
RL_API Tensor& sparse_coo_tensor_out(const Tensor& out, IntArrayRef size);
RL_API Tensor& _sparse_coo_tensor_with_dims_out(const Tensor& out, int64_t sparse_dim,
                                                int64_t dense_dim, IntArrayRef size);
RL_API Tensor& _sparse_coo_tensor_with_dims_and_tensors_out(const Tensor& out, int64_t sparse_dim,
                                                            int64_t dense_dim, IntArrayRef size,
                                                            const Tensor& indices,
                                                            const Tensor& values,
                                                            std::optional<bool> is_coalesced = {});
RL_API std::tuple<Tensor&, Tensor&, Tensor&> _slow_conv2d_backward_out(
    const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad, const Tensor& self,
    const Tensor& weight, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding);

}  // namespace rushlight
