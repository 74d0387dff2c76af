// What is written over the factorisations: solutions, inverses, ranks and the older names. Nothing
// here touches memory. Norms and functions of matrices are in lapack_functions.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rushlight/batching.h>

#include "core/rounds.h"
#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/lapack.h"

namespace rushlight::composite {

namespace {

double epsilon(ScalarType t) {
  return to_real(t) == kFloat64 ? std::numeric_limits<double>::epsilon()
                                : std::numeric_limits<float>::epsilon();
}

Tensor number_like(const Tensor& like, double value) {
  return rushlight::full({}, value, TensorOptions(to_real(like.dtype())).device(like.device()));
}

Tensor undefined_like(const Tensor& like) { return rushlight::empty({0}, like.options()); }

Tensor unit_like(const Tensor& like, int64_t n) { return rushlight::eye(n, {}, like.options()); }

void check_multipliers(const char* name, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.size(-2) == b.size(-2), name, ": Incompatible matrix sizes: A of ", a.size(-2), " x ",
           a.size(-1), " does not go with B of ", b.size(-2), " x ", b.size(-1));
}

}  // namespace

// ---- Cholesky ----

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  const auto [L, info] = rushlight::linalg_cholesky_ex(self, upper, false);
  check_info("linalg.cholesky", Failure::Cholesky, info);
  return L;
}

Tensor cholesky(const Tensor& self, bool upper) {
  check_square("cholesky", self);
  const auto [L, info] = rushlight::linalg_cholesky_ex(self, upper, false);
  check_info("cholesky", Failure::Cholesky, info);
  return L;
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  check_matrices("cholesky_solve", self, "b");
  check_square("cholesky_solve", input2);
  check_multipliers("cholesky_solve", input2, self);
  const Tensor u = upper ? input2 : input2.adjoint();
  const Tensor y = rushlight::linalg_solve_triangular(u.adjoint(), self, false);
  return rushlight::linalg_solve_triangular(u, y, true);
}

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square("cholesky_inverse", self);
  if (!self.is_meta() && !is_special(self)) {
    const Tensor zeros = self.diagonal(0, -2, -1).eq(Scalar(0));
    if (zeros.any().item<bool>()) {
      throw LinAlgError(
          "cholesky_inverse: an element of the diagonal is 0: the input matrix is singular and has "
          "no inverse.");
    }
  }
  return composite::cholesky_solve(unit_like(self, self.size(-1)).expand(self.sizes()), self,
                                   upper);
}

// ---- LU ----

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = rushlight::linalg_lu_factor_ex(A, pivot, false);
  check_info("torch.linalg.lu_factor", Failure::Lu, info);
  return {LU, pivots};
}

std::tuple<Tensor, Tensor, Tensor> _lu_with_info(const Tensor& self, bool pivot, bool) {
  return rushlight::linalg_lu_factor_ex(self, pivot, false);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data, bool unpack_pivots) {
  RL_CHECK(LU_data.dim() >= 2,
           "lu_unpack: LU_data holds matrices and must have at least 2 dimensions");
  const int64_t m = LU_data.size(-2);
  const int64_t n = LU_data.size(-1);
  const int64_t k = std::min(m, n);
  Tensor P = undefined_like(LU_data);
  Tensor L = undefined_like(LU_data);
  Tensor U = undefined_like(LU_data);
  if (unpack_data) {
    const Tensor unit =
        rushlight::eye(m, k, TensorOptions(LU_data.dtype()).device(LU_data.device()));
    L = LU_data.narrow(-1, 0, k).tril(-1) + unit;
    U = LU_data.narrow(-2, 0, k).triu();
  }
  if (unpack_pivots) {
    const Tensor order = rushlight::_lu_permutation(LU_pivots, m).unsqueeze(-2);
    const DimVector sizes = with_matrix(leading_sizes(order), m, m);
    P = rushlight::zeros(sizes, TensorOptions(LU_data.dtype()).device(LU_data.device()))
            .scatter(-2, order, Scalar(1));
  }
  return {P, L, U};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = rushlight::linalg_lu_factor_ex(A, pivot, false);
  return composite::lu_unpack(LU, pivots, true, true);
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                       bool adjoint) {
  check_square("linalg.lu_solve", LU, "LU");
  check_matrices("linalg.lu_solve", B, "B");
  check_same_dtype("linalg.lu_solve", LU, B, "LU");
  RL_CHECK(LU.size(-2) == B.size(left ? -2 : -1),
           "linalg.lu_solve: Incompatible shapes of A and B: ", left ? "AX = B" : "XA = B",
           " with ", LU.size(-2), "x", LU.size(-1), " and ", B.size(-2), "x", B.size(-1));
  // X A = B is A^H X^H = B^H.
  if (!left) {
    return composite::linalg_lu_solve(LU, pivots, B.adjoint(), true, !adjoint).adjoint();
  }
  const Tensor order = rushlight::_lu_permutation(pivots, LU.size(-2));
  const auto permute_rows = [&](const Tensor& x, const Tensor& rows) {
    DimVector sizes = broadcast_sizes(leading_sizes(x), leading_sizes(rows, 1));
    const DimVector full = with_matrix(sizes, x.size(-2), x.size(-1));
    return x.expand(full).gather(-2, rows.unsqueeze(-1).expand(full));
  };
  if (adjoint) {
    const Tensor y = rushlight::linalg_solve_triangular(LU.adjoint(), B, false, true, false);
    const Tensor x = rushlight::linalg_solve_triangular(LU.adjoint(), y, true, true, true);
    return permute_rows(x, order.argsort(int64_t{-1}));
  }
  const Tensor y =
      rushlight::linalg_solve_triangular(LU, permute_rows(B, order), false, true, true);
  return rushlight::linalg_solve_triangular(LU, y, true, true, false);
}

Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  return composite::linalg_lu_solve(LU_data, LU_pivots, self, true, false);
}

// ---- solving ----

namespace {

std::tuple<Tensor, Tensor> solve_any(const Tensor& A, const Tensor& B, bool left) {
  check_square("linalg.solve", A);
  const bool vectors = is_vectors(A, B);
  RL_CHECK(left || !vectors || B.dim() != 1,
           "linalg.solve: a vector B needs left=True, for left=False asks for rows: Incompatible "
           "shapes of A and B: XA = B (",
           A.size(-2), "x", A.size(-1), " and ", B.numel(),
           "x1). B / A.squeeze(-1) divides by numbers.");
  const auto [x, info] = rushlight::_linalg_solve(A, vectors ? B.unsqueeze(-1) : B, left);
  // A matrix that was repeated has one `info`.
  Tensor own = info.numel() != 0
                   ? info
                   : rushlight::zeros(leading_sizes(A), TensorOptions(kInt32).device(A.device()));
  const int64_t batch = A.dim() - 2;
  for (int64_t more = own.dim() - batch; more > 0; more--) {
    own = own.select(0, 0);
  }
  for (int64_t d = 0; d < batch; d++) {
    own = own.narrow(d, 0, A.size(d));
  }
  return {vectors ? x.squeeze(-1) : x, own};
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  auto result = solve_any(A, B, left);
  if (check_errors) {
    check_info("torch.linalg.solve_ex", Failure::Solve, std::get<1>(result));
  }
  return result;
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  const auto [x, info] = solve_any(A, B, left);
  check_info("torch.linalg.solve", Failure::Solve, info);
  return x;
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  check_square("triangular_solve", A);
  check_matrices("triangular_solve", self, "b");
  check_multipliers("triangular_solve", A, self);
  const Tensor x = rushlight::linalg_solve_triangular(transpose ? A.transpose(-2, -1) : A, self,
                                                      upper != transpose, true, unitriangular);
  const DimVector batch = broadcast_sizes(leading_sizes(A), leading_sizes(self));
  return {x, A.expand(with_matrix(batch, A.size(-2), A.size(-1))).clone()};
}

Tensor linalg_inv(const Tensor& A) {
  const auto [inverse, info] = rushlight::linalg_inv_ex(A, false);
  check_info("linalg.inv", Failure::Inverse, info);
  return inverse;
}

Tensor inverse(const Tensor& self) { return composite::linalg_inv(self); }

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  RL_CHECK(self.dim() >= 2, "linalg.lstsq: A must have at least 2 dimensions, not ", self.dim());
  RL_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  const bool vectors = is_vectors(self, b);
  auto [x, residuals, rank, values] =
      rushlight::_linalg_lstsq(self, vectors ? b.unsqueeze(-1) : b, rcond, driver);
  // Residuals are given where all matrices have full rank.
  if (residuals.numel() != 0 && rank.numel() != 0 && !rank.is_meta() &&
      batching::all_of(rank.lt(self.size(-1))).any().item<bool>()) {
    residuals = undefined_like(residuals);
  }
  return {vectors ? x.squeeze(-1) : x, residuals, rank, values};
}

namespace {

// The tolerances of pinv and matrix_rank: rtol is the precision times the size, unless atol is
// given.
std::tuple<Tensor, Tensor> tolerances(const Tensor& self, const Tensor& atol, const Tensor& rtol) {
  const Tensor a = atol.defined() ? atol : number_like(self, 0);
  if (rtol.defined()) {
    return {a, rtol};
  }
  const double usual =
      epsilon(self.dtype()) * static_cast<double>(std::max(self.size(-1), self.size(-2)));
  const Tensor r = number_like(self, usual);
  return {a, atol.defined() ? where(a.gt(0), number_like(self, 0), r) : r};
}

Tensor optional_number(const Tensor& like, std::optional<double> value) {
  return value.has_value() ? number_like(like, *value) : Tensor();
}

void check_pinv(const Tensor& self) {
  RL_CHECK(self.dim() >= 2 && is_differentiable(self.dtype()),
           "linalg.pinv: matrices of floating or complex numbers are expected, not ",
           enum_name(self.dtype()), " of shape ", self.sizes());
}

void check_rank(const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "linalg.matrix_rank: a matrix must have at least 2 dimensions");
}

}  // namespace

Tensor linalg_pinv_atol_rtol_tensor(const Tensor& self, const Tensor& atol, const Tensor& rtol,
                                    bool hermitian) {
  check_pinv(self);
  const auto [a, r] = tolerances(self, atol, rtol);
  return rushlight::_linalg_pinv(self, a, r, hermitian);
}

Tensor linalg_pinv_atol_rtol_float(const Tensor& self, std::optional<double> atol,
                                   std::optional<double> rtol, bool hermitian) {
  check_pinv(self);
  return composite::linalg_pinv_atol_rtol_tensor(self, optional_number(self, atol),
                                                 optional_number(self, rtol), hermitian);
}

Tensor linalg_pinv(const Tensor& self, double rcond, bool hermitian) {
  return composite::linalg_pinv_atol_rtol_float(self, 0.0, rcond, hermitian);
}

Tensor linalg_pinv_rcond_tensor(const Tensor& self, const Tensor& rcond, bool hermitian) {
  check_pinv(self);
  return composite::linalg_pinv_atol_rtol_tensor(self, number_like(self, 0), rcond, hermitian);
}

Tensor pinverse(const Tensor& self, double rcond) {
  return composite::linalg_pinv(self, rcond, false);
}

Tensor linalg_matrix_rank_atol_rtol_tensor(const Tensor& self, const Tensor& atol,
                                           const Tensor& rtol, bool hermitian) {
  check_rank(self);
  const NoGradGuard no_grad;
  const auto [a, r] = tolerances(self, atol, rtol);
  if (self.numel() == 0) {
    return rushlight::zeros(leading_sizes(self), TensorOptions(kInt64).device(self.device()));
  }
  const Tensor sizes =
      hermitian ? rushlight::linalg_eigvalsh(self, "L").abs() : rushlight::linalg_svdvals(self);
  const Tensor limit = maximum(a.unsqueeze(-1), r.unsqueeze(-1) * sizes.amax(-1, true));
  return sizes.gt(limit).sum(-1);
}

Tensor linalg_matrix_rank_atol_rtol_float(const Tensor& self, std::optional<double> atol,
                                          std::optional<double> rtol, bool hermitian) {
  check_rank(self);
  return composite::linalg_matrix_rank_atol_rtol_tensor(self, optional_number(self, atol),
                                                        optional_number(self, rtol), hermitian);
}

Tensor linalg_matrix_rank(const Tensor& self, double tol, bool hermitian) {
  return composite::linalg_matrix_rank_atol_rtol_float(self, tol, 0.0, hermitian);
}

Tensor linalg_matrix_rank_tol_tensor(const Tensor& self, const Tensor& tol, bool hermitian) {
  check_rank(self);
  return composite::linalg_matrix_rank_atol_rtol_tensor(self, tol, number_like(self, 0), hermitian);
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  RL_CHECK(ind > 0,
           "linalg.tensorinv: ind counts the dimensions of rows: it is a strictly positive "
           "integer, not ",
           ind);
  const IntArrayRef sizes = self.sizes();
  const size_t split = std::min(static_cast<size_t>(ind), sizes.size());
  const IntArrayRef rows = sizes.slice(0, split);
  const IntArrayRef cols = sizes.slice(split, sizes.size() - split);
  RL_CHECK(product(cols) == product(rows),
           "tensorinv: expected self to have as many elements in its first dimensions, up to ind, "
           "as in the others, but got ",
           product(cols), " != ", product(rows));
  DimVector out(cols);
  for (const int64_t s : rows) {
    out.push_back(s);
  }
  return composite::linalg_inv(self.reshape({product(rows), product(cols)})).reshape(out);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  Tensor a = self;
  if (dims.has_value()) {
    DimVector last;
    for (int64_t d = -static_cast<int64_t>(dims.value().size()); d < 0; d++) {
      last.push_back(d);
    }
    a = self.movedim(dims.value(), last);
  }
  const IntArrayRef sizes = a.sizes();
  const size_t split = std::min(static_cast<size_t>(other.dim()), sizes.size());
  const IntArrayRef rows = sizes.slice(0, split);
  const DimVector result(sizes.slice(split, sizes.size() - split));
  RL_CHECK(product(result) == product(rows) && product(rows) == other.numel(),
           "tensorsolve: expected self to have as many elements in its first other.ndim dimensions "
           "as other, and as in the rest, but got ",
           product(result), " != ", product(rows));
  const int64_t n = product(result);
  return composite::linalg_solve(a.reshape({n, n}), other.reshape({n}), true).reshape(result);
}

// ---- orthogonal factors ----

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return rushlight::linalg_qr(self, some ? "reduced" : "complete");
}

Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return rushlight::linalg_householder_product(self, input2);
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
             bool transpose) {
  RL_CHECK(self.dim() >= 2, "ormqr: input must have at least 2 dimensions, not ", self.dim());
  RL_CHECK(input3.dim() >= 2, "ormqr: other must have at least 2 dimensions, not ", input3.dim());
  const int64_t m = self.size(-2);
  RL_CHECK(input3.size(left ? -2 : -1) == m, "torch.ormqr: other.shape[", left ? -2 : -1,
           "] must be equal to input.shape[-2]");
  const int64_t k = std::min(m, self.size(-1));
  RL_CHECK(input2.dim() >= 1 && input2.size(-1) == k, "ormqr: expected a tau of ", k,
           " elements, as many as input has columns or other can take, but got one of shape ",
           input2.sizes());
  // All columns of Q: more reflectors with factor 0 would not change it.
  const Tensor square = rushlight::constant_pad_nd(self.narrow(-1, 0, k), {0, m - k});
  const Tensor q = rushlight::linalg_householder_product(square, input2);
  const Tensor used = transpose ? q.adjoint() : q;
  return left ? used.matmul(input3) : input3.matmul(used);
}

// ---- singular values and eigenvalues ----

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return rushlight::_linalg_svd(A, full_matrices, true, driver);
}

namespace {

bool is_differentiated(const Tensor& t) { return forward::is_differentiated(t); }

}  // namespace

Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(rushlight::_linalg_svd(A, false, is_differentiated(A), driver));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  RL_CHECK(self.dim() >= 2, "svd: a matrix should have at least 2 dimensions, not ", self.dim());
  if (!compute_uv) {
    const IntArrayRef batch = leading_sizes(self);
    const TensorOptions options = self.options();
    const int64_t m = self.size(-2);
    const int64_t n = self.size(-1);
    return {rushlight::zeros(with_matrix(batch, m, m), options),
            composite::linalg_svdvals(self, {}),
            rushlight::zeros(with_matrix(batch, n, n), options)};
  }
  const auto [U, S, Vh] = rushlight::_linalg_svd(self, !some, true, {});
  return {U, S, Vh.adjoint()};
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return rushlight::_linalg_eigh(self, UPLO, true);
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(rushlight::_linalg_eigh(self, UPLO, is_differentiated(self)));
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) {
  return rushlight::_linalg_eig(self, true);
}

Tensor linalg_eigvals(const Tensor& self) {
  return std::get<0>(rushlight::_linalg_eig(self, is_differentiated(self)));
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  const auto [LD, pivots, info] = rushlight::linalg_ldl_factor_ex(self, hermitian, false);
  check_info("torch.linalg.ldl_factor", Failure::Ldl, info);
  return {LD, pivots};
}

// ---- approximations of low rank by random projections (Halko, Martinsson and Tropp 2009) ----

std::tuple<Tensor, Tensor, Tensor> svd_lowrank(const Tensor& A, std::optional<int64_t> q,
                                               std::optional<int64_t> niter, const Tensor& M) {
  check_matrices("svd_lowrank", A, "A");
  const Tensor matrix = A.to(to_floating(A.dtype()));
  const Tensor target = M.defined() ? matrix - M : matrix;
  if (target.size(-2) < target.size(-1)) {  // the shorter side is projected
    const auto [U, S, V] = composite::svd_lowrank(target.adjoint(), q, niter, Tensor());
    return {V, S, U};
  }
  const auto basis = [](const Tensor& x) { return std::get<0>(rushlight::linalg_qr(x)); };
  const Tensor adjoint = target.adjoint();
  Tensor Q = basis(target.matmul(
      rushlight::randn({target.size(-1), q.value_or(6)}, Generator(), target.options())));
  for (int64_t i = 0; i < niter.value_or(2); i++) {
    begin_rounds(1);
    Q = basis(target.matmul(basis(adjoint.matmul(Q))));
  }
  const auto [U, S, Vh] = rushlight::linalg_svd(Q.adjoint().matmul(target), false);
  return {Q.matmul(U), S, Vh.adjoint()};
}

std::tuple<Tensor, Tensor, Tensor> pca_lowrank(const Tensor& A, std::optional<int64_t> q,
                                               bool center, int64_t niter) {
  check_matrices("pca_lowrank", A, "A");
  const int64_t most = std::min(A.size(-2), A.size(-1));
  const int64_t rank = q.value_or(std::min<int64_t>(6, most));
  RL_CHECK_VALUE(rank >= 0 && rank <= most, "q(=", rank,
                 ") must be non-negative integer and at most min(m, n)=", most);
  RL_CHECK_VALUE(niter >= 0, "niter(=", niter, ") must be non-negative integer");
  RL_CHECK_VALUE(is_floating(A.dtype()) || is_complex(A.dtype()),
                 "input must be a floating point tensor, but got ", A.dtype());
  return composite::svd_lowrank(center ? A - A.mean({-2}, true) : A, rank, niter, Tensor());
}

}  // namespace rushlight::composite
