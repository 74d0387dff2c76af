// Tangents that are longer than a line; those of normalisations stand in norm.cpp.
#include "ops/tangents.h"

#include "ops/derivatives.h"

namespace rushlight {

Tensor imag_of(const Tensor& t) { return t.is_complex() ? rushlight::imag(t) : zeros_like(t); }
Tensor i_times_imag_of(const Tensor& t) {
  return t.is_complex() ? t - rushlight::real(t) : zeros_like(t);
}

Tensor gather_along(const Tensor& t, int64_t dim, const Tensor& indices, bool keepdim) {
  if (t.dim() == 0 || keepdim) {
    return t.gather(dim, indices);
  }
  return t.gather(dim, indices.unsqueeze(dim)).squeeze(dim);
}

Tensor as_strided_tangent(const Tensor& t, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  return t.as_strided(size, stride, offset - self.storage_offset() + t.storage_offset());
}

// ---- lapack ----

Tensor matrix_product(const Tensor& a, const Tensor& b, bool left) {
  return left ? a.matmul(b) : b.matmul(a);
}

Tensor triangle_tangent(const Tensor& triangle, const Tensor& triangle_t, const Tensor& solution,
                        bool upper, bool left, bool unitriangular) {
  const int64_t inside = unitriangular ? 1 : 0;
  const Tensor part = upper ? triangle_t.triu(inside) : triangle_t.tril(-inside);
  return linalg_solve_triangular(triangle, matrix_product(part, solution, left), upper, left,
                                 unitriangular);
}

// L times the lower triangle, half of its diagonal, of L^-1 dA L^-H.
Tensor cholesky_tangent(const Tensor& self_t, const Tensor& L, bool upper) {
  if (upper) {
    return cholesky_tangent(self_t, L.adjoint(), false).adjoint();
  }
  const Tensor half = linalg_solve_triangular(L, (self_t + self_t.adjoint()) / 2, false);
  const Tensor both = linalg_solve_triangular(L.adjoint(), half, true, false).tril();
  return L.matmul(both - diag_embed(both.diagonal(0, -2, -1)) / 2);
}

// Of a matrix of constant rank: along its range, and out of its row and column spaces.
Tensor pinv_tangent(const Tensor& self_t, const Tensor& self, const Tensor& inverse) {
  const Tensor turned = self_t.adjoint();
  const Tensor back = inverse.adjoint();
  const Tensor rows = turned - turned.matmul(self).matmul(inverse);
  const Tensor columns = turned - inverse.matmul(self).matmul(turned);
  return inverse.matmul(back).matmul(rows) + columns.matmul(back).matmul(inverse) -
         inverse.matmul(self_t).matmul(inverse);
}

Tensor eigh_turn(const Tensor& A_t, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  const Tensor gaps = eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1);
  const Tensor itself = eye(gaps.size(-1), {}, TensorOptions(kBool).device(gaps.device()));
  const Tensor turn = eigenvectors.adjoint().matmul(A_t).matmul(eigenvectors);
  return eigenvectors.matmul(turn / gaps.masked_fill(itself, INFINITY));
}

// ---- losses ----

Tensor multiply_weight(const Tensor& t, const Tensor& weight) {
  return weight.defined() ? t * weight : t;
}

Tensor as_channels(const Tensor& t, const Tensor& images) {
  DimVector sizes(static_cast<size_t>(images.dim()), 1);
  sizes[1] = -1;
  return t.reshape(sizes);
}
Tensor multiply_channels(const Tensor& t, const Tensor& weight) {
  return weight.defined() ? t * as_channels(weight, t) : t;
}

Tensor sum_like_loss(const Tensor& loss, const Tensor& t) {
  return loss.dim() > 0 ? t.sum(1) : t.sum();
}

// ---- resample ----

// Channels as images of their own have a gradient each.
Tensor grid_sampler_tangent(const Tensor& grid_t, const Tensor& input, const Tensor& grid,
                            int64_t mode, int64_t padding, bool align_corners) {
  const int64_t channels = input.size(1);
  const Tensor images = input.flatten(0, 1).unsqueeze(1);
  const Tensor places = grid.repeat_interleave(channels, 0);
  const Tensor ones = ones_like(grid_sampler(images, places, mode, padding, align_corners));
  const Tensor slopes = std::get<1>(
      grid_sampler_gradients(ones, images, places, mode, padding, align_corners, {false, true}));
  const Tensor found = (slopes * grid_t.repeat_interleave(channels, 0)).sum(-1);
  return found.unflatten(0, {input.size(0), channels});
}

// ---- vision ----

// Channels as images of their own have a gradient each.
Tensor deform_columns_tangent(const Tensor& offset_t, const Tensor& input, const Tensor& offset,
                              const Tensor& factor, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation) {
  const int64_t taps = kernel[0] * kernel[1];
  const int64_t batch = input.size(0);
  const int64_t channels = input.size(1);
  const auto of_channels = [&](const Tensor& t, int64_t each) {
    const int64_t groups = t.size(1) / each;
    return t.unflatten(1, {groups, each}).repeat_interleave(channels / groups, 1).flatten(0, 1);
  };
  const Tensor moved = of_channels(offset, 2 * taps);
  const Tensor kept = factor.defined() ? of_channels(factor, taps) : factor;
  const Tensor images = input.flatten(0, 1).unsqueeze(1);
  const Tensor ones =
      ones_like(_deform_columns(images, moved, kept, kernel, stride, padding, dilation));
  const Tensor slopes = std::get<1>(deform_columns_gradients(
      ones, images, moved, kept, kernel, stride, padding, dilation, {false, true, false}));
  const Tensor change = (slopes * of_channels(offset_t, 2 * taps)).unflatten(1, {taps, 2}).sum(2);
  return change.flatten(2).reshape({batch, channels * taps, offset.size(2) * offset.size(3)});
}

}  // namespace rushlight
