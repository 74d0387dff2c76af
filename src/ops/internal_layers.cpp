// libtorch's inner functions of layers: convolutions, sequences, attention, rounded numbers.
#include <rushlight/internal_functions.h>

#include <cmath>
#include <limits>

#include <rushlight/autograd.h>
#include <rushlight/factories.h>

namespace rushlight {

// ---- layers ----

Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  return adaptive_avg_pool2d(self, output_size);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  return adaptive_avg_pool3d(self, output_size);
}
// A group for each channel.
#define RL_DEPTHWISE(name, n)                                                                      \
  Tensor name(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,                   \
              const Tensor& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) { \
    RL_CHECK(weight.dim() == (n) + 2 && weight.sizes().slice(2) == kernel_size,                    \
             #name ": kernel_size ", kernel_size, " is not that of the weight, ", weight.sizes()); \
    return conv##n##d(self, weight, bias, stride, padding, dilation, self.size(-(n) - 1));         \
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
      throw Error(
          str("_convolution_mode: expected a weight of 3 to 5 dimensions, got ", weight.sizes()));
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
                          const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank,
                          bool zero_infinity) {
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
    const Tensor seen =
        ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device())).tril();
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

std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(
    const Tensor& self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
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

}  // namespace rushlight
