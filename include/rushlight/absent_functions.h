// Functions of libtorch whose kernels are not here, by name, so that bindings which have a function
// for each of libtorch's compile and link: a call raises a NotImplementedError that says why.
#pragma once

#include <tuple>
#include <vector>

#include <rushlight/functions.h>

namespace rushlight {

namespace absent {
enum class Why {
  cudnn,
  miopen,
  mps,
  mkldnn,
  xla,
  nested,
  quantized,
  special,
  levels,
  sobol,
  names,
  tests,
  unwritten,
};
[[noreturn]] RL_API void refuse(const char* name, Why why);

template <class T, int n, class... Found>
struct Several : Several<T, n - 1, T, Found...> {};
template <class T, class... Found>
struct Several<T, 0, Found...> {
  using type = std::tuple<Found...>;
};
template <class T>
struct Several<T, 1> {
  using type = T;
};
template <class T>
struct Several<T, 0> {
  using type = void;
};
template <class T, int n>
using Results = typename Several<T, n>::type;

// Objects that are called as the functions would be: a template for each costs programs more memory
// to compile.
template <class Result>
struct Function {
  const char* name;
  Why why;
  template <class... A>
  Result operator()(A&&...) const {
    refuse(name, why);
  }
};
// An out= form that writes one tensor, or those of a list.
struct Writer {
  const char* name;
  Why why;
  template <class... A>
  Tensor& operator()(const Tensor&, A&&...) const {
    refuse(name, why);
  }
  template <class... A>
  void operator()(TensorList, A&&...) const {
    refuse(name, why);
  }
};
}  // namespace absent

// The function and its out= form, of that many results; and what gives something else.
#define RL_ABSENT_OTHER(why, type, name) \
  inline constexpr absent::Function<type> name{#name, absent::Why::why};
#define RL_ABSENT(why, results, name)                                                        \
  inline constexpr absent::Function<absent::Results<Tensor, results>> name{#name,            \
                                                                          absent::Why::why}; \
  inline constexpr absent::Function<absent::Results<Tensor&, results>> name##_out{           \
      #name "_out", absent::Why::why};
#define RL_ABSENT_OUT(why, name) \
  inline constexpr absent::Writer name##_out{#name "_out", absent::Why::why};

// ---- cuDNN's kernels have no names here; conv2d, lstm and others take them on a GPU ----
RL_ABSENT(cudnn, 3, _cudnn_attention_backward)
RL_ABSENT(cudnn, 2, _cudnn_ctc_loss)
RL_ABSENT(cudnn, 1, _cudnn_init_dropout_state)
RL_ABSENT(cudnn, 5, _cudnn_rnn)
RL_ABSENT(cudnn, 1, _cudnn_rnn_flatten_weight)
RL_ABSENT(cudnn, 3, _scaled_dot_product_cudnn_attention_backward)
RL_ABSENT(cudnn, 1, cudnn_affine_grid_generator)
RL_ABSENT(cudnn, 1, cudnn_affine_grid_generator_backward)
RL_ABSENT(cudnn, 4, cudnn_batch_norm)
RL_ABSENT(cudnn, 3, cudnn_batch_norm_backward)
RL_ABSENT(cudnn, 1, cudnn_convolution)
RL_ABSENT(cudnn, 1, cudnn_convolution_add_relu)
RL_ABSENT(cudnn, 1, cudnn_convolution_relu)
RL_ABSENT(cudnn, 1, cudnn_convolution_transpose)
RL_ABSENT(cudnn, 1, cudnn_grid_sampler)
RL_ABSENT(cudnn, 2, cudnn_grid_sampler_backward)

// ---- there is no MIOpen here, nor are there AMD's devices ----
RL_ABSENT(miopen, 3, miopen_batch_norm)
RL_ABSENT(miopen, 3, miopen_batch_norm_backward)
RL_ABSENT(miopen, 1, miopen_convolution)
RL_ABSENT(miopen, 1, miopen_convolution_add_relu)
RL_ABSENT(miopen, 1, miopen_convolution_relu)
RL_ABSENT(miopen, 1, miopen_convolution_transpose)
RL_ABSENT(miopen, 2, miopen_ctc_loss)
RL_ABSENT(miopen, 1, miopen_depthwise_convolution)
RL_ABSENT(miopen, 5, miopen_rnn)

// ---- there are no devices of Apple's here ----
RL_ABSENT(mps, 6, _lstm_mps)
RL_ABSENT(mps, 1, _mps_convolution)
RL_ABSENT(mps, 1, _mps_convolution_transpose)
RL_ABSENT(mps, 2, _scaled_dot_product_attention_math_for_mps)
RL_ABSENT(mps, 3, lstm_mps_backward)

// ---- tensors in the layout of oneDNN do not exist here; conv2d and linear use oneDNN for strided ones ----
RL_ABSENT(mkldnn, 1, _mkldnn_reshape)
RL_ABSENT(mkldnn, 1, _mkldnn_transpose)
RL_ABSENT(mkldnn, 1, _mkldnn_transpose_)
RL_ABSENT(mkldnn, 1, mkldnn_adaptive_avg_pool2d)
RL_ABSENT(mkldnn, 1, mkldnn_adaptive_avg_pool2d_backward)
RL_ABSENT(mkldnn, 1, mkldnn_linear)
RL_ABSENT(mkldnn, 1, mkldnn_linear_backward_input)
RL_ABSENT(mkldnn, 2, mkldnn_linear_backward_weights)
RL_ABSENT(mkldnn, 1, mkldnn_max_pool2d)
RL_ABSENT(mkldnn, 1, mkldnn_max_pool2d_backward)
RL_ABSENT(mkldnn, 1, mkldnn_max_pool3d)
RL_ABSENT(mkldnn, 1, mkldnn_max_pool3d_backward)
RL_ABSENT(mkldnn, 1, mkldnn_reorder_conv2d_weight)
RL_ABSENT(mkldnn, 1, mkldnn_reorder_conv3d_weight)
RL_ABSENT(mkldnn, 4, mkldnn_rnn_layer)
RL_ABSENT(mkldnn, 7, mkldnn_rnn_layer_backward)
RL_ABSENT(mkldnn, 1, to_mkldnn_backward)

// ---- there are no XLA devices here ----
RL_ABSENT(xla, 0, _propagate_xla_data)

// ---- C++ has no nested tensors; those of Python are in torch.nested ----
RL_ABSENT(nested, 2, _nested_compute_contiguous_strides_offsets)
RL_ABSENT(nested, 1, _nested_from_padded)
RL_ABSENT(nested, 1, _nested_from_padded_and_nested_example)
RL_ABSENT(nested, 1, _nested_from_padded_tensor)
RL_ABSENT(nested, 1, _nested_get_jagged_dummy)
RL_ABSENT(nested, 1, _nested_get_lengths)
RL_ABSENT(nested, 1, _nested_get_max_seqlen)
RL_ABSENT(nested, 1, _nested_get_min_seqlen)
RL_ABSENT(nested, 1, _nested_get_offsets)
RL_ABSENT_OTHER(nested, int64_t, _nested_get_ragged_idx)
RL_ABSENT(nested, 1, _nested_get_values)
RL_ABSENT(nested, 1, _nested_get_values_copy)
RL_ABSENT(nested, 1, _nested_select_backward)
RL_ABSENT(nested, 1, _nested_sum_backward)
RL_ABSENT(nested, 1, _nested_view_from_buffer)
RL_ABSENT(nested, 1, _nested_view_from_buffer_copy)
RL_ABSENT(nested, 1, _nested_view_from_jagged)
RL_ABSENT(nested, 1, _nested_view_from_jagged_copy)
RL_ABSENT(nested, 1, nested_to_padded_tensor)

// ---- C++ has no quantised tensors; those of Python are in torch.ao.quantization ----
RL_ABSENT(quantized, 1, _dyn_quant_matmul_4bit)
RL_ABSENT(quantized, 1, _dyn_quant_pack_4bit_weight)
RL_ABSENT(quantized, 1, _empty_affine_quantized)
RL_ABSENT(quantized, 1, _empty_per_channel_affine_quantized)
RL_ABSENT(quantized, 1, _fake_quantize_learnable_per_channel_affine)
RL_ABSENT(quantized, 3, _fake_quantize_learnable_per_channel_affine_backward)
RL_ABSENT(quantized, 1, _fake_quantize_learnable_per_tensor_affine)
RL_ABSENT(quantized, 3, _fake_quantize_learnable_per_tensor_affine_backward)
RL_ABSENT(quantized, 2, _fake_quantize_per_tensor_affine_cachemask_tensor_qparams)
RL_ABSENT(quantized, 2, _fused_moving_avg_obs_fq_helper)
RL_ABSENT(quantized, 6, _fused_moving_avg_obs_fq_helper_functional)
RL_ABSENT(quantized, 1, _make_per_channel_quantized_tensor)
RL_ABSENT(quantized, 1, _make_per_tensor_quantized_tensor)
RL_ABSENT(quantized, 1, _wrapped_linear_prepack)
RL_ABSENT(quantized, 1, _wrapped_quantized_linear_prepacked)
RL_ABSENT(quantized, 2, choose_qparams_optimized)
RL_ABSENT(quantized, 1, empty_quantized)
RL_ABSENT(quantized, 1, fused_moving_avg_obs_fake_quant)
RL_ABSENT(quantized, 1, int_repr)
RL_ABSENT_OTHER(quantized, int64_t, q_per_channel_axis)
RL_ABSENT(quantized, 1, q_per_channel_scales)
RL_ABSENT(quantized, 1, q_per_channel_zero_points)
RL_ABSENT_OTHER(quantized, double, q_scale)
RL_ABSENT_OTHER(quantized, int64_t, q_zero_point)
RL_ABSENT(quantized, 1, quantize_per_tensor_dynamic)
RL_ABSENT(quantized, 1, quantized_batch_norm)
RL_ABSENT(quantized, 1, quantized_gru_cell)
RL_ABSENT(quantized, 2, quantized_lstm_cell)
RL_ABSENT(quantized, 1, quantized_max_pool1d)
RL_ABSENT(quantized, 1, quantized_max_pool2d)
RL_ABSENT(quantized, 1, quantized_max_pool3d)
RL_ABSENT(quantized, 1, quantized_rnn_relu_cell)
RL_ABSENT(quantized, 1, quantized_rnn_tanh_cell)

// ---- a kernel of certain GPUs or packed weights that is not here ----
RL_ABSENT(special, 1, _convert_weight_to_int4pack)
RL_ABSENT(special, 1, _convert_weight_to_int4pack_for_cpu)
RL_ABSENT(special, 1, _cslt_compress)
RL_ABSENT(special, 1, _cslt_sparse_mm)
RL_ABSENT_OTHER(special, int64_t, _cslt_sparse_mm_search)
RL_ABSENT(special, 4, _efficient_attention_backward)
RL_ABSENT(special, 1, _fill_mem_eff_dropout_mask_)
RL_ABSENT(special, 3, _flash_attention_backward)
RL_ABSENT(special, 2, _fused_dropout)
RL_ABSENT(special, 1, _grouped_mm)
RL_ABSENT(special, 1, _mixed_dtypes_linear)
RL_ABSENT(special, 4, _scaled_dot_product_efficient_attention)
RL_ABSENT(special, 3, _scaled_dot_product_flash_attention_backward)
RL_ABSENT(special, 1, _scaled_grouped_mm)
RL_ABSENT(special, 1, _scaled_grouped_mm_v2)
RL_ABSENT(special, 1, _scaled_mm)
RL_ABSENT(special, 1, _scaled_mm_v2)
RL_ABSENT(special, 2, _sparse_mm_reduce_impl)
RL_ABSENT(special, 2, _sparse_semi_structured_apply)
RL_ABSENT(special, 1, _sparse_semi_structured_apply_dense)
RL_ABSENT(special, 1, _sparse_semi_structured_linear)
RL_ABSENT(special, 1, _sparse_semi_structured_mm)
RL_ABSENT(special, 5, _sparse_semi_structured_tile)
RL_ABSENT(special, 1, _spsolve)
RL_ABSENT(special, 2, _to_sparse_semi_structured)
RL_ABSENT(special, 1, _triton_multi_head_attention)
RL_ABSENT(special, 1, _triton_scaled_dot_attention)
RL_ABSENT(special, 1, _weight_int4pack_mm)
RL_ABSENT(special, 1, _weight_int4pack_mm_for_cpu)
RL_ABSENT(special, 1, _weight_int4pack_mm_with_scales_and_zeros)

// ---- levels of vmap and forward mode are entered by Python's torch.func ----
RL_ABSENT(levels, 1, _add_batch_dim)
RL_ABSENT(levels, 1, _make_dual)
RL_ABSENT(levels, 1, _make_dual_copy)
RL_ABSENT(levels, 1, _remove_batch_dim)
RL_ABSENT(levels, 2, _unpack_dual)

// ---- Sobol sequences are Python's torch.quasirandom ----
RL_ABSENT(sobol, 2, _sobol_engine_draw)
RL_ABSENT(sobol, 1, _sobol_engine_ff_)
RL_ABSENT(sobol, 1, _sobol_engine_initialize_state_)
RL_ABSENT(sobol, 1, _sobol_engine_scramble_)

// ---- tensors have no named dimensions here ----
RL_ABSENT_OTHER(names, std::vector<Tensor>, align_tensors)

// ---- it serves PyTorch's own tests ----
RL_ABSENT(tests, 1, _foobar)
RL_ABSENT(tests, 1, _test_ambiguous_defaults)
RL_ABSENT(tests, 1, _test_autograd_multiple_dispatch)
RL_ABSENT(tests, 1, _test_autograd_multiple_dispatch_view)
RL_ABSENT(tests, 1, _test_autograd_multiple_dispatch_view_copy)
RL_ABSENT(tests, 1, _test_check_tensor)
RL_ABSENT(tests, 1, _test_functorch_fallback)
RL_ABSENT(tests, 1, _test_optional_filled_intlist)
RL_ABSENT(tests, 1, _test_optional_floatlist)
RL_ABSENT(tests, 1, _test_optional_intlist)
RL_ABSENT(tests, 1, _test_parallel_materialize)
RL_ABSENT(tests, 1, _test_serialization_subcmul)
RL_ABSENT(tests, 1, _test_string_default)
RL_ABSENT(tests, 1, _test_warn_in_autograd)

// ---- nobody has written it yet ----
RL_ABSENT(unwritten, 2, _native_multi_head_attention)
RL_ABSENT(unwritten, 1, _pin_memory)
RL_ABSENT(unwritten, 3, _scaled_dot_product_flash_attention_for_cpu_backward)
RL_ABSENT(unwritten, 1, _sparse_broadcast_to)
RL_ABSENT(unwritten, 1, _sparse_broadcast_to_copy)
RL_ABSENT(unwritten, 1, _sparse_compressed_tensor_with_dims)
RL_ABSENT(unwritten, 1, _sparse_csr_prod)
RL_ABSENT(unwritten, 1, _sparse_csr_sum)
RL_ABSENT(unwritten, 1, _sparse_log_softmax_backward_data)
RL_ABSENT(unwritten, 1, _sparse_softmax_backward_data)
RL_ABSENT(unwritten, 1, _sparse_sum_backward)
RL_ABSENT(unwritten, 1, _spdiags)
RL_ABSENT(unwritten, 1, _transformer_encoder_layer_fwd)
RL_ABSENT(unwritten, 0, _validate_compressed_sparse_indices)
RL_ABSENT(unwritten, 1, convolution_overrideable)
RL_ABSENT(unwritten, 1, hash_tensor)
RL_ABSENT(unwritten, 1, slice_inverse)

// Methods, and out= forms of functions that are in other_tensors.h.
inline Tensor Tensor::to_mkldnn(std::optional<ScalarType>) const {
  absent::refuse("to_mkldnn", absent::Why::mkldnn);
}
inline Tensor Tensor::to_padded_tensor(double, OptionalIntArrayRef) const {
  absent::refuse("to_padded_tensor", absent::Why::nested);
}
inline Tensor Tensor::_sparse_mask_projection(const Tensor&, bool) const {
  absent::refuse("_sparse_mask_projection", absent::Why::unwritten);
}
RL_ABSENT_OUT(mkldnn, to_mkldnn)
RL_ABSENT_OUT(nested, to_padded_tensor)
RL_ABSENT_OUT(quantized, quantize_per_tensor)
RL_ABSENT_OUT(quantized, quantize_per_channel)
RL_ABSENT_OUT(unwritten, _sparse_mask_projection)
RL_ABSENT_OUT(unwritten, from_file)
#undef RL_ABSENT_OUT

#undef RL_ABSENT
#undef RL_ABSENT_OTHER

}  // namespace rushlight
