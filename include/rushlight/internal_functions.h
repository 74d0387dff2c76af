// libtorch's inner functions, which bindings of other languages and older programs call by name,
// each written over ops. What kernels of other libraries would compute is in absent_functions.h.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <vector>

#include <rushlight/functions.h>

namespace rushlight {

#pragma GCC visibility push(default)
// ---- casts ----
#define RL_CAST(Name)                                                       \
  inline Tensor _cast_##Name(const Tensor& self, bool non_blocking = false) { \
    return self.to(k##Name, non_blocking);                                  \
  }
RL_CAST(Byte)
RL_CAST(Char)
RL_CAST(Short)
RL_CAST(Int)
RL_CAST(Long)
RL_CAST(Half)
RL_CAST(Float)
RL_CAST(Double)
#undef RL_CAST
Tensor _to_copy(const Tensor& self, const TensorOptions& options, bool non_blocking = false,
                std::optional<MemoryFormat> memory_format = {});
Tensor& _to_copy_out(const Tensor& out, const Tensor& self, bool non_blocking = false,
                     std::optional<MemoryFormat> memory_format = {});
std::vector<Tensor> _to_cpu(TensorList tensors);
Tensor _saturate_weight_to_fp16(const Tensor& weight);  // clamps to the range of Half, in place

// ---- functional forms of what writes ----
Tensor resize(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> format = {});
Tensor _resize_output(const Tensor& self, IntArrayRef size, Device device);
Tensor& _resize_output_(const Tensor& self, IntArrayRef size, Device device);
Tensor resize_as(const Tensor& self, const Tensor& the_template,
                 std::optional<MemoryFormat> format = {});
Tensor set(const Tensor& self);
Tensor set(const Tensor& self, const Tensor& source);
Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                        double norm_type);
Tensor sparse_resize(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
Tensor sparse_resize_and_clear(const Tensor& self, IntArrayRef size, int64_t sparse_dim,
                               int64_t dense_dim);
Tensor resize_as_sparse(const Tensor& self, const Tensor& the_template);
Tensor copy_sparse_to_sparse(const Tensor& self, const Tensor& src, bool non_blocking = false);
Tensor& copy_sparse_to_sparse_(const Tensor& self, const Tensor& src, bool non_blocking = false);
std::tuple<Tensor, Tensor> _amp_update_scale(const Tensor& self, const Tensor& growth_tracker,
                                             const Tensor& found_inf, double scale_growth_factor,
                                             double scale_backoff_factor, int64_t growth_interval);
std::tuple<Tensor&, Tensor&, Tensor&> _native_batch_norm_legit_out(
    const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
    const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps);
// The results, and the running statistics after the call.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _native_batch_norm_legit_functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps);
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update_functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps);

// ---- views, and their copies ----
Tensor _conj(const Tensor& self);
Tensor _neg_view(const Tensor& self);  // a tensor of its own: there is no bit that says "negative"
Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride);
Tensor _unsafe_view(const Tensor& self, IntArrayRef size);
Tensor _reshape_copy(const Tensor& self, IntArrayRef size);
Tensor _reshape_from_tensor(const Tensor& self, const Tensor& shape);
Tensor lift(const Tensor& self);
#define RL_COPIES(name, of) \
  inline Tensor name##_copy(const Tensor& self) { return (of).clone(); }
RL_COPIES(_indices, self._indices())
RL_COPIES(_values, self._values())
RL_COPIES(indices, self.indices())
RL_COPIES(values, self.values())
RL_COPIES(crow_indices, self.crow_indices())
RL_COPIES(col_indices, self.col_indices())
RL_COPIES(ccol_indices, self.ccol_indices())
RL_COPIES(row_indices, self.row_indices())
RL_COPIES(_conj, self.conj())
RL_COPIES(_neg_view, -self)
RL_COPIES(lift_fresh, self)
#undef RL_COPIES
Tensor _reshape_alias_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride);
Tensor _lazy_clone(const Tensor& self);
Tensor _fw_primal_copy(const Tensor& self, int64_t level);
Tensor _copy_from(const Tensor& self, const Tensor& dst, bool non_blocking = false);
Tensor _copy_from_and_resize(const Tensor& self, const Tensor& dst);

// ---- factories ----
Tensor _dim_arange(const Tensor& like, int64_t dim);
Tensor _efficientzerotensor(IntArrayRef size, const TensorOptions& options = {});
Tensor _new_zeros_with_same_feature_meta(const Tensor& self, const Tensor& other,
                                         int64_t self_num_batch_dims = 0);
Tensor _make_dep_token(const TensorOptions& options = {},
                       std::optional<MemoryFormat> memory_format = {});

// ---- elements ----
Tensor _add_relu(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor _add_relu(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& _add_relu_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& _add_relu_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor _conj_physical(const Tensor& self);
Tensor _masked_scale(const Tensor& self, const Tensor& mask, double scale);
Tensor _prelu_kernel(const Tensor& self, const Tensor& weight);
// `noise` gets the slope of each element, 1 for those above zero.
Tensor rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower = 0.125,
                        const Scalar& upper = 1.0 / 3, bool training = false,
                        const Generator& generator = {});
Tensor& rrelu_with_noise_(const Tensor& self, const Tensor& noise, const Scalar& lower = 0.125,
                          const Scalar& upper = 1.0 / 3, bool training = false,
                          const Generator& generator = {});
std::tuple<Tensor, Tensor> rrelu_with_noise_functional(const Tensor& self, const Tensor& noise,
                                                       const Scalar& lower = 0.125,
                                                       const Scalar& upper = 1.0 / 3,
                                                       bool training = false,
                                                       const Generator& generator = {});
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = {});
Tensor _logcumsumexp(const Tensor& self, int64_t dim);
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim);

// ---- reductions and comparisons ----
Tensor _is_all_true(const Tensor& self);
Tensor _is_any_true(const Tensor& self);
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self);
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self, int64_t dim, bool keepdim = false);
Tensor native_norm(const Tensor& self, const Scalar& p = 2);
Tensor native_norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype);
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype);
Tensor& norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                 ScalarType dtype);
std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true,
                                   bool return_inverse = false);
std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, IntArrayRef bins,
                                           std::optional<ArrayRef<double>> range = {},
                                           const Tensor& weight = {}, bool density = false);
Tensor _histogramdd_from_bin_cts(const Tensor& self, IntArrayRef bins,
                                 std::optional<ArrayRef<double>> range = {},
                                 const Tensor& weight = {}, bool density = false);
Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorList bins,
                                     const Tensor& weight = {}, bool density = false);

// ---- products ----
Tensor _addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                         const Scalar& beta = 1, const Scalar& alpha = 1, bool use_gelu = false);
// Sums of the items along the first dimension, with the weights that each row of coefficients has.
Tensor _compute_linear_combination(const Tensor& input, const Tensor& coefficients);
Tensor _euclidean_dist(const Tensor& x1, const Tensor& x2);
// The product of three tensors, which have a dimension of one at those of expand, without sumdim.
Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntArrayRef expand1,
                  IntArrayRef expand2, IntArrayRef expand3, IntArrayRef sumdim,
                  int64_t unroll_dim = 1);
Tensor _weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales);
std::tuple<Tensor, Tensor> _weight_norm_interface(const Tensor& v, const Tensor& g,
                                                  int64_t dim = 0);
Tensor _cholesky_solve_helper(const Tensor& self, const Tensor& A, bool upper);
std::tuple<Tensor, Tensor, Tensor> _linalg_det(const Tensor& A);  // and its LU and pivots
std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_slogdet(const Tensor& A);
std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_solve_ex(const Tensor& A, const Tensor& B,
                                                            bool left = true,
                                                            bool check_errors = false);
Tensor _linalg_eigvals(const Tensor& self);
// LinAlgError where an info is not zero.
void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix);

// ---- layers ----
Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size);
Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size);
#define RL_DEPTHWISE(name)                                                                \
  Tensor name(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,          \
              const Tensor& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation);
RL_DEPTHWISE(_conv_depthwise2d)
RL_DEPTHWISE(conv_depthwise3d)
#undef RL_DEPTHWISE
// "same" and "valid".
Tensor _convolution_mode(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                         int64_t groups);
Tensor mkldnn_convolution(const Tensor& self, const Tensor& weight, const Tensor& bias,
                          IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation,
                          int64_t groups);
Tensor _nnpack_spatial_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                   IntArrayRef padding, IntArrayRef stride = 1);
// The lengths as tensors.
std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets,
                                     const Tensor& input_lengths, const Tensor& target_lengths,
                                     int64_t blank = 0, bool zero_infinity = false);
std::tuple<Tensor&, Tensor&> _ctc_loss_out(const Tensor& out_loss, const Tensor& out_alpha,
                                           const Tensor& log_probs, const Tensor& targets,
                                           const Tensor& input_lengths,
                                           const Tensor& target_lengths, int64_t blank = 0,
                                           bool zero_infinity = false);
Tensor _ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                          int64_t blank, bool zero_infinity = false);
Tensor _pad_circular(const Tensor& self, IntArrayRef pad);
// Modes by number: constant, reflect, replicate, circular.
Tensor _pad_enum(const Tensor& self, IntArrayRef pad, int64_t mode,
                 std::optional<double> value = {});
// The steps of all sequences that are that long, step by step, and how many those are.
std::tuple<Tensor, Tensor> _pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                                 bool batch_first);
Tensor _pack_padded_sequence_backward(const Tensor& grad, IntArrayRef input_size,
                                      const Tensor& batch_sizes, bool batch_first);
std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask = {},
    double dropout_p = 0, bool is_causal = false, const Tensor& dropout_mask = {},
    std::optional<double> scale = {}, bool enable_gqa = false);
// The result, and the logarithm of each query's sum.
std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p = 0,
    bool is_causal = false, const Tensor& attn_mask = {}, std::optional<double> scale = {});
std::tuple<Tensor, Tensor, Tensor> _transform_bias_rescale_qkv(const Tensor& qkv,
                                                               const Tensor& qkv_bias,
                                                               int64_t num_heads);
// Numbers that were rounded as quantised ones are; where they were not cut, the gradient passes.
Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point,
                                       int64_t quant_min, int64_t quant_max);
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale,
                                       const Tensor& zero_point, int64_t quant_min,
                                       int64_t quant_max);
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale,
                                        const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max);
std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self,
                                                                     double scale,
                                                                     int64_t zero_point,
                                                                     int64_t quant_min,
                                                                     int64_t quant_max);
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(
    const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
    int64_t quant_min, int64_t quant_max);
Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);
Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);

// ---- indices ----
Tensor _stack(TensorList tensors, int64_t dim = 0);
using OptionalTensors = std::vector<std::optional<Tensor>>;
Tensor _unsafe_index(const Tensor& self, const OptionalTensors& indices);
Tensor _unsafe_index_put(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                         bool accumulate = false);
Tensor _index_put_impl(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                       bool accumulate = false, bool unsafe = false);
Tensor& _index_put_impl_(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                         bool accumulate = false, bool unsafe = false);
// Where the mask is false any index will do: the result is `fill`, and nothing is put.
Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, const OptionalTensors& indices,
                            const Scalar& fill);
Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           const OptionalTensors& indices, const Tensor& values);
std::tuple<Tensor, Tensor> _rowwise_prune(const Tensor& weight, const Tensor& mask,
                                          ScalarType compressed_indices_dtype);
Tensor _convert_indices_from_coo_to_csr(const Tensor& self, int64_t size, bool out_int32 = false);
Tensor _convert_indices_from_csr_to_coo(const Tensor& crow_indices, const Tensor& col_indices,
                                        bool out_int32 = false, bool transpose = false);

// ---- sparse tensors ----
Tensor _coalesce(const Tensor& self);
Tensor _coalesced(const Tensor& self, bool coalesced);
Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense, std::string_view reduce);
Tensor _sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                     const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor _sparse_sparse_matmul(const Tensor& self, const Tensor& other);
Tensor _sparse_sum(const Tensor& self);
Tensor _sparse_sum(const Tensor& self, ScalarType dtype);
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim);
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype);
#define RL_OF_SPARSE(name)                                                                    \
  Tensor _sparse_##name(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = {}); \
  Tensor _sparse_##name(const Tensor& self, int64_t dim, bool half_to_float);
RL_OF_SPARSE(softmax)
RL_OF_SPARSE(log_softmax)
#undef RL_OF_SPARSE
Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                 const TensorOptions& options = {},
                                 std::optional<bool> is_coalesced = {});
Tensor _sparse_coo_tensor_with_dims(int64_t sparse_dim, int64_t dense_dim, IntArrayRef size,
                                    const TensorOptions& options = {});
Tensor _sparse_coo_tensor_with_dims_and_tensors(int64_t sparse_dim, int64_t dense_dim,
                                                IntArrayRef size, const Tensor& indices,
                                                const Tensor& values,
                                                const TensorOptions& options = {},
                                                std::optional<bool> is_coalesced = {});
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                const Tensor& values, const TensorOptions& options);
Tensor _sparse_compressed_tensor_unsafe(const Tensor& compressed_indices,
                                        const Tensor& plain_indices, const Tensor& values,
                                        IntArrayRef size, const TensorOptions& options = {});
#define RL_COMPRESSED(layout)                                                                  \
  Tensor _sparse_##layout##_tensor_unsafe(const Tensor& compressed_indices,                    \
                                          const Tensor& plain_indices, const Tensor& values,   \
                                          IntArrayRef size, const TensorOptions& options = {}); \
  void _validate_sparse_##layout##_tensor_args(const Tensor& compressed_indices,               \
                                               const Tensor& plain_indices,                    \
                                               const Tensor& values, IntArrayRef size,         \
                                               std::optional<bool> check_pinning = {});
RL_COMPRESSED(csr)
RL_COMPRESSED(csc)
RL_COMPRESSED(bsr)
RL_COMPRESSED(bsc)
#undef RL_COMPRESSED
void _validate_sparse_compressed_tensor_args(const Tensor& compressed_indices,
                                             const Tensor& plain_indices, const Tensor& values,
                                             IntArrayRef size, Layout layout,
                                             std::optional<bool> check_pinning = {});

// ---- questions and checks ----
inline bool is_distributed(const Tensor&) { return false; }
inline bool is_vulkan_available() { return false; }
inline bool _nnpack_available() { return false; }
inline bool cudnn_is_acceptable(const Tensor&) { return false; }
inline bool _use_cudnn_rnn_flatten_weight() { return false; }
inline bool _is_zerotensor(const Tensor&) { return false; }
template <class... A>
bool _use_cudnn_ctc_loss(const Tensor&, A&&...) {
  return false;
}
template <class... A>
bool _use_miopen_ctc_loss(const Tensor&, A&&...) {
  return false;
}
// The kernel of attention, by number: 0, the one that is composed of ops.
template <class... A>
int64_t _fused_sdp_choice(const Tensor&, A&&...) {
  return 0;
}
bool _has_same_storage_numel(const Tensor& self, const Tensor& other);
bool _has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from);
// Whether two elements share memory: 0 no, 1 yes, 2 not known.
int64_t _debug_has_internal_overlap(const Tensor& self);
// RuntimeError where it is not so.
void _assert_scalar(const Scalar& self, std::string_view assert_msg);
void _assert_tensor_metadata(const Tensor& a, OptionalIntArrayRef size = {},
                             OptionalIntArrayRef stride = {}, std::optional<ScalarType> dtype = {},
                             std::optional<Device> device = {}, std::optional<Layout> layout = {});
Tensor _functional_assert_scalar(const Scalar& self, std::string_view assert_msg,
                                 const Tensor& dep_token);
Tensor _functional_assert_async(const Tensor& self, std::string_view assert_msg,
                                const Tensor& dep_token);
Tensor _functional_sym_constrain_range(const Scalar& size, std::optional<int64_t> min,
                                       std::optional<int64_t> max, const Tensor& dep_token);
Tensor _functional_sym_constrain_range_for_size(const Scalar& size, std::optional<int64_t> min,
                                                std::optional<int64_t> max,
                                                const Tensor& dep_token);
void _print(std::string_view s);
#pragma GCC visibility pop

RL_TAKE_OPTIONALS(_native_batch_norm_legit_functional, )
RL_TAKE_OPTIONALS(_batch_norm_with_update_functional, )
RL_TAKE_OPTIONALS(_conv_depthwise2d, )
RL_TAKE_OPTIONALS(conv_depthwise3d, )
RL_TAKE_OPTIONALS(_convolution_mode, )
RL_TAKE_OPTIONALS(mkldnn_convolution, )
RL_TAKE_OPTIONALS(_nnpack_spatial_convolution, )
RL_TAKE_OPTIONALS(_histogramdd_bin_edges, )
RL_TAKE_OPTIONALS(_histogramdd_from_bin_cts, )
RL_TAKE_OPTIONALS(_histogramdd_from_bin_tensors, )
RL_TAKE_OPTIONALS(_scaled_dot_product_attention_math, )
RL_TAKE_OPTIONALS(_scaled_dot_product_flash_attention_for_cpu, )

}  // namespace rushlight
