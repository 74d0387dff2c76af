// Gradients of ops by libtorch's inner names.
#include <rushlight/internal_backward.h>

#include <rushlight/factories.h>
#include <rushlight/internal_functions.h>

#include "core/op_support.h"
#include "ops/gradients.h"

namespace rushlight {

// ---- elements ----

Tensor elu_backward(const Tensor& grad, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  if (!is_result) {
    return elu_backward(grad, self_or_result, alpha, scale, input_scale);
  }
  // Below zero: scale * alpha * (exp(x * input_scale) - 1).
  const Tensor below = (self_or_result + scale.toDouble() * alpha.toDouble()) * input_scale;
  return grad * where(self_or_result > 0, full_like(below, scale.toDouble()), below);
}
Tensor leaky_relu_backward(const Tensor& grad, const Tensor& self, const Scalar& negative_slope,
                           bool self_is_result) {
  RL_CHECK(!self_is_result || negative_slope.toDouble() >= 0,
           "leaky_relu_backward: a result tells no sign where negative_slope is ",
           negative_slope.toDouble());
  return leaky_relu_backward(grad, self, negative_slope);
}
Tensor rrelu_with_noise_backward(const Tensor& grad, const Tensor& self, const Tensor& noise,
                                 const Scalar& lower, const Scalar& upper, bool training,
                                 bool self_is_result) {
  const double middle = (lower.toDouble() + upper.toDouble()) / 2;
  return training ? grad * noise : leaky_relu_backward(grad, self, middle, self_is_result);
}
Tensor infinitely_differentiable_gelu_backward(const Tensor& grad, const Tensor& self) {
  return gradient_of(grad, self, [](const Tensor& x) { return gelu(x); });
}
std::tuple<Tensor, Tensor> _prelu_kernel_backward(const Tensor& grad, const Tensor& self,
                                                  const Tensor& weight) {
  const Tensor above = self > 0;
  return {where(above, grad, weight * grad), where(above, zeros_like(grad), self * grad)};
}
Tensor glu_backward_jvp(const Tensor& grad_x, const Tensor& grad_glu, const Tensor& x,
                        const Tensor& dgrad_glu, const Tensor& dx, int64_t dim) {
  const std::vector<Tensor> parts = x.chunk(2, dim), tangents = dx.chunk(2, dim);
  const Tensor gate = sigmoid(parts[1]);
  const Tensor slope = gate * (1 - gate);  // of the gate
  const Tensor to_first = dgrad_glu * gate + grad_glu * slope * tangents[1];
  const Tensor to_gate =
      (dgrad_glu * parts[0] + grad_glu * tangents[0]) * slope +
      grad_glu * parts[0] * slope * (1 - 2 * gate) * tangents[1];
  return cat({to_first, to_gate}, dim).to(grad_x.dtype());
}
Tensor _masked_softmax_backward(const Tensor& grad, const Tensor& output, const Tensor& mask,
                                std::optional<int64_t> dim) {
  const Tensor kept = grad.masked_fill(mask.to(kBool), 0);
  const Tensor weighted = kept * output;
  return weighted - output * weighted.sum(dim.value_or(output.dim() - 1), true);
}

// ---- indices ----

Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices,
                          int64_t dim) {
  return zeros(input.sizes(), input.options()).scatter_add(dim, indices, grad);
}
Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  const Tensor taken = grad.masked_select(mask);
  const int64_t n = product(sizes);
  const Tensor rest = zeros({std::max<int64_t>(n - taken.numel(), 0)}, grad.options());
  return cat({taken.narrow(0, 0, std::min(n, taken.numel())), rest}).view(sizes);
}
Tensor _gather_sparse_backward(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& grad) {
  return gather_backward(grad, self, dim, index, true);
}
std::tuple<Tensor, Tensor> _grid_sampler_2d_cpu_fallback_backward(
    const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
    int64_t padding_mode, bool align_corners) {
  return grid_sampler_2d_backward(grad, input, grid, interpolation_mode, padding_mode,
                                  align_corners, {true, true});
}
// Each gradient goes to the element that its index names.
#define RL_BY_DIMS(n)                                                                            \
  Tensor fractional_max_pool##n##d_backward(const Tensor& grad, const Tensor& self,              \
                                            IntArrayRef /*kernel_size*/,                         \
                                            IntArrayRef /*output_size*/, const Tensor& indices) { \
    const Tensor flat = zeros_like(self).flatten(-n);                                            \
    return flat.scatter_add(-1, indices.flatten(-n), grad.flatten(-n)).view(self.sizes());       \
  }
RL_BY_DIMS(2)
RL_BY_DIMS(3)
#undef RL_BY_DIMS

// ---- distances, segments, weights ----

Tensor _pdist_backward(const Tensor& grad, const Tensor& self, double p,
                       const Tensor& /*pdist: computed again*/) {
  return gradient_of(grad, self, [&](const Tensor& x) { return pdist(x, p); });
}
Tensor _segment_reduce_backward(const Tensor& grad, const Tensor& /*output*/, const Tensor& data,
                                std::string_view reduce, const Tensor& lengths,
                                const Tensor& offsets, int64_t axis,
                                const std::optional<Scalar>& initial) {
  return gradient_of(grad, data, [&](const Tensor& x) {
    return segment_reduce(x, reduce, lengths, {}, offsets, axis, false, initial);
  });
}
#define RL_WEIGHT_NORM(name)                                                                   \
  std::tuple<Tensor, Tensor> _weight_norm_##name(const Tensor& grad_w, const Tensor& saved_v,  \
                                                 const Tensor& saved_g, const Tensor& /*norms*/, \
                                                 int64_t dim) {                                \
    auto [v, g] = gradients_of<2>(grad_w, {saved_v, saved_g}, {true, true}, [&](const auto& in) { \
      return _weight_norm(in[0], in[1], dim);                                                  \
    });                                                                                        \
    return {v, g};                                                                             \
  }
RL_WEIGHT_NORM(interface_backward)
RL_WEIGHT_NORM(differentiable_backward)
#undef RL_WEIGHT_NORM
std::tuple<Tensor, Tensor, Tensor> conv_tbc_backward(const Tensor& grad, const Tensor& input,
                                                     const Tensor& weight, const Tensor& bias,
                                                     int64_t pad) {
  auto [x, w, b] = gradients_of<3>(grad, {input, weight, bias}, {true, true, true},
                                   [&](const auto& in) { return conv_tbc(in[0], in[1], in[2], pad); });
  return {x, w, b};
}

// ---- embeddings ----

Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq) {
  return embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq, true);
}

namespace {

enum Mode : int64_t { Sum, Mean, Max };

// What each index gets of its bag's gradient; none for padding.
Tensor gradient_of_indices(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                           const Tensor& bag_size, int64_t num_weights, bool scale_grad_by_freq,
                           int64_t mode, const Tensor& per_sample_weights, int64_t padding_idx) {
  Tensor rows = grad.index_select(0, offset2bag);
  if (mode == Mean) {
    const Tensor sizes = bag_size.clamp_min(1).index_select(0, offset2bag);
    rows = rows / sizes.unsqueeze(1).to(rows.dtype());
  }
  if (per_sample_weights.defined()) {
    rows = rows * per_sample_weights.unsqueeze(1);
  }
  if (scale_grad_by_freq) {
    const Tensor counts = bincount(indices, {}, num_weights).index_select(0, indices);
    rows = rows / counts.unsqueeze(1).to(rows.dtype());
  }
  return padding_idx < 0 ? rows : rows.masked_fill((indices == padding_idx).unsqueeze(1), 0);
}

}  // namespace

Tensor _embedding_bag_dense_backward(const Tensor& grad, const Tensor& indices,
                                     const Tensor& offset2bag, const Tensor& bag_size,
                                     const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode,
                                     const Tensor& per_sample_weights, int64_t padding_idx) {
  const Tensor out = zeros({num_weights, grad.size(1)}, grad.options());
  if (mode == Max) {
    // An empty bag has no largest element.
    const Tensor found = maximum_indices >= 0;
    return out.scatter_add(0, maximum_indices.clamp_min(0), grad.masked_fill(found.logical_not(), 0));
  }
  return out.index_add(0, indices,
                       gradient_of_indices(grad, indices, offset2bag, bag_size, num_weights,
                                           scale_grad_by_freq, mode, per_sample_weights,
                                           padding_idx));
}
Tensor _embedding_bag_sparse_backward(const Tensor& grad, const Tensor& indices,
                                      const Tensor& /*offsets*/, const Tensor& offset2bag,
                                      const Tensor& bag_size, int64_t num_weights,
                                      bool scale_grad_by_freq, int64_t mode,
                                      const Tensor& per_sample_weights, int64_t padding_idx) {
  RL_CHECK(mode != Max, "_embedding_bag_sparse_backward: mode max has no sparse gradient");
  const Tensor rows =
      gradient_of_indices(grad, indices, offset2bag, bag_size, num_weights, scale_grad_by_freq,
                          mode, per_sample_weights, padding_idx);
  return sparse_coo_tensor(indices.unsqueeze(0), rows, {num_weights, grad.size(1)});
}
Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size,
                               const Tensor& maximum_indices, int64_t num_weights,
                               bool scale_grad_by_freq, int64_t mode, bool sparse,
                               const Tensor& per_sample_weights, int64_t padding_idx) {
  return sparse ? _embedding_bag_sparse_backward(grad, indices, offsets, offset2bag, bag_size,
                                                 num_weights, scale_grad_by_freq, mode,
                                                 per_sample_weights, padding_idx)
                : _embedding_bag_dense_backward(grad, indices, offset2bag, bag_size,
                                                maximum_indices, num_weights, scale_grad_by_freq,
                                                mode, per_sample_weights, padding_idx);
}
Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad, const Tensor& weight,
                                                  const Tensor& indices, const Tensor& /*offsets*/,
                                                  const Tensor& offset2bag, int64_t mode,
                                                  int64_t padding_idx) {
  RL_CHECK(mode == Sum,
           "_embedding_bag_per_sample_weights_backward: expected mode sum (0), got ", mode);
  const Tensor products =
      (weight.index_select(0, indices) * grad.index_select(0, offset2bag)).sum(1);
  return padding_idx < 0 ? products : products.masked_fill(indices == padding_idx, 0);
}

// ---- resampling ----

#define RL_ANTIALIASED(name)                                                                     \
  Tensor _upsample_##name##2d_aa_backward(const Tensor& grad, IntArrayRef output_size,           \
                                          IntArrayRef input_size, bool align_corners,            \
                                          std::optional<double> scales_h,                        \
                                          std::optional<double> scales_w) {                      \
    return gradient_by_size(grad, input_size, [&](const Tensor& x) {                             \
      return _upsample_##name##2d_aa(x, output_size, align_corners, scales_h, scales_w);         \
    });                                                                                          \
  }
RL_ANTIALIASED(bilinear)
RL_ANTIALIASED(bicubic)
#undef RL_ANTIALIASED
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size, std::optional<double> scales) {
  return gradient_by_size(grad, input_size, [&](const Tensor& x) {
    return _upsample_nearest_exact1d(x, output_size, scales);
  });
}
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size, std::optional<double> scales_h,
                                          std::optional<double> scales_w) {
  return gradient_by_size(grad, input_size, [&](const Tensor& x) {
    return _upsample_nearest_exact2d(x, output_size, scales_h, scales_w);
  });
}
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad, IntArrayRef output_size,
                                          IntArrayRef input_size, std::optional<double> scales_d,
                                          std::optional<double> scales_h,
                                          std::optional<double> scales_w) {
  return gradient_by_size(grad, input_size, [&](const Tensor& x) {
    return _upsample_nearest_exact3d(x, output_size, scales_d, scales_h, scales_w);
  });
}

Tensor to_dense_backward(const Tensor& grad, const Tensor& input, std::optional<bool> masked_grad) {
  if (input.layout() == kStrided) {
    return grad.to_dense();
  }
  return masked_grad.value_or(true) ? grad.sparse_mask(input)
                                    : grad.to_sparse(input.layout());
}

}  // namespace rushlight
