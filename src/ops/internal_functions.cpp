// libtorch's inner functions, over ops.
#include <rushlight/internal_functions.h>

#include <iostream>

#include <rushlight/autograd.h>
#include <rushlight/factories.h>
#include <rushlight/function.h>
#include <rushlight/out_functions.h>

namespace rushlight {

// ---- casts ----

Tensor _to_copy(const Tensor& self, const TensorOptions& options, bool non_blocking,
                std::optional<MemoryFormat> memory_format) {
  return _to_copy(self, options.dtype_opt(), options.device_opt(), non_blocking, memory_format);
}
Tensor& _to_copy_out(const Tensor& out, const Tensor& self, bool /*non_blocking*/,
                     std::optional<MemoryFormat> /*memory_format: that of `out`*/) {
  return write_result(out, self);
}
std::vector<Tensor> _to_cpu(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    out.push_back(t.cpu());
  }
  return out;
}
Tensor _saturate_weight_to_fp16(const Tensor& weight) {
  constexpr double largest = 65504;  // of Half
  return clamp_(weight, -largest, largest);
}

// ---- functional forms ----

Tensor resize(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> format) {
  const Tensor out = self.clone();
  return out.resize_(size, format);
}
Tensor& _resize_output_(const Tensor& self, IntArrayRef size, Device device) {
  RL_CHECK(self.device().type() == device.type(), "_resize_output_: expected a tensor on ",
           device.str(), ", got one on ", self.device().str());
  return self.resize_(size);
}
Tensor _resize_output(const Tensor& self, IntArrayRef size, Device device) {
  return _resize_output_(self.clone(), size, device);
}
Tensor resize_as(const Tensor& self, const Tensor& the_template,
                 std::optional<MemoryFormat> format) {
  return resize(self, the_template.sizes(), format);
}
Tensor set(const Tensor& self) { return self.clone().set_(); }
Tensor set(const Tensor& self, const Tensor& source) { return self.clone().set_(source); }
Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                        double norm_type) {
  const Tensor out = self.clone();
  return embedding_renorm_(out, indices, max_norm, norm_type);
}
Tensor sparse_resize(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  return self.clone().sparse_resize_(size, sparse_dim, dense_dim);
}
Tensor sparse_resize_and_clear(const Tensor& self, IntArrayRef size, int64_t sparse_dim,
                               int64_t dense_dim) {
  return self.clone().sparse_resize_and_clear_(size, sparse_dim, dense_dim);
}
Tensor resize_as_sparse(const Tensor& self, const Tensor& the_template) {
  return resize_as_sparse_(self.clone(), the_template);
}
Tensor copy_sparse_to_sparse(const Tensor& self, const Tensor& src, bool non_blocking) {
  return self.clone().copy_(src, non_blocking);
}
Tensor& copy_sparse_to_sparse_(const Tensor& self, const Tensor& src, bool non_blocking) {
  return self.copy_(src, non_blocking);
}
std::tuple<Tensor, Tensor> _amp_update_scale(const Tensor& self, const Tensor& growth_tracker,
                                             const Tensor& found_inf, double scale_growth_factor,
                                             double scale_backoff_factor, int64_t growth_interval) {
  const Tensor scale = self.clone(), tracker = growth_tracker.clone();
  _amp_update_scale_(scale, tracker, found_inf, scale_growth_factor, scale_backoff_factor,
                     growth_interval);
  return {scale, tracker};
}
std::tuple<Tensor&, Tensor&, Tensor&> _native_batch_norm_legit_out(
    const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd, const Tensor& input,
    const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps) {
  auto [result, mean, invstd] = _native_batch_norm_legit(input, weight, bias, running_mean,
                                                         running_var, training, momentum, eps);
  return {write_result(out, result), write_result(save_mean, mean),
          write_result(save_invstd, invstd)};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _native_batch_norm_legit_functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps) {
  const Tensor mean = running_mean.clone(), var = running_var.clone();
  auto [out, save_mean, save_invstd] =
      _native_batch_norm_legit(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, mean, var};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update_functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  const Tensor mean = running_mean.clone(), var = running_var.clone();
  auto [out, save_mean, save_invstd, reserve] =
      _batch_norm_with_update(input, weight, bias, mean, var, momentum, eps);
  return {out, save_mean, save_invstd, reserve, mean, var};
}

// ---- methods ----

Tensor Tensor::chalf(std::optional<MemoryFormat> format) const {
  return to(kComplexHalf, false, false, format);
}
Tensor Tensor::_fw_primal(int64_t /*level: of the view*/) const { return alias(*this); }
Tensor Tensor::_autocast_to_full_precision(bool cuda_enabled, bool cpu_enabled) const {
  const bool wanted = device().is_cuda() ? cuda_enabled : device().is_cpu() && cpu_enabled;
  return wanted && (dtype() == kHalf || dtype() == kBFloat16) ? to(kFloat) : *this;
}
Tensor Tensor::_autocast_to_reduced_precision(bool cuda_enabled, bool cpu_enabled,
                                              ScalarType cuda_dtype, ScalarType cpu_dtype) const {
  const bool on_cuda = device().is_cuda();
  const bool wanted = on_cuda ? cuda_enabled : device().is_cpu() && cpu_enabled;
  return wanted && dtype() == kFloat ? to(on_cuda ? cuda_dtype : cpu_dtype) : *this;
}
Tensor Tensor::_to_dense(std::optional<ScalarType> dtype, std::optional<bool> masked_grad) const {
  return to_dense(dtype, masked_grad);
}
Tensor Tensor::_to_sparse(int64_t sparse_dim) const { return to_sparse(sparse_dim); }
Tensor Tensor::_to_sparse(std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                          std::optional<int64_t> dense_dim) const {
  return to_sparse(layout, blocksize, dense_dim);
}
#define RL_TO_SPARSE(layout)                                                       \
  Tensor Tensor::_to_sparse_##layout(std::optional<int64_t> dense_dim) const {     \
    return to_sparse_##layout(dense_dim);                                          \
  }
RL_TO_SPARSE(csr)
RL_TO_SPARSE(csc)
#undef RL_TO_SPARSE
#define RL_TO_SPARSE(layout)                                                                  \
  Tensor Tensor::_to_sparse_##layout(IntArrayRef blocksize, std::optional<int64_t> dense_dim) \
      const {                                                                                 \
    return to_sparse_##layout(blocksize, dense_dim);                                          \
  }
RL_TO_SPARSE(bsr)
RL_TO_SPARSE(bsc)
#undef RL_TO_SPARSE

// ---- views and copies ----

Tensor _conj(const Tensor& self) { return conj(self); }
Tensor _neg_view(const Tensor& self) { return neg(self); }
Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return as_strided(self, size, stride, self.storage_offset());
}
Tensor _unsafe_view(const Tensor& self, IntArrayRef size) { return self.view(size); }
Tensor _reshape_copy(const Tensor& self, IntArrayRef size) {
  return self.clone(MemoryFormat::Contiguous).view(size);
}
Tensor _reshape_from_tensor(const Tensor& self, const Tensor& shape) {
  RL_CHECK(shape.dim() == 1 && shape.dtype() == kLong,
           "_reshape_from_tensor: expected the sizes in one dimension, as int64, got ",
           shape.sizes(), " of ", shape.dtype());
  const Tensor sizes = shape.cpu().contiguous();
  return self.reshape({sizes.data_ptr<int64_t>(), static_cast<size_t>(sizes.numel())});
}
Tensor lift(const Tensor& self) { return self; }
Tensor _reshape_alias_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return _reshape_alias(self, size, stride).clone();
}
Tensor _lazy_clone(const Tensor& self) { return self.clone(); }
Tensor _fw_primal_copy(const Tensor& self, int64_t /*level: of the view*/) { return self.clone(); }
Tensor _copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  return dst.copy_(self, non_blocking);
}
Tensor _copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  return dst.resize_(self.sizes()).copy_(self);
}

// ---- factories ----

Tensor _dim_arange(const Tensor& like, int64_t dim) {
  return arange(like.size(dim), TensorOptions(kLong).device(like.device()));
}
Tensor _efficientzerotensor(IntArrayRef size, const TensorOptions& options) {
  return zeros(size, options);
}
Tensor _new_zeros_with_same_feature_meta(const Tensor& self, const Tensor& other,
                                         int64_t self_num_batch_dims) {
  DimVector sizes;
  for (int64_t d = 0; d < self_num_batch_dims; d++) {
    sizes.push_back(self.size(d));
  }
  for (const int64_t n : other.sizes()) {
    sizes.push_back(n);
  }
  return zeros(sizes, other.options());
}
Tensor _make_dep_token(const TensorOptions& options, std::optional<MemoryFormat> memory_format) {
  return empty({}, options.memory_format(memory_format));
}

// ---- elements ----

Tensor _add_relu(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return relu(add(self, other, alpha));
}
Tensor _add_relu(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return relu(add(self, other, alpha));
}
Tensor& _add_relu_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return self.add_(other, alpha).relu_();
}
Tensor& _add_relu_(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return self.add_(other, alpha).relu_();
}
Tensor _conj_physical(const Tensor& self) { return conj_physical(self); }
Tensor _masked_scale(const Tensor& self, const Tensor& mask, double scale) {
  return self * mask.to(self.dtype()) * scale;
}
Tensor _prelu_kernel(const Tensor& self, const Tensor& weight) {
  return where(self > 0, self, weight * self);
}

namespace {

// The slope of each element below zero in training, else the middle.
Tensor slopes_below(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                    const Generator& generator) {
  const double from = lower.toDouble(), to = upper.toDouble();
  return training ? empty_like(self).uniform_(from, to, generator)
                  : full_like(self, (from + to) / 2);
}

}  // namespace

Tensor rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower,
                        const Scalar& upper, bool training, const Generator& generator) {
  const Tensor slopes = slopes_below(self, lower, upper, training, generator);
  if (training) {
    const NoGradGuard untracked;
    noise.copy_(where(self > 0, ones_like(self), slopes));
  }
  return where(self > 0, self, self * slopes);
}
Tensor& rrelu_with_noise_(const Tensor& self, const Tensor& noise, const Scalar& lower,
                          const Scalar& upper, bool training, const Generator& generator) {
  return self.copy_(rrelu_with_noise(self.clone(), noise, lower, upper, training, generator));
}
std::tuple<Tensor, Tensor> rrelu_with_noise_functional(const Tensor& self, const Tensor& noise,
                                                       const Scalar& lower, const Scalar& upper,
                                                       bool training, const Generator& generator) {
  const Tensor slopes = noise.clone();
  const Tensor out = rrelu_with_noise(self, slopes, lower, upper, training, generator);
  return {out, slopes};
}
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor out = softmax(self, dim, dtype);
  const Tensor hidden = all(self == -std::numeric_limits<double>::infinity(), dim, true);
  return out.masked_fill(hidden, 0);
}
Tensor _logcumsumexp(const Tensor& self, int64_t dim) { return logcumsumexp(self, dim); }
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const std::vector<Tensor> parts = x.chunk(2, dim), tangents = dx.chunk(2, dim);
  const Tensor gate = sigmoid(parts[1]);
  return tangents[0] * gate + glu * (tangents[1] - gate * tangents[1]);
}

// ---- reductions ----

Tensor _is_all_true(const Tensor& self) { return all(self); }
Tensor _is_any_true(const Tensor& self) { return any(self); }
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self) { return aminmax(self); }
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self, int64_t dim, bool keepdim) {
  return aminmax(self, dim, keepdim);
}
Tensor native_norm(const Tensor& self, const Scalar& p) { return norm(self, p); }
Tensor native_norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  return norm(self, p, dim, keepdim, dtype);
}
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return norm(self, p, OptionalIntArrayRef(), false, dtype);
}
Tensor& norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                 ScalarType dtype) {
  return norm_out(out, self, p, OptionalIntArrayRef(), false, dtype);
}
std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted, bool return_inverse) {
  auto [values, inverse, counts] = _unique2(self, sorted, return_inverse);
  return {values, inverse};
}
std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, IntArrayRef bins,
                                           std::optional<ArrayRef<double>> range,
                                           const Tensor& weight, bool density) {
  return std::get<1>(histogramdd(self, bins, range, weight, density));
}
Tensor _histogramdd_from_bin_cts(const Tensor& self, IntArrayRef bins,
                                 std::optional<ArrayRef<double>> range, const Tensor& weight,
                                 bool density) {
  return std::get<0>(histogramdd(self, bins, range, weight, density));
}
Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorList bins, const Tensor& weight,
                                     bool density) {
  return std::get<0>(histogramdd(self, bins, {}, weight, density));
}

// ---- products ----

Tensor _addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                         const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  const Tensor sum = addmm(self, mat1, mat2, beta, alpha);
  return use_gelu ? gelu(sum) : relu(sum);
}
Tensor _compute_linear_combination(const Tensor& input, const Tensor& coefficients) {
  RL_CHECK(input.dim() >= 1 && coefficients.dim() == 2 && coefficients.size(1) == input.size(0),
           "_compute_linear_combination: coefficients of sizes ", coefficients.sizes(),
           " do not fit an input of sizes ", input.sizes());
  return tensordot(coefficients, input, {1}, {0});
}
Tensor _euclidean_dist(const Tensor& x1, const Tensor& x2) { return cdist(x1, x2, 2); }
Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntArrayRef expand1,
                  IntArrayRef expand2, IntArrayRef expand3, IntArrayRef sumdim,
                  int64_t /*unroll_dim: a matter of speed*/) {
  const auto widened = [](Tensor t, IntArrayRef dims) {
    for (const int64_t d : dims) {
      t = t.unsqueeze(d);
    }
    return t;
  };
  const Tensor product = widened(i1, expand1) * widened(i2, expand2) * widened(i3, expand3);
  return sumdim.empty() ? product : product.sum(sumdim);
}
Tensor _weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  RL_CHECK(mat2.dtype() == kChar, "_weight_int8pack_mm: expected a weight of int8, got ",
           mat2.dtype());
  return self.matmul(mat2.to(self.dtype()).t()) * scales;
}
std::tuple<Tensor, Tensor> _weight_norm_interface(const Tensor& v, const Tensor& g, int64_t dim) {
  return {_weight_norm(v, g, dim), norm_except_dim(v, 2, dim)};
}
Tensor _cholesky_solve_helper(const Tensor& self, const Tensor& A, bool upper) {
  return cholesky_solve(self, A, upper);
}
std::tuple<Tensor, Tensor, Tensor> _linalg_det(const Tensor& A) {
  auto [lu, pivots, info] = linalg_lu_factor_ex(A);
  return {linalg_det(A), lu, pivots};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_slogdet(const Tensor& A) {
  auto [sign, logabsdet] = linalg_slogdet(A);
  auto [lu, pivots, info] = linalg_lu_factor_ex(A);
  return {sign, logabsdet, lu, pivots};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> _linalg_solve_ex(const Tensor& A, const Tensor& B,
                                                            bool left, bool check_errors) {
  auto [result, info] = linalg_solve_ex(A, B, left, check_errors);
  auto [lu, pivots, lu_info] = linalg_lu_factor_ex(A);
  return {result, lu, pivots, info};
}
Tensor _linalg_eigvals(const Tensor& self) { return linalg_eigvals(self); }
void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix) {
  const Tensor codes = info.cpu().to(kLong).reshape({-1}).contiguous();
  const int64_t* code = codes.data_ptr<int64_t>();
  for (int64_t i = 0; i < codes.numel(); i++) {
    if (code[i] != 0) {
      const std::string at = is_matrix ? std::string() : str("(Batch element ", i, "): ");
      throw LinAlgError(str(api_name, ": ", at, "the factorisation failed with info ", code[i]));
    }
  }
}

// ---- layers ----

Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  return adaptive_avg_pool2d(self, output_size);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  return adaptive_avg_pool3d(self, output_size);
}
// A group for each channel.
#define RL_DEPTHWISE(name, n)                                                                   \
  Tensor name(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,                \
              const Tensor& bias, IntArrayRef stride, IntArrayRef padding,                      \
              IntArrayRef dilation) {                                                           \
    RL_CHECK(weight.dim() == (n) + 2 && weight.sizes().slice(2) == kernel_size,                 \
             #name ": kernel_size ", kernel_size, " is not that of the weight, ",               \
             weight.sizes());                                                                   \
    return conv##n##d(self, weight, bias, stride, padding, dilation, self.size(-(n) - 1));      \
  }
RL_DEPTHWISE(_conv_depthwise2d, 2)
RL_DEPTHWISE(conv_depthwise3d, 3)
#undef RL_DEPTHWISE
Tensor _convolution_mode(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                         int64_t groups) {
  switch (weight.dim()) {
    case 3:
      return conv1d(input, weight, bias, stride, padding, dilation, groups);
    case 4:
      return conv2d(input, weight, bias, stride, padding, dilation, groups);
    case 5:
      return conv3d(input, weight, bias, stride, padding, dilation, groups);
    default:
      throw Error(str("_convolution_mode: expected a weight of 3 to 5 dimensions, got ",
                      weight.sizes()));
  }
}
Tensor mkldnn_convolution(const Tensor& self, const Tensor& weight, const Tensor& bias,
                          IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation,
                          int64_t groups) {
  const std::vector<int64_t> none(padding.size(), 0);
  return convolution(self, weight, bias, stride, padding, dilation, false, none, groups);
}
Tensor _nnpack_spatial_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                   IntArrayRef padding, IntArrayRef stride) {
  return conv2d(input, weight, bias, stride, padding);
}
namespace {

std::vector<int64_t> numbers(const Tensor& t) {
  const Tensor plain = t.cpu().to(kLong).reshape({-1}).contiguous();
  return {plain.data_ptr<int64_t>(), plain.data_ptr<int64_t>() + plain.numel()};
}

}  // namespace

std::tuple<Tensor, Tensor> _ctc_loss(const Tensor& log_probs, const Tensor& targets,
                                     const Tensor& input_lengths, const Tensor& target_lengths,
                                     int64_t blank, bool zero_infinity) {
  return _ctc_loss(log_probs, targets, numbers(input_lengths), numbers(target_lengths), blank,
                   zero_infinity);
}
std::tuple<Tensor&, Tensor&> _ctc_loss_out(const Tensor& out_loss, const Tensor& out_alpha,
                                           const Tensor& log_probs, const Tensor& targets,
                                           const Tensor& input_lengths,
                                           const Tensor& target_lengths, int64_t blank,
                                           bool zero_infinity) {
  return _ctc_loss_out(out_loss, out_alpha, log_probs, targets, numbers(input_lengths),
                       numbers(target_lengths), blank, zero_infinity);
}
Tensor _ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                          int64_t blank, bool zero_infinity) {
  return _ctc_loss_backward(grad, log_probs, targets, numbers(input_lengths),
                            numbers(target_lengths), neg_log_likelihood, log_alpha, blank,
                            zero_infinity);
}
Tensor _pad_circular(const Tensor& self, IntArrayRef by) { return pad(self, by, "circular"); }
Tensor _pad_enum(const Tensor& self, IntArrayRef by, int64_t mode, std::optional<double> value) {
  constexpr std::string_view modes[] = {"constant", "reflect", "replicate", "circular"};
  RL_CHECK(mode >= 0 && mode < 4, "_pad_enum: expected a mode from 0 to 3, got ", mode);
  return pad(self, by, modes[mode], value);
}
std::tuple<Tensor, Tensor> _pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                                 bool batch_first) {
  const Tensor steps = batch_first ? input.transpose(0, 1) : input;
  const Tensor longest_first = lengths.cpu().to(kLong).contiguous();
  const int64_t batch = longest_first.numel();
  const int64_t* length = longest_first.data_ptr<int64_t>();
  RL_CHECK(longest_first.dim() == 1 && batch == steps.size(1),
           "_pack_padded_sequence: expected a length for each of ", steps.size(1),
           " sequences, got ", batch);
  for (int64_t i = 0; i < batch; i++) {
    RL_CHECK(length[i] > 0 && length[i] <= steps.size(0) && (i == 0 || length[i] <= length[i - 1]),
             "_pack_padded_sequence: expected lengths in decreasing order, from ", steps.size(0),
             " down to 1, got ", length[i], " at ", i);
  }
  std::vector<Tensor> rows;
  std::vector<int64_t> sizes;
  for (int64_t step = 0, left = batch; step < (batch > 0 ? length[0] : 0); step++) {
    while (length[left - 1] <= step) {
      left--;
    }
    rows.push_back(steps.select(0, step).narrow(0, 0, left));
    sizes.push_back(left);
  }
  return {cat(rows), tensor(IntArrayRef(sizes))};
}
Tensor _pack_padded_sequence_backward(const Tensor& grad, IntArrayRef input_size,
                                      const Tensor& batch_sizes, bool batch_first) {
  std::vector<int64_t> sizes(input_size.begin(), input_size.end());
  if (batch_first) {
    std::swap(sizes.at(0), sizes.at(1));
  }
  const Tensor counts = batch_sizes.cpu().to(kLong).contiguous();
  const int64_t* count = counts.data_ptr<int64_t>();
  const Tensor out = zeros(sizes, grad.options());
  for (int64_t step = 0, row = 0; step < counts.numel(); row += count[step], step++) {
    out.select(0, step).narrow(0, 0, count[step]).copy_(grad.narrow(0, row, count[step]));
  }
  return batch_first ? out.transpose(0, 1) : out;
}

namespace {

struct Scores {
  Tensor values, scaled;  // of heads that match those of the query; query times key, masked
};
Scores attention_scores(const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& attn_mask, bool is_causal, std::optional<double> scale,
                        bool enable_gqa) {
  const int64_t shared = enable_gqa ? query.size(-3) / key.size(-3) : 1;
  const Tensor keys = shared > 1 ? key.repeat_interleave(shared, -3) : key;
  const Tensor values = shared > 1 ? value.repeat_interleave(shared, -3) : value;
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scaled = matmul(query * factor, keys.transpose(-2, -1));
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  if (is_causal) {
    RL_CHECK(!attn_mask.defined(), "attention: expected no attn_mask where is_causal is set");
    const Tensor seen = ones({query.size(-2), key.size(-2)},
                             TensorOptions(kBool).device(query.device())).tril();
    scaled = scaled.masked_fill(seen.logical_not(), hidden);
  } else if (attn_mask.defined()) {
    scaled = attn_mask.dtype() == kBool ? scaled.masked_fill(attn_mask.logical_not(), hidden)
                                        : scaled + attn_mask;
  }
  return {values, scaled};
}

}  // namespace

std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
    double dropout_p, bool is_causal, const Tensor& dropout_mask, std::optional<double> scale,
    bool enable_gqa) {
  const Scores scores =
      attention_scores(query, key, value, attn_mask, is_causal, scale, enable_gqa);
  Tensor weights = _safe_softmax(scores.scaled, -1);
  Tensor kept = weights;
  if (dropout_mask.defined()) {
    kept = weights.masked_fill(dropout_mask.logical_not(), 0) / (1 - dropout_p);
  } else if (dropout_p > 0) {
    kept = weights = dropout(weights, dropout_p, true);
  }
  return {matmul(kept, scores.values), weights};
}
std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    const Tensor& attn_mask, std::optional<double> scale) {
  RL_CHECK(dropout_p == 0, "_scaled_dot_product_flash_attention_for_cpu: expected no dropout, got ",
           dropout_p);
  const Scores scores = attention_scores(query, key, value, attn_mask, is_causal, scale, false);
  return {scaled_dot_product_attention(query, key, value, attn_mask, 0, is_causal, scale),
          logsumexp(scores.scaled, -1)};
}
std::tuple<Tensor, Tensor, Tensor> _transform_bias_rescale_qkv(const Tensor& qkv,
                                                               const Tensor& qkv_bias,
                                                               int64_t num_heads) {
  RL_CHECK(qkv.dim() == 3 && num_heads > 0 && qkv.size(2) % (3 * num_heads) == 0,
           "_transform_bias_rescale_qkv: expected a batch of sequences of three times ", num_heads,
           " heads, got sizes ", qkv.sizes());
  const int64_t width = qkv.size(2) / (3 * num_heads);
  const Tensor heads = (qkv + qkv_bias)
                           .view({qkv.size(0), qkv.size(1), 3, num_heads, width})
                           .permute({2, 0, 3, 1, 4})
                           .contiguous();
  return {heads[0] / std::sqrt(static_cast<double>(width)), heads[1], heads[2]};
}

// ---- numbers rounded as quantised ones ----

namespace {

std::tuple<Tensor, Tensor> fake_quantized(const Tensor& self, const Tensor& scale,
                                          const Tensor& zero_point, int64_t quant_min,
                                          int64_t quant_max) {
  RL_CHECK(quant_min <= quant_max, "fake_quantize: expected quant_min not above quant_max, got ",
           quant_min, " and ", quant_max);
  const NoGradGuard untracked;
  const Tensor steps = round(self / scale + zero_point);
  const Tensor mask = logical_and(steps >= quant_min, steps <= quant_max);
  return {(clamp(steps, quant_min, quant_max) - zero_point) * scale, mask};
}
// `rounded`, whose gradient is that of self where the mask is set.
Tensor passing_gradient(const Tensor& self, const std::tuple<Tensor, Tensor>& found) {
  const auto& [rounded, mask] = found;
  if (!grad_enabled() || !self.requires_grad()) {
    return rounded;
  }
  const Tensor passed = self.masked_fill(mask.logical_not(), 0);
  return passed - passed.detach() + rounded;
}
Tensor along_axis(const Tensor& of_channel, const Tensor& self, int64_t axis) {
  RL_CHECK(of_channel.dim() == 1 && axis >= 0 && axis < self.dim() &&
               of_channel.numel() == self.size(axis),
           "fake_quantize_per_channel_affine: expected a number for each of the channels along ",
           axis, " of ", self.sizes(), ", got sizes ", of_channel.sizes());
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  return of_channel.reshape(sizes);
}

}  // namespace

std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self,
                                                                     double scale,
                                                                     int64_t zero_point,
                                                                     int64_t quant_min,
                                                                     int64_t quant_max) {
  return fake_quantized(self, make_number(scale), make_number(zero_point), quant_min, quant_max);
}
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(
    const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
    int64_t quant_min, int64_t quant_max) {
  return fake_quantized(self, along_axis(scale, self, axis), along_axis(zero_point, self, axis),
                        quant_min, quant_max);
}
Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point,
                                       int64_t quant_min, int64_t quant_max) {
  return passing_gradient(self, fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point,
                                                                          quant_min, quant_max));
}
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale,
                                       const Tensor& zero_point, int64_t quant_min,
                                       int64_t quant_max) {
  return passing_gradient(self, fake_quantized(self, scale, zero_point, quant_min, quant_max));
}
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale,
                                        const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max) {
  return passing_gradient(self, fake_quantize_per_channel_affine_cachemask(
                                    self, scale, zero_point, axis, quant_min, quant_max));
}
Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) {
  return grad * mask;
}
Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) {
  return grad * mask;
}

// ---- indices ----

Tensor _stack(TensorList tensors, int64_t dim) { return stack(tensors, dim); }
Tensor _unsafe_index(const Tensor& self, const OptionalTensors& indices) {
  return index(self, indices);
}
Tensor _unsafe_index_put(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                         bool accumulate) {
  return index_put(self, indices, values, accumulate);
}
Tensor _index_put_impl(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                       bool accumulate, bool /*unsafe: indices are always checked*/) {
  return index_put(self, indices, values, accumulate);
}
Tensor& _index_put_impl_(const Tensor& self, const OptionalTensors& indices, const Tensor& values,
                         bool accumulate, bool /*unsafe*/) {
  return index_put_(self, indices, values, accumulate);
}

namespace {

OptionalTensors within_mask(const OptionalTensors& indices, const Tensor& mask) {
  OptionalTensors out = indices;
  for (std::optional<Tensor>& at : out) {
    if (at.has_value() && at->defined()) {
      at = at->masked_fill(mask.logical_not(), 0);
    }
  }
  return out;
}

}  // namespace

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, const OptionalTensors& indices,
                            const Scalar& fill) {
  return index(self, within_mask(indices, mask)).masked_fill(mask.logical_not(), fill);
}
Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           const OptionalTensors& indices, const Tensor& values) {
  return index_put(self, within_mask(indices, mask), values.masked_fill(mask.logical_not(), 0),
                   true);
}
std::tuple<Tensor, Tensor> _rowwise_prune(const Tensor& weight, const Tensor& mask,
                                          ScalarType compressed_indices_dtype) {
  RL_CHECK(mask.dim() == 1 && mask.dtype() == kBool && mask.numel() == weight.size(0),
           "_rowwise_prune: expected a mask of a bool for each of ", weight.size(0),
           " rows, got sizes ", mask.sizes());
  const Tensor places = mask.cumsum(0) - 1;
  return {weight.index({mask}),
          where(mask, places, full_like(places, -1)).to(compressed_indices_dtype)};
}
Tensor _convert_indices_from_coo_to_csr(const Tensor& self, int64_t size, bool out_int32) {
  const Tensor rows = arange(size + 1, TensorOptions(self.dtype()).device(self.device()));
  return searchsorted(self.contiguous(), rows, out_int32);
}
Tensor _convert_indices_from_csr_to_coo(const Tensor& crow_indices, const Tensor& col_indices,
                                        bool out_int32, bool transpose) {
  const ScalarType dtype = out_int32 ? kInt : kLong;
  const Tensor counts = crow_indices.narrow(0, 1, crow_indices.numel() - 1) -
                        crow_indices.narrow(0, 0, crow_indices.numel() - 1);
  const Tensor rows = repeat_interleave(counts.to(kLong)).to(dtype), columns = col_indices.to(dtype);
  return transpose ? stack({columns, rows}) : stack({rows, columns});
}

// ---- questions and checks ----

bool _has_same_storage_numel(const Tensor& self, const Tensor& other) {
  return self.storage().nbytes() / self.itemsize() == other.storage().nbytes() / other.itemsize();
}
bool _has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  return self.layout() == from.layout() && self.device().type() == from.device().type();
}
int64_t _debug_has_internal_overlap(const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) {
    return 0;
  }
  for (int64_t d = 0; d < self.dim(); d++) {
    if (self.size(d) > 1 && self.stride(d) == 0) {
      return 1;
    }
  }
  return 2;
}
void _assert_scalar(const Scalar& self, std::string_view assert_msg) {
  if (!self.toBool()) {
    throw Error(std::string(assert_msg));
  }
}
void _assert_tensor_metadata(const Tensor& a, OptionalIntArrayRef size, OptionalIntArrayRef stride,
                             std::optional<ScalarType> dtype, std::optional<Device> device,
                             std::optional<Layout> layout) {
  const auto same = [](bool holds, const char* what, const auto& expected, const auto& got) {
    RL_CHECK(holds, "Tensor ", what, " mismatch! Expected: ", expected, ", got: ", got);
  };
  if (size.has_value()) {
    same(a.sizes() == *size, "sizes", *size, a.sizes());
  }
  if (stride.has_value()) {
    same(a.strides() == *stride, "strides", *stride, a.strides());
  }
  if (dtype.has_value()) {
    same(a.dtype() == *dtype, "dtype", *dtype, a.dtype());
  }
  if (device.has_value()) {
    same(a.device() == *device, "device", device->str(), a.device().str());
  }
  if (layout.has_value()) {
    same(a.layout() == *layout, "layout", static_cast<int>(*layout), static_cast<int>(a.layout()));
  }
}
Tensor _functional_assert_scalar(const Scalar& self, std::string_view assert_msg,
                                 const Tensor& dep_token) {
  _assert_scalar(self, assert_msg);
  return dep_token.clone();
}
Tensor _functional_assert_async(const Tensor& self, std::string_view assert_msg,
                                const Tensor& dep_token) {
  _assert_scalar(self.item(), assert_msg);
  return dep_token.clone();
}
Tensor _functional_sym_constrain_range(const Scalar& size, std::optional<int64_t> min,
                                       std::optional<int64_t> max, const Tensor& dep_token) {
  const int64_t n = size.toLong();
  RL_CHECK(n >= min.value_or(n) && n <= max.value_or(n), "Invalid value range for ", n,
           ": expected it from ", min.value_or(n), " to ", max.value_or(n));
  return dep_token.clone();
}
Tensor _functional_sym_constrain_range_for_size(const Scalar& size, std::optional<int64_t> min,
                                                std::optional<int64_t> max,
                                                const Tensor& dep_token) {
  return _functional_sym_constrain_range(size, min, max, dep_token);
}
void _print(std::string_view s) { std::cout << s << '\n'; }

}  // namespace rushlight
