// Functions beside the ops of the table: libtorch's names for what these do together.
#include <rushlight/functions.h>

#include <array>
#include <functional>

#include <rushlight/autograd.h>
#include <rushlight/factories.h>

#include "ops/derivatives.h"
#include "ops/geometry.h"
#include "ops/gradients.h"

namespace rushlight {

// ---- random numbers ----

Tensor uniform(const Tensor& self, double from, double to, const Generator& generator) {
  return empty_like(self).uniform_(from, to, generator);
}
Tensor exponential(const Tensor& self, double lambd, const Generator& generator) {
  return empty_like(self).exponential_(lambd, generator);
}
Tensor geometric(const Tensor& self, double p, const Generator& generator) {
  return empty_like(self).geometric_(p, generator);
}
Tensor cauchy(const Tensor& self, double median, double sigma, const Generator& generator) {
  return empty_like(self).cauchy_(median, sigma, generator);
}
Tensor log_normal(const Tensor& self, double mean, double std, const Generator& generator) {
  return empty_like(self).log_normal_(mean, std, generator);
}
Tensor normal_functional(const Tensor& self, double mean, double std, const Generator& generator) {
  return empty_like(self).normal_(mean, std, generator);
}
Tensor random(const Tensor& self, const Generator& generator) {
  return empty_like(self).random_(generator);
}
Tensor random(const Tensor& self, int64_t to, const Generator& generator) {
  return empty_like(self).random_(to, generator);
}
Tensor random(const Tensor& self, int64_t from, std::optional<int64_t> to,
              const Generator& generator) {
  return empty_like(self).random_(from, to, generator);
}

// ---- functional forms ----

Tensor zero(const Tensor& self) { return zeros_like(self); }
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  return self.clone().copy_(src, non_blocking);
}
Tensor& gelu_(const Tensor& self, std::string_view approximate) {
  return self.copy_(gelu(before_write(self), approximate));
}
Tensor _shape_as_tensor(const Tensor& self) { return tensor(self.sizes()); }
Tensor _softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  return softmax(self, dim, half_to_float ? std::optional(kFloat32) : std::nullopt);
}
Tensor _log_softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  return log_softmax(self, dim, half_to_float ? std::optional(kFloat32) : std::nullopt);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                          bool return_inverse, bool return_counts) {
  return unique_consecutive(self, return_inverse, return_counts, dim);
}
std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  return {log_sigmoid(self), empty({0}, self.options())};
}

// ---- lists ----

Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  RL_CHECK(!sequences.empty(), "received an empty list of sequences");
  RL_CHECK(padding_side == "left" || padding_side == "right",
           "Expected padding_side to be one of left or right, but got ", padding_side, ".");
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    longest = std::max(longest, s.size(0));
  }
  std::vector<Tensor> padded;
  padded.reserve(sequences.size());
  for (const Tensor& s : sequences) {
    DimVector rest(s.sizes());
    rest[0] = longest - s.size(0);
    const Tensor filler = full(rest, padding_value, s.options());
    padded.push_back(padding_side == "left" ? cat({filler, s}) : cat({s, filler}));
  }
  return stack(padded, batch_first ? 0 : 1);
}

Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<Tensor> flat;
  flat.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    flat.push_back(t.contiguous().view(-1));
  }
  return cat(flat);
}

std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    parts.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return parts;
}

// ---- norms ----

Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) {
    return v.norm(pow);
  }
  const Tensor first = v.transpose(0, dim);
  const Tensor rows = v.dim() == 1 ? first.unsqueeze(1) : first.flatten(1);
  const Tensor norms = rows.norm(pow, 1);
  DimVector sizes(static_cast<size_t>(v.dim()), 1);
  sizes[0] = first.size(0);
  return norms.view(sizes).transpose(0, dim);
}

Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  return v * (g / norm_except_dim(v, 2, dim));
}

namespace {

// All dimensions but that of channels, and values of channels in the input's number of dimensions.
DimVector dims_except_channels(const Tensor& input) {
  RL_CHECK(input.dim() > 1, "batch norm expects an input of at least 2 dimensions, got ",
           input.dim());
  DimVector dims{0};
  for (int64_t d = 2; d < input.dim(); d++) {
    dims.push_back(d);
  }
  return dims;
}
Tensor of_channels(const Tensor& values, const Tensor& input) {
  DimVector sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = input.size(1);
  return values.reshape(sizes);
}
// What is computed in: 16-bit floats are summed as floats.
Tensor to_float32(const Tensor& t) { return itemsize(t.dtype()) < 4 ? t.to(kFloat32) : t; }

void move_towards(const Tensor& running, const Tensor& value, double momentum) {
  if (running.defined()) {
    running.copy_(running * (1 - momentum) + value * momentum);
  }
}

}  // namespace

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  const DimVector dims = dims_except_channels(input);
  const auto [variance, mean] = var_mean(to_float32(input), IntArrayRef(dims), false);
  return {mean, (variance + eps).rsqrt()};
}

Tensor batch_norm_elemt(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& invstd, double /*eps*/) {
  Tensor out = (to_float32(input) - of_channels(mean, input)) * of_channels(invstd, input);
  if (weight.defined()) {
    out = out * of_channels(weight, input);
  }
  if (bias.defined()) {
    out = out + of_channels(bias, input);
  }
  return out.to(input.dtype());
}

std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(
    const Tensor& /*input*/, const Tensor& mean, const Tensor& invstd, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps, const Tensor& counts) {
  const Tensor n = counts.to(mean.dtype()).reshape({-1, 1});
  const Tensor all = n.sum();
  const Tensor whole = (mean * n).sum(0) / all;
  // The squares of each part about the mean of the whole.
  const Tensor squares = ((invstd.pow(-2) - eps + (mean - whole).square()) * n).sum(0);
  const NoGradGuard no_grad;
  move_towards(running_mean, whole, momentum);
  move_towards(running_var, squares / (all - 1), momentum);
  return {whole, (squares / all + eps).rsqrt()};
}

std::tuple<Tensor, Tensor> batch_norm_gather_stats(const Tensor& input, const Tensor& mean,
                                                   const Tensor& invstd, const Tensor& running_mean,
                                                   const Tensor& running_var, double momentum,
                                                   double eps, int64_t count) {
  return batch_norm_gather_stats_with_counts(
      input, mean, invstd, running_mean, running_var, momentum, eps,
      full({mean.size(0)}, static_cast<double>(count), mean.options()));
}

std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, const Tensor& running_mean,
                                                   const Tensor& running_var, double momentum) {
  const DimVector dims = dims_except_channels(input);
  const auto [variance, mean] = var_mean(to_float32(input), IntArrayRef(dims), false);
  const int64_t count = input.numel() / input.size(1);
  const auto n = static_cast<double>(count);
  const NoGradGuard no_grad;
  move_towards(running_mean, mean, momentum);
  move_towards(running_var, variance * (n / (n - 1)), momentum);
  return {mean, variance};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const Tensor& weight, bool input_g, bool weight_g, bool bias_g) {
  const DimVector dims = dims_except_channels(input);
  const Tensor grad = to_float32(grad_out);
  const Tensor sum = grad.sum(dims);
  const Tensor products = (grad * (to_float32(input) - of_channels(mean, input))).sum(dims);
  const ScalarType dtype = weight.defined() ? weight.dtype() : sum.dtype();
  return {input_g ? sum : Tensor(), input_g ? products : Tensor(),
          weight_g ? (products * invstd).to(dtype) : Tensor(), bias_g ? sum.to(dtype) : Tensor()};
}

Tensor batch_norm_backward_elemt(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                 const Tensor& invstd, const Tensor& weight, const Tensor& sum_dy,
                                 const Tensor& sum_dy_xmu, const Tensor& count) {
  const Tensor n = count.sum().to(mean.dtype());
  const Tensor above = to_float32(input) - of_channels(mean, input);
  const Tensor slope = of_channels(invstd.square() * sum_dy_xmu / n, input);
  const Tensor factor = of_channels(weight.defined() ? invstd * weight : invstd, input);
  return ((to_float32(grad_out) - of_channels(sum_dy / n, input) - above * slope) * factor)
      .to(input.dtype());
}

// ---- convolutions ----

namespace {

void check_kernel(const char* op, const Tensor& weight, IntArrayRef kernel_size) {
  RL_CHECK(weight.dim() >= 2 && weight.sizes().slice(2) == kernel_size, op, ": kernel_size ",
           kernel_size, " is not that of the weight, ", weight.sizes());
}

}  // namespace

Tensor thnn_conv2d(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                   const Tensor& bias, IntArrayRef stride, IntArrayRef padding) {
  check_kernel("thnn_conv2d", weight, kernel_size);
  return conv2d(self, weight, bias, stride, padding);
}
Tensor slow_conv3d(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                   const Tensor& bias, IntArrayRef stride, IntArrayRef padding) {
  check_kernel("slow_conv3d", weight, kernel_size);
  return conv3d(self, weight, bias, stride, padding);
}
#define RL_SLOW_CONV(n)                                                                            \
  Tensor slow_conv_dilated##n##d(const Tensor& self, const Tensor& weight,                         \
                                 IntArrayRef kernel_size, const Tensor& bias, IntArrayRef stride,  \
                                 IntArrayRef padding, IntArrayRef dilation) {                      \
    check_kernel("slow_conv_dilated" #n "d", weight, kernel_size);                                 \
    return conv##n##d(self, weight, bias, stride, padding, dilation);                              \
  }                                                                                                \
  Tensor slow_conv_transpose##n##d(                                                                \
      const Tensor& self, const Tensor& weight, IntArrayRef kernel_size, const Tensor& bias,       \
      IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding, IntArrayRef dilation) { \
    check_kernel("slow_conv_transpose" #n "d", weight, kernel_size);                               \
    return conv_transpose##n##d(self, weight, bias, stride, padding, output_padding, 1, dilation); \
  }
RL_SLOW_CONV(2)
RL_SLOW_CONV(3)
#undef RL_SLOW_CONV

// ---- gradients ----

Tensor mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                         int64_t reduction) {
  return gradient_of(grad, self, [&](const Tensor& x) { return mse_loss(x, target, reduction); });
}
Tensor smooth_l1_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                               int64_t reduction, double beta) {
  return gradient_of(grad, self,
                     [&](const Tensor& x) { return smooth_l1_loss(x, target, reduction, beta); });
}
Tensor huber_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                           int64_t reduction, double delta) {
  return gradient_of(grad, self,
                     [&](const Tensor& x) { return huber_loss(x, target, reduction, delta); });
}
Tensor soft_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                 int64_t reduction) {
  return gradient_of(grad, self,
                     [&](const Tensor& x) { return soft_margin_loss(x, target, reduction); });
}
Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                     const Tensor& weight, int64_t reduction) {
  return gradient_of(grad, self, [&](const Tensor& x) {
    return binary_cross_entropy(x, target, weight, reduction);
  });
}
Tensor nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                         const Tensor& weight, int64_t reduction, int64_t ignore_index,
                         const Tensor& /*total_weight: counted again*/) {
  return gradient_of(grad, self, [&](const Tensor& x) {
    return nll_loss_nd(x, target, weight, reduction, ignore_index);
  });
}
Tensor nll_loss2d_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                           const Tensor& weight, int64_t reduction, int64_t ignore_index,
                           const Tensor& total_weight) {
  return nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight);
}
Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  return gradient_of(grad, self, [&](const Tensor& x) { return glu(x, dim); });
}
Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  return gradient_of(grad, self, [&](const Tensor& x) { return logit(x, eps); });
}
Tensor softshrink_backward(const Tensor& grad, const Tensor& self, const Scalar& lambd) {
  return gradient_of(grad, self, [&](const Tensor& x) { return softshrink(x, lambd); });
}
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor& /*buffer*/) {
  return gradient_of(grad, self, [](const Tensor& x) { return log_sigmoid(x); });
}
Tensor multi_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                  const Scalar& p, const Scalar& margin, const Tensor& weight,
                                  int64_t reduction) {
  return gradient_of(grad, self, [&](const Tensor& x) {
    return multi_margin_loss(x, target, p, margin, weight, reduction);
  });
}
Tensor multilabel_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                       int64_t reduction,
                                       const Tensor& /*is_target: found again*/) {
  return gradient_of(grad, self,
                     [&](const Tensor& x) { return multilabel_margin_loss(x, target, reduction); });
}
Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim,
                        const Tensor& /*output: computed again*/) {
  return gradient_of(grad, input, [&](const Tensor& x) { return cumprod(x, dim); });
}
Tensor matrix_exp_backward(const Tensor& self, const Tensor& grad) {
  return gradient_of(grad, self, [](const Tensor& x) { return linalg_matrix_exp(x); });
}
Tensor affine_grid_generator_backward(const Tensor& grad, IntArrayRef size, bool align_corners) {
  const auto dims = static_cast<int64_t>(size.size()) - 2;  // of a picture
  return gradient_by_size(grad, {size[0], dims, dims + 1}, [&](const Tensor& x) {
    return affine_grid_generator(x, size, align_corners);
  });
}
Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                           IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                           bool ceil_mode) {
  return gradient_of(grad, self, [&](const Tensor& x) {
    return max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode);
  });
}
Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          IntArrayRef sizes, bool keepdim) {
  const bool reduced = !keepdim && !sizes.empty();
  const Tensor at = reduced ? indices.unsqueeze(dim) : indices;
  return zeros(sizes, grad.options()).scatter(dim, at, reduced ? grad.unsqueeze(dim) : grad);
}
Tensor trace_backward(const Tensor& grad, IntArrayRef sizes) {
  return gradient_by_size(grad, sizes, [](const Tensor& x) { return trace(x); });
}
Tensor gather_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                       bool sparse_grad) {
  return gradient_of(grad, self,
                     [&](const Tensor& x) { return gather(x, dim, index, sparse_grad); });
}
Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  return gradient_of(grad, input, [&](const Tensor& x) { return masked_select(x, mask); });
}
Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                             const Tensor& index) {
  return zeros(sizes, grad.options()).index_add(dim, index, grad);
}
std::tuple<Tensor, Tensor> matmul_backward(const Tensor& grad, const Tensor& self,
                                           const Tensor& other, std::array<bool, 2> mask) {
  auto [a, b] = gradients_of<2>(grad, {self, other}, mask,
                                [](const auto& in) { return matmul(in[0], in[1]); });
  return {a, b};
}
std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& self, const Tensor& grad,
                                                   const Tensor& weight, std::array<bool, 3> mask) {
  auto [x, w] = gradients_of<2>(grad, {self, weight}, {mask[0], mask[1]},
                                [](const auto& in) { return linear(in[0], in[1]); });
  return {x, w, mask[2] ? as_rows(grad).sum(0) : Tensor()};
}
std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, OptionalIntArrayRef bias_sizes,
    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
    IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  auto [x, w] = gradients_of<2>(grad, {input, weight}, {mask[0], mask[1]}, [&](const auto& in) {
    return convolution(in[0], in[1], {}, stride, padding, dilation, transposed, output_padding,
                       groups);
  });
  const Tensor b = mask[2] ? grad.sum(dims_except_channels(grad)) : Tensor();
  return {x, w, b.defined() && bias_sizes.has_value() ? b.reshape(*bias_sizes) : b};
}
#define RL_BY_DIMS(n)                                                                             \
  Tensor avg_pool##n##d_backward(const Tensor& grad, const Tensor& self, IntArrayRef kernel_size, \
                                 IntArrayRef stride, IntArrayRef padding, bool ceil_mode,         \
                                 bool count_include_pad,                                          \
                                 std::optional<int64_t> divisor_override) {                       \
    return gradient_of(grad, self, [&](const Tensor& x) {                                         \
      return avg_pool##n##d(x, kernel_size, stride, padding, ceil_mode, count_include_pad,        \
                            divisor_override);                                                    \
    });                                                                                           \
  }                                                                                               \
  /* Each gradient goes to the element that its index names. */                                   \
  Tensor adaptive_max_pool##n##d_backward(const Tensor& grad, const Tensor& self,                 \
                                          const Tensor& indices) {                                \
    const Tensor flat = zeros_like(self).flatten(-n);                                             \
    return flat.scatter_add(-1, indices.flatten(-n), grad.flatten(-n)).view(self.sizes());        \
  }                                                                                               \
  std::tuple<Tensor, Tensor> grid_sampler_##n##d_backward(                                        \
      const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,    \
      int64_t padding_mode, bool align_corners, std::array<bool, 2> mask) {                       \
    auto [x, g] = gradients_of<2>(grad, {input, grid}, mask, [&](const auto& in) {                \
      return grid_sampler_##n##d(in[0], in[1], interpolation_mode, padding_mode, align_corners);  \
    });                                                                                           \
    return {x, g};                                                                                \
  }
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS
#define RL_BY_DIMS(n)                                                                              \
  Tensor reflection_pad##n##d_backward(const Tensor& grad, const Tensor& self,                     \
                                       IntArrayRef padding) {                                      \
    return gradient_of(grad, self, [&](const Tensor& x) { return pad(x, padding, "reflect"); });   \
  }                                                                                                \
  Tensor replication_pad##n##d_backward(const Tensor& grad, const Tensor& self,                    \
                                        IntArrayRef padding) {                                     \
    return gradient_of(grad, self, [&](const Tensor& x) { return pad(x, padding, "replicate"); }); \
  }
RL_BY_DIMS(1)
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS
#define RL_SCALES_1 std::optional<double> scales
#define RL_SCALES_2 std::optional<double> scales_h, std::optional<double> scales_w
#define RL_SCALES_3 std::optional<double> scales_d, RL_SCALES_2
#define RL_GIVEN_1 scales
#define RL_GIVEN_2 scales_h, scales_w
#define RL_GIVEN_3 scales_d, RL_GIVEN_2
#define RL_UPSAMPLE(name, n)                                                         \
  Tensor upsample_##name##n##d_backward(const Tensor& grad, IntArrayRef output_size, \
                                        IntArrayRef input_size, bool align_corners,  \
                                        RL_SCALES_##n) {                             \
    return gradient_by_size(grad, input_size, [&](const Tensor& x) {                 \
      return upsample_##name##n##d(x, output_size, align_corners, RL_GIVEN_##n);     \
    });                                                                              \
  }
RL_UPSAMPLE(linear, 1)
RL_UPSAMPLE(bilinear, 2)
RL_UPSAMPLE(bicubic, 2)
RL_UPSAMPLE(trilinear, 3)
#undef RL_UPSAMPLE
#define RL_UPSAMPLE(n)                                                                \
  Tensor upsample_nearest##n##d_backward(const Tensor& grad, IntArrayRef output_size, \
                                         IntArrayRef input_size, RL_SCALES_##n) {     \
    return gradient_by_size(grad, input_size, [&](const Tensor& x) {                  \
      return upsample_nearest##n##d(x, output_size, RL_GIVEN_##n);                    \
    });                                                                               \
  }
RL_UPSAMPLE(1)
RL_UPSAMPLE(2)
RL_UPSAMPLE(3)
#undef RL_UPSAMPLE

}  // namespace rushlight
