// Norms, determinants' logarithms, condition numbers, powers and functions of matrices, products,
// over the factorisations.
#include <algorithm>
#include <cmath>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/lapack.h"

namespace rushlight::composite {

namespace {

Tensor number_like(const Tensor& like, double value) {
  return rushlight::full({}, value, TensorOptions(to_real(like.dtype())).device(like.device()));
}

Tensor unit_like(const Tensor& like, int64_t n) { return rushlight::eye(n, {}, like.options()); }

}  // namespace

// ---- numbers about a matrix ----

Tensor det(const Tensor& self) { return rushlight::linalg_det(self); }

std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return rushlight::linalg_slogdet(self); }

Tensor logdet(const Tensor& self) {
  check_square("logdet", self);
  const auto [sign, size] = rushlight::linalg_slogdet(self);
  if (self.is_complex()) {
    return sign.log() + size;
  }
  return where(sign.eq(-1), number_like(size, NAN), size);
}

namespace {

// Both dimensions of the matrices, wrapped; others keep their order.
std::array<int64_t, 2> matrix_dims(const Tensor& self, IntArrayRef dim) {
  std::string given;
  for (size_t i = 0; i < dim.size(); i++) {
    given += str(i == 0 ? "" : " ", dim[i]);
  }
  RL_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", given);
  const int64_t a = wrap_dim(dim[0], self.dim());
  const int64_t b = wrap_dim(dim[1], self.dim());
  RL_CHECK(a != b, "linalg.matrix_norm: dims must be different. Got (", dim[0], ", ", dim[1], ")");
  return {a, b};
}

void check_matrix_norm(const Tensor& self) {
  check_linear_dtype("linalg.matrix_norm", self, true);
  RL_CHECK(self.dim() >= 2, "linalg.matrix_norm: A must have at least 2 dimensions");
}

// Singular values of the matrices in two dimensions, reduced by f.
template <class F>
Tensor over_singular_values(const Tensor& self, std::array<int64_t, 2> dims, bool keepdim,
                            const F& f) {
  const Tensor matrices = self.movedim(IntArrayRef(dims.data(), 2), {-2, -1});
  Tensor out = f(rushlight::linalg_svdvals(matrices));
  if (keepdim) {
    out = out.unsqueeze(std::min(dims[0], dims[1])).unsqueeze(std::max(dims[0], dims[1]));
  }
  return out;
}

Tensor in_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype.has_value() ? self.to(*dtype) : self;
}

// Of numbers that are not negative; 0 where there are none.
Tensor max_along(const Tensor& t, int64_t dim, bool keepdim) {
  return t.size(dim) == 0 ? t.sum(dim, keepdim) : t.amax(dim, keepdim);
}

}  // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  check_matrix_norm(self);
  const auto dims = matrix_dims(self, dim);
  const double p = ord.as<double>();
  RL_CHECK(std::abs(p) == 1 || std::abs(p) == 2 || std::isinf(p), "linalg.matrix_norm: Order ", ord,
           " not supported.");
  const Tensor a = in_dtype(self, dtype);
  if (std::abs(p) == 2) {
    return over_singular_values(a, dims, keepdim, [&](const Tensor& s) {
      return p > 0 ? max_along(s, -1, false) : s.amin(-1);
    });
  }
  // Sums over rows (1) or columns (inf), then the largest or smallest of them.
  const int64_t summed = std::isinf(p) ? dims[1] : dims[0];
  int64_t left = std::isinf(p) ? dims[0] : dims[1];
  const Tensor sums = rushlight::linalg_vector_norm(a, 1, summed, keepdim);
  if (!keepdim && left > summed) {
    left--;
  }
  return p > 0 ? max_along(sums, left, keepdim) : sums.amin(left, keepdim);
}

Tensor linalg_matrix_norm_str_ord(const Tensor& self, std::string_view ord, IntArrayRef dim,
                                  bool keepdim, std::optional<ScalarType> dtype) {
  RL_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  check_matrix_norm(self);
  const auto dims = matrix_dims(self, dim);
  if (ord == "fro") {
    return rushlight::linalg_vector_norm(self, 2, IntArrayRef(dims.data(), 2), keepdim, dtype);
  }
  return over_singular_values(in_dtype(self, dtype), dims, keepdim,
                              [](const Tensor& s) { return s.sum(-1); });
}

namespace {

void check_norm_rank(const Tensor& self) {
  RL_CHECK(self.dim() == 1 || self.dim() == 2,
           "linalg.norm: with ord and without dim the input must be 1D or 2D, but is ", self.dim(),
           "D");
}

}  // namespace

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  if (!dim.has_value() && ord.has_value()) {
    check_norm_rank(self);
  }
  const bool matrices = dim.has_value() ? dim.value().size() == 2 : self.dim() == 2;
  RL_CHECK(!dim.has_value() || matrices || dim.value().size() == 1,
           "linalg.norm: dim must be of length 1 or 2, but is ", *dim);
  if (ord.has_value() && matrices) {
    const DimVector both = dim.has_value() ? DimVector(dim.value()) : DimVector{0, 1};
    return composite::linalg_matrix_norm(self, *ord, both, keepdim, dtype);
  }
  return rushlight::linalg_vector_norm(self, ord.value_or(Scalar(2)), dim, keepdim, dtype);
}

Tensor linalg_norm_ord_str(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim,
                           bool keepdim, std::optional<ScalarType> dtype) {
  if (!dim.has_value()) {
    check_norm_rank(self);
  }
  const DimVector both = dim.has_value() ? DimVector(dim.value()) : DimVector{0, 1};
  return composite::linalg_matrix_norm_str_ord(self, ord, both, keepdim, dtype);
}

Tensor frobenius_norm(const Tensor& self, IntArrayRef dim, bool keepdim) {
  RL_CHECK(dim.size() <= 2, "Expected at most 2 dimensions, but got ", dim.size(),
           " dimensions instead.");
  return rushlight::linalg_vector_norm(self, 2, dim, keepdim);
}

Tensor nuclear_norm(const Tensor& self, bool keepdim) {
  return composite::linalg_matrix_norm_str_ord(self, "nuc", {-2, -1}, keepdim, {});
}

Tensor nuclear_norm_dim(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return composite::linalg_matrix_norm_str_ord(self, "nuc", dim, keepdim, {});
}

namespace {

template <class Norm>
Tensor condition(const Tensor& self, const Norm& norm) {
  check_square("linalg.cond", self);
  const Tensor size = norm(self);
  const auto [inverse, info] = rushlight::linalg_inv_ex(self, false);
  const Tensor singular = info.ne(0);
  // A singular matrix is infinitely far from having an inverse.
  const Tensor back = where(singular.unsqueeze(-1).unsqueeze(-1), Scalar(0), inverse);
  const Tensor value = size * norm(back);
  return where(singular, rushlight::full({}, INFINITY, value.options()), value);
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  RL_CHECK(self.dim() >= 2, "linalg.cond: a matrix must have at least 2 dimensions, not ",
           self.dim());
  const double order = p.has_value() ? p->as<double>() : 2;
  RL_CHECK(std::abs(order) == 1 || std::abs(order) == 2 || std::isinf(order),
           "linalg.cond got an invalid norm type: ", p.value_or(Scalar(2)));
  if (self.numel() == 0) {
    return rushlight::zeros(leading_sizes(self),
                            TensorOptions(to_real(self.dtype())).device(self.device()));
  }
  if (std::abs(order) == 2) {
    const Tensor s = rushlight::linalg_svdvals(self);
    const Tensor high = s.select(-1, 0);
    const Tensor low = s.select(-1, s.size(-1) - 1);
    return order > 0 ? high / low : low / high;
  }
  return condition(self, [&](const Tensor& a) {
    return composite::linalg_matrix_norm(a, order, {-2, -1}, false, {});
  });
}

Tensor linalg_cond_p_str(const Tensor& self, std::string_view p) {
  RL_CHECK(self.dim() >= 2, "linalg.cond: a matrix must have at least 2 dimensions, not ",
           self.dim());
  RL_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (self.numel() == 0) {
    return rushlight::zeros(leading_sizes(self),
                            TensorOptions(to_real(self.dtype())).device(self.device()));
  }
  return condition(self, [&](const Tensor& a) {
    return composite::linalg_matrix_norm_str_ord(a, p, {-2, -1}, false, {});
  });
}

// ---- powers, functions, products ----

Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  RL_CHECK(self.dim() >= 2, "linalg.matrix_power: A must have at least 2 dimensions, not ",
           self.dim());
  RL_CHECK(self.size(-1) == self.size(-2),
           "linalg.matrix_power: A must be batches of square matrices, not of ", self.size(-2),
           " x ", self.size(-1));
  if (n == 0) {
    return self.clone().copy_(unit_like(self, self.size(-1)));
  }
  Tensor base = n < 0 ? composite::linalg_inv(self) : self;
  uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  if (left == 1) {
    return base.clone();
  }
  Tensor result;
  for (; left != 0; left >>= 1) {
    if ((left & 1) != 0) {
      result = result.defined() ? result.matmul(base) : base;
    }
    if (left > 1) {
      base = base.matmul(base);
    }
  }
  return result;
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  return composite::linalg_matrix_power(self, n);
}

Tensor linalg_matrix_exp(const Tensor& self) {
  if (self.dtype() == kFloat16 || self.dtype() == kBFloat16) {
    return composite::linalg_matrix_exp(self.to(kFloat32)).to(self.dtype());
  }
  check_square("linalg.matrix_exp", self);
  const int64_t n = self.size(-1);
  if (self.numel() == 0) {
    return self.clone();
  }
  if (n == 1) {
    return self.exp();
  }
  // Scaled until the 1-norm is at most 5.37, where the [13/13] Pade approximant is exact in double
  // precision (Higham 2005), then squared as often. Each matrix has its own number of squarings.
  Tensor doublings;
  int64_t most = 0;
  if (!self.is_meta()) {
    const NoGradGuard no_grad;
    const Tensor size = self.detach().abs().sum(-2).amax(-1);
    const Tensor wanted = (size / 5.371920351148152).log2().ceil().clamp(0, 1100);
    doublings = where(size.isfinite(), wanted, 0).unsqueeze(-1).unsqueeze(-1);
    most = static_cast<int64_t>(batching::all_of(doublings).max().item<double>());
  }
  const Tensor a = most == 0 ? self : self * (-doublings).exp2();
  constexpr double b[] = {1.0,
                          0.5,
                          0.12,
                          1.833333333333333333e-2,
                          1.992753623188405797e-3,
                          1.630434782608695652e-4,
                          1.035196687370600414e-5,
                          5.175983436853002070e-7,
                          2.043151356652500817e-8,
                          6.306022705717595115e-10,
                          1.483770048404140027e-11,
                          2.529153491597965955e-13,
                          2.810170546219962172e-15,
                          1.544049750670308886e-17};
  const Tensor unit = unit_like(self, n);
  const Tensor a2 = a.matmul(a);
  const Tensor a4 = a2.matmul(a2);
  const Tensor a6 = a4.matmul(a2);
  const Tensor odd = a.matmul(a6.matmul(a6 * b[13] + a4 * b[11] + a2 * b[9]) + a6 * b[7] +
                              a4 * b[5] + a2 * b[3] + unit * b[1]);
  const Tensor even =
      a6.matmul(a6 * b[12] + a4 * b[10] + a2 * b[8]) + a6 * b[6] + a4 * b[4] + a2 * b[2] + unit;
  Tensor result = std::get<0>(rushlight::linalg_solve_ex(even - odd, even + odd));
  for (int64_t i = 0; i < most; i++) {
    const Tensor squared = result.matmul(result);
    result =
        self.dim() == 2 && !is_special(self) ? squared : where(doublings.gt(i), squared, result);
  }
  return result;
}

Tensor matrix_exp(const Tensor& self) { return composite::linalg_matrix_exp(self); }

Tensor linalg_multi_dot(TensorList tensors) {
  const size_t n = tensors.size();
  RL_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1;
  const bool column = matrices.back().dim() == 1;
  for (const auto& [which, t] :
       {std::pair("first", &matrices.front()), std::pair("last", &matrices.back())}) {
    RL_CHECK(t->dim() == 1 || t->dim() == 2, "multi_dot(): the ", which,
             " tensor must be 1D or 2D, but is ", t->dim(), "D");
  }
  for (size_t i = 1; i + 1 < n; i++) {
    RL_CHECK(matrices[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ",
             matrices[i].dim(), "D");
  }
  matrices.front() = row ? matrices.front().unsqueeze(0) : matrices.front();
  matrices.back() = column ? matrices.back().unsqueeze(1) : matrices.back();
  for (size_t i = 0; i + 1 < n; i++) {
    RL_CHECK(matrices[i].dtype() == matrices[i + 1].dtype(),
             "multi_dot(): expected tensors of one dtype, but tensor 0 is ",
             enum_name(matrices[0].dtype()), " and tensor ", i + 1, " ",
             enum_name(matrices[i + 1].dtype()));
    RL_CHECK(matrices[i].size(1) == matrices[i + 1].size(0), "linalg.multi_dot: factor ", i,
             " of shape ", matrices[i].sizes(), " and the next one of ", matrices[i + 1].sizes(),
             " cannot be multiplied");
  }
  Tensor out = rushlight::chain_matmul(matrices);
  out = column ? out.squeeze(1) : out;
  return row ? out.squeeze(0) : out;
}

Tensor linalg_matmul(const Tensor& self, const Tensor& other) { return self.matmul(other); }

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  return (x.conj() * y).sum(dim);
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  RL_CHECK(self.dim() == other.dim(), "linalg.cross: both inputs need as many dimensions, not ",
           self.dim(), " and ", other.dim());
  RL_CHECK_INDEX(self.dim() > 0, "linalg.cross: a 0-d tensor has no dimension ", dim);
  const int64_t d = wrap_dim(dim, self.dim());
  RL_CHECK(self.size(d) == 3 && other.size(d) == 3, "linalg.cross: inputs dimension ", dim,
           " must have length 3. Got ", self.size(d), " and ", other.size(d));
  const DimVector sizes = broadcast_sizes(self.sizes(), other.sizes());
  const Tensor a = self.expand(sizes);
  const Tensor b = other.expand(sizes);
  return a.roll(-1, d) * b.roll(-2, d) - a.roll(-2, d) * b.roll(-1, d);
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim.has_value()) {
    return composite::linalg_cross(self, other, *dim);
  }
  for (int64_t d = 0; d < self.dim(); d++) {
    if (self.size(d) == 3) {
      static bool warned = false;
      warn_once(
          warned,
          "torch.cross without specifying the dim arg is deprecated: it takes the first dimension "
          "of size 3. Pass dim, or call torch.linalg.cross, which takes the last one.");
      return composite::linalg_cross(self, other, d);
    }
  }
  throw Error("no dimension of size 3 in input");
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  RL_CHECK(x.dtype() != kBool, "linalg.vander: powers of ", enum_name(x.dtype()),
           " are not supported: convert it to numbers");
  RL_CHECK(x.dim() > 0 || N.has_value(), "N must be greater than 1.");
  const int64_t n = N.value_or(x.dim() > 0 ? x.size(-1) : 1);
  RL_CHECK(n > 1, "N must be greater than 1.");
  DimVector sizes(x.sizes());
  sizes.push_back(n - 1);
  const Tensor powers = x.unsqueeze(-1).expand(sizes).cumprod(-1);
  sizes.back() = 1;
  return cat({rushlight::ones(sizes, TensorOptions(powers.dtype()).device(x.device())), powers},
             -1);
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  RL_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t n = N.value_or(x.size(0));
  RL_CHECK(n >= 0, "N must be non-negative.");
  const ScalarType dtype = is_integral(x.dtype()) || x.dtype() == kBool ? kInt64 : x.dtype();
  const Tensor wide = x.to(dtype);
  if (n == 0) {
    return rushlight::empty({x.size(0), 0}, TensorOptions(dtype).device(x.device()));
  }
  const Tensor one = rushlight::ones({x.size(0), 1}, TensorOptions(dtype).device(x.device()));
  if (n == 1) {
    return one;
  }
  const Tensor powers = wide.unsqueeze(-1).expand({x.size(0), n - 1}).cumprod(-1);
  const Tensor all = cat({one, powers}, -1);
  return increasing ? all : all.flip(-1);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t dims = std::max(self.dim(), other.dim());
  DimVector a;
  DimVector b;
  DimVector out;
  for (int64_t d = 0; d < dims; d++) {
    const int64_t i = d - (dims - self.dim());
    const int64_t j = d - (dims - other.dim());
    const int64_t m = i >= 0 ? self.size(i) : 1;
    const int64_t n = j >= 0 ? other.size(j) : 1;
    a.push_back(m);
    a.push_back(1);
    b.push_back(1);
    b.push_back(n);
    out.push_back(m * n);
  }
  return (self.reshape(a) * other.reshape(b)).reshape(out);
}

Tensor trace(const Tensor& self) {
  RL_CHECK(self.dim() == 2, "trace: expected a matrix, not a tensor of ", self.dim(),
           " dimensions");
  return self.diagonal().sum();
}

Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return A.diagonal(offset, dim1, dim2);
}

}  // namespace rushlight::composite
