// Distances above their kernel, their derivatives, and shuffled images.
#include <cmath>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"

namespace rushlight {

namespace {

OutSpec check_pairs(const Tensor& x1, const Tensor& x2, double p) {
  RL_CHECK(x1.dim() == 3 && x2.dim() == 3 && x1.size(0) == x2.size(0) && x1.size(2) == x2.size(2),
           "cdist: expected batches of matrices with rows of one length, got ", x1.sizes(), " and ",
           x2.sizes());
  RL_CHECK(x1.dtype() == x2.dtype(), "cdist: expected one dtype, got ", x1.dtype(), " and ",
           x2.dtype());
  check_floating("cdist", x1);
  RL_CHECK(p >= 0, "cdist only supports non-negative p values");
  return {{x1.size(0), x1.size(1), x2.size(1)}, x1.dtype()};
}

}  // namespace

OutSpec shape::_cdist(Tensor& x1, Tensor& x2, double& p) {
  const OutSpec spec = check_pairs(x1, x2, p);
  x1 = contiguous_raw(x1);
  x2 = contiguous_raw(x2);
  return spec;
}

OutSpec shape::_cdist_backward(Tensor& grad, Tensor& x1, Tensor& x2, double& p, Tensor& cdist) {
  const OutSpec spec = check_pairs(x1, x2, p);
  for (Tensor* t : {&grad, &cdist}) {
    RL_CHECK(t->sizes() == IntArrayRef(spec.sizes) && t->dtype() == spec.dtype,
             "cdist backward: expected distances of shape ", IntArrayRef(spec.sizes), ", got ",
             t->sizes());
  }
  for (Tensor* t : {&grad, &x1, &x2, &cdist}) {
    *t = contiguous_raw(*t);
  }
  return {x1.sizes(), x1.dtype()};
}

namespace {

// For x1: the sum over the other's rows of grad * d(distance)/d(x1).
Tensor cdist_gradient(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& distance) {
  const bool plain = !forward::is_differentiated(grad, x1, x2);
  constexpr int64_t worth_a_product = 32;  // numbers in a row
  const bool exact = x1.dtype() == kFloat32 || x1.dtype() == kFloat64;
  if (plain && p == 2 && exact && x1.size(2) > worth_a_product) {
    // The sum over j of (a_i - b_j) g_ij / d_ij, of points that are counted from among them: far
    // away the two terms would cancel.
    const Tensor scale = grad.div(distance).masked_fill(distance.eq(0), 0);
    const Tensor origin =
        x2.size(1) == 0 ? x2.sum(DimVector{1}, true) : x2.mean(DimVector{1}, true);
    return x1.sub(origin).mul(scale.sum(DimVector{2}, true)).sub(scale.matmul(x2.sub(origin)));
  }
  // Powers of distances that overflow or vanish are left to shares, below.
  const bool by_powers = p != 0 && p != 1 && p != 2 && !std::isinf(p);
  if (plain && (!by_powers || are_moderate(distance, moderate_sizes(x1.dtype(), p - 1)))) {
    return rushlight::_cdist_backward(grad, x1, x2, p, distance);
  }
  const Tensor apart = x1.unsqueeze(2).sub(x2.unsqueeze(1));
  const Tensor size = apart.abs();
  const Tensor zero = distance.eq(0);
  Tensor slope;
  if (p == 0) {
    slope = apart.mul(0);
  } else if (p == 1) {
    slope = apart.sign();
  } else if (std::isinf(p)) {
    slope = apart.sign().mul(size.eq(distance.unsqueeze(-1)).to(apart.dtype()));
  } else {
    // A base of one where the distance is zero, and a share where the difference is: powers have
    // slopes there.
    const Tensor share = size.div(distance.masked_fill(zero, 1).unsqueeze(-1));
    const Tensor power = share.masked_fill(size.eq(0), 1).pow(p - 1).masked_fill(size.eq(0), 0);
    slope = apart.sign().mul(power);
  }
  return slope.mul(grad.masked_fill(zero, 0).unsqueeze(-1)).sum(DimVector{2});
}

}  // namespace

std::tuple<Tensor, Tensor> cdist_gradients(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                           double p, const Tensor& distance,
                                           std::array<bool, 2> mask) {
  return {mask[0] ? cdist_gradient(grad, x1, x2, p, distance) : Tensor(),
          mask[1] ? cdist_gradient(grad.transpose(1, 2), x2, x1, p, distance.transpose(1, 2))
                  : Tensor()};
}

namespace composite {

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType common = promote_types(x1.dtype(), x2.dtype());
  RL_CHECK(is_floating(common) || is_complex(common),
           "cosine_similarity: expected common dtype to be floating point, not ", common);
  RL_CHECK(eps >= 0, "cosine_similarity: eps must be non-negative, got: ", eps);
  const DimVector sizes = broadcast_sizes(x1.sizes(), x2.sizes());
  // Sums of 16 bits are not rounded; half does not even hold the products of numbers whose lengths
  // it holds.
  const ScalarType wide = compute_dtype(common);
  const std::optional<ScalarType> summed =
      wide == common ? std::nullopt : std::optional<ScalarType>(wide);
  const Tensor a = x1.to(common == kHalf ? wide : common).expand(sizes);
  const Tensor b = x2.to(common == kHalf ? wide : common).expand(sizes);
  const auto length = [&](const Tensor& t) {
    return rushlight::linalg_vector_norm(t, 2, DimVector{dim}, false, summed).clamp_min(eps);
  };
  const Tensor length_a = length(a);
  const Tensor length_b = length(b);
  const Sizes squared = moderate_sizes(wide, 2);
  const bool plain = (are_moderate(length_a, squared) && are_moderate(length_b, squared)) ||
                     a.dim() == 0 || a.size(dim) == 0;
  if (plain) {
    const Tensor products = a.mul(b).sum(DimVector{dim}, false, summed);
    return products.div(length_a).div(length_b).to(common);
  }
  // Vectors whose products would overflow or vanish are taken in units of their largest element.
  const auto in_units = [&](const Tensor& t) {
    const Tensor unit = unit_of(t, DimVector{dim}, squared);
    const Tensor scaled = t.to(wide).div(unit);
    const Tensor size = rushlight::linalg_vector_norm(scaled, 2, DimVector{dim}, true);
    return scaled.div(size.clamp_min(unit.reciprocal().mul(Scalar(eps))));
  };
  return in_units(a).mul(in_units(b)).sum(DimVector{dim}).to(common);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  // Vectors run along the last dimension of the one with more dimensions.
  const int64_t last = std::max(x1.dim(), x2.dim()) - 1;
  return x1.sub(x2).add(eps).norm(Scalar(p), DimVector{last}, keepdim);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  RL_CHECK(is_floating(x1.dtype()),
           "cdist only supports floating-point dtypes, X1 got: ", x1.dtype());
  RL_CHECK(is_floating(x2.dtype()),
           "cdist only supports floating-point dtypes, X2 got: ", x2.dtype());
  RL_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  RL_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  RL_CHECK(x1.size(-1) == x2.size(-1),
           "cdist: rows of both sides must have the same number of columns, but have ", x1.size(-1),
           " and ", x2.size(-1));
  RL_CHECK(p >= 0, "cdist only supports non-negative p values");
  const int64_t mode = compute_mode.value_or(0);
  RL_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
  const auto before = [](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2));
  };
  const DimVector batch = broadcast_sizes(before(x1), before(x2));
  const auto prepare = [&](const Tensor& t) {
    DimVector sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return t.expand(sizes).reshape({product(batch), t.size(-2), t.size(-1)});
  };
  const Tensor a = prepare(x1);
  const Tensor b = prepare(x2);
  const int64_t rows = x1.size(-2);
  const int64_t others = x2.size(-2);
  DimVector sizes = batch;
  sizes.push_back(rows);
  sizes.push_back(others);
  // Rows of this length are worth a product, which rounds more where distances are small.
  constexpr int64_t long_row = 256;
  const bool by_product =
      p == 2 && mode != 2 && (mode == 1 || ((rows > 25 || others > 25) && x1.size(-1) > long_row));
  if (!by_product) {
    return rushlight::_cdist(a, b, p).reshape(sizes);
  }
  if (x1.dtype() != compute_dtype(x1.dtype())) {  // differences of squares want digits
    const ScalarType wide = compute_dtype(x1.dtype());
    return composite::cdist(x1.to(wide), x2.to(wide), p, compute_mode).to(x1.dtype());
  }
  // |a|² + |b|² - 2 a·b in one product.
  const Tensor a2 = a.mul(a).sum(DimVector{-1}, true);
  const Tensor b2 = b.mul(b).sum(DimVector{-1}, true);
  const auto has_squares = [](const Tensor& t, const Tensor& squares) {
    const ScalarType dtype = t.dtype();
    return are_moderate(squares, moderate_sizes(dtype, 1), false) ||
           are_moderate(t, moderate_sizes(dtype, 2));
  };
  if (a.device() == kCPU && !(has_squares(a, a2) && has_squares(b, b2))) {
    return rushlight::_cdist(a, b, p).reshape(sizes);
  }
  const Tensor left = rushlight::cat({a.mul(-2), a2, rushlight::ones_like(a2)}, -1);
  const Tensor right = rushlight::cat({b, rushlight::ones_like(b2), b2}, -1);
  const Tensor squares = left.matmul(right.transpose(-2, -1));
  // Where rounding leaves nothing, the distance is zero and has no slope.
  const Tensor none = squares.detach().le(0);
  return squares.masked_fill(none, 1).sqrt().masked_fill(none, 0).reshape(sizes);
}

Tensor pdist(const Tensor& self, double p) {
  RL_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  RL_CHECK(is_floating(self.dtype()), "pdist only supports floating-point dtypes");
  RL_CHECK(p >= 0, "pdist only supports non-negative p values");
  const int64_t n = self.size(0);
  const Tensor all = rushlight::_cdist(self.unsqueeze(0), self.unsqueeze(0), p);
  const TensorOptions here = TensorOptions().device(self.device());
  if (self.device() == kCPU && batching::level_of(self) == 0) {
    return all.squeeze(0).masked_select(rushlight::ones({n, n}, here.dtype(kBool)).triu(1));
  }
  // Elsewhere a size that the values of a mask decide is unknown, or takes a wait.
  const Tensor pairs = rushlight::triu_indices(n, n, 1, here.dtype(kInt64));
  const Tensor places = pairs.select(0, 0).mul(Scalar(n)).add(pairs.select(0, 1));
  return all.reshape({-1}).index_select(0, places);
}

// ---- shuffles ----

namespace {

DimVector leading_dims(const Tensor& t, int64_t kept) {
  return DimVector(t.sizes().slice(0, static_cast<size_t>(t.dim() - kept)));
}

DimVector append_dims(const DimVector& first, std::initializer_list<int64_t> rest) {
  DimVector all = first;
  for (const int64_t n : rest) {
    all.push_back(n);
  }
  return all;
}

// The last dims of a tensor in a new order, those before as they are.
Tensor permute_last(const Tensor& t, std::initializer_list<int64_t> order) {
  const int64_t before = t.dim() - static_cast<int64_t>(order.size());
  DimVector dims;
  for (int64_t d = 0; d < before; d++) {
    dims.push_back(d);
  }
  for (const int64_t d : order) {
    dims.push_back(before + d);
  }
  return t.permute(dims);
}

void check_picture(const char* op, const Tensor& self) {
  RL_CHECK(self.dim() >= 3, op,
           " takes pictures (..., C, H, W): input must have at least 3 dimensions, not ",
           self.dim());
}

}  // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  const int64_t r = upscale_factor;
  check_picture("pixel_shuffle", self);
  RL_CHECK(r > 0, "pixel_shuffle expects a positive upscale_factor, but got ", r);
  const int64_t c = self.size(-3);
  RL_CHECK(
      r < (int64_t{1} << 31) && c % (r * r) == 0,
      "pixel_shuffle expects channels, input.size(-3), divisible by the square of upscale_factor, ",
      r < (int64_t{1} << 31) ? r * r : r, ", but got ", c);
  const int64_t h = self.size(-2);
  const int64_t w = self.size(-1);
  const DimVector before = leading_dims(self, 3);
  const Tensor parts = self.reshape(append_dims(before, {c / (r * r), r, r, h, w}));
  return permute_last(parts, {0, 3, 1, 4, 2})
      .reshape(append_dims(before, {c / (r * r), h * r, w * r}));
}

Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  const int64_t r = downscale_factor;
  check_picture("pixel_unshuffle", self);
  RL_CHECK(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
  const int64_t h = self.size(-2);
  const int64_t w = self.size(-1);
  for (const auto& [name, n] : {std::pair("height", h), std::pair("width", w)}) {
    RL_CHECK(n % r == 0, "pixel_unshuffle expects ", name, " to be divisible by downscale_factor, ",
             r, ", but got ", n);
  }
  const int64_t c = self.size(-3);
  const DimVector before = leading_dims(self, 3);
  const Tensor parts = self.reshape(append_dims(before, {c, h / r, r, w / r, r}));
  return permute_last(parts, {0, 2, 4, 1, 3})
      .reshape(append_dims(before, {c * r * r, h / r, w / r}));
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  RL_CHECK(self.dim() > 2,
           "channel_shuffle takes (N, C, ...): it expects input with > 2 dims, not of shape ",
           self.sizes());
  const int64_t c = self.size(1);
  RL_CHECK(groups > 0, "channel_shuffle: the number of groups must be positive, but is ", groups);
  RL_CHECK(c % groups == 0, "channel_shuffle: ", c, " channels do not divide into ", groups,
           " groups: the number must be divisible by groups");
  DimVector sizes = {self.size(0), groups, c / groups};
  for (int64_t d = 2; d < self.dim(); d++) {
    sizes.push_back(self.size(d));
  }
  return self.reshape(sizes).transpose(1, 2).reshape(self.sizes());
}

Tensor native_channel_shuffle(const Tensor& self, int64_t groups) {
  return composite::channel_shuffle(self, groups);
}

}  // namespace composite
}  // namespace rushlight
