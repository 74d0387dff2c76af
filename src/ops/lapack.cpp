// Contracts of the factorisations: what each takes and what comes out. Kernels are in
// cpu/factorize.cpp, derivatives in lapack_backward.cpp, functions over them in
// lapack_composites.cpp.
#include <rushlight/batching.h>

#include "ops/lapack.h"

#include <algorithm>

#include "generated/contracts.h"

namespace rushlight {

void check_linear_dtype(const char* name, const Tensor& a, bool low_precision) {
  RL_CHECK(is_differentiable(a.dtype()), name,
           ": the dtype must be floating point or complex, not ", enum_name(a.dtype()));
  RL_CHECK(low_precision || (a.dtype() != kFloat16 && a.dtype() != kBFloat16), name,
           ": Low precision dtypes not supported, such as ", enum_name(a.dtype()),
           ": convert it to float32");
}

void check_matrices(const char* name, const Tensor& a, const char* argument) {
  check_linear_dtype(name, a);
  RL_CHECK(a.dim() >= 2, name, ": ", argument,
           " holds matrices and must have at least 2 dimensions, but has ", a.dim());
  RL_CHECK(a.size(-1) <= INT32_MAX / 4 && a.size(-2) <= INT32_MAX / 4, name, ": matrices of size ",
           a.size(-2), "x", a.size(-1), " are too large for LAPACK");
}

void check_square(const char* name, const Tensor& a, const char* argument) {
  check_matrices(name, a, argument);
  RL_CHECK(a.size(-1) == a.size(-2), name, ": ", argument,
           " must be batches of square matrices, not of ", a.size(-2), " x ", a.size(-1));
}

IntArrayRef leading_sizes(const Tensor& matrices, int64_t own) {
  return {matrices.sizes().data(), static_cast<size_t>(matrices.dim() - own)};
}

DimVector with_matrix(IntArrayRef batch, int64_t rows, int64_t cols) {
  DimVector out(batch);
  out.push_back(rows);
  out.push_back(cols);
  return out;
}

void check_same_dtype(const char* name, const Tensor& a, const Tensor& b, const char* a_name) {
  RL_CHECK(a.dtype() == b.dtype(), name, ": ", a_name, " and B must have the same dtype, not ",
           enum_name(a.dtype()), " and ", enum_name(b.dtype()));
}

namespace {

DimVector with_vector(IntArrayRef batch, int64_t n) {
  DimVector out(batch);
  out.push_back(n);
  return out;
}

// Matrices as LAPACK writes them: column by column, of which `leading` elements belong to each.
OutSpec columns(IntArrayRef sizes, ScalarType dtype, int64_t leading) {
  OutSpec out{DimVector(sizes), dtype, DimVector(sizes)};
  const size_t n = sizes.size();
  out.strides[n - 2] = 1;
  out.strides[n - 1] = std::max<int64_t>(1, leading);
  int64_t step = next_stride(out.strides[n - 1], sizes[n - 1]);
  for (size_t d = n - 2; d-- > 0;) {
    out.strides[d] = step;
    step = next_stride(step, sizes[d]);
  }
  return out;
}
OutSpec columns(IntArrayRef sizes, ScalarType dtype) {
  return columns(sizes, dtype, sizes[sizes.size() - 2]);
}

// Brings the leading dimensions of both to their common sizes.
void broadcast_batches(Tensor& a, Tensor& b) {
  const DimVector batch = broadcast_sizes(leading_sizes(a), leading_sizes(b));
  a = expand_raw(a, with_matrix(batch, a.size(-2), a.size(-1)));
  b = expand_raw(b, with_matrix(batch, b.size(-2), b.size(-1)));
}

// The sides of A X = B (left) or X A = B fit.
void check_sides(const char* name, const Tensor& a, const Tensor& b, bool left) {
  RL_CHECK(a.size(-2) == b.size(left ? -2 : -1), name,
           ": Incompatible shapes of A and B: ", left ? "AX = B" : "XA = B", " with ", a.size(-2),
           "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1));
}

std::string convergence_text(const char* values, int64_t info) {
  const std::string begin = "The algorithm failed to converge: the input matrix ";
  return info < 0 ? begin + "contained non-finite values."
                  : str(begin, "is ill-conditioned, or many of its ", values,
                        " are equal (error code: ", info, ").");
}

std::string failure_text(Failure failure, int64_t info) {
  switch (failure) {
    case Failure::Inverse:
      return str("the input matrix is singular and has no inverse: element ", info,
                 " of the diagonal of U is zero");
    case Failure::Solve:
      return "no unique solution: the input matrix is singular";
    case Failure::Cholesky:
      return str("the input is not positive-definite, for ", "its leading minor of order ", info,
                 " is not");
    case Failure::Svd:
      return convergence_text("singular values", info);
    case Failure::Eigen:
      return convergence_text("eigenvalues", info);
    case Failure::Lstsq:
      return str(
          "The least squares solution is not unique: its matrix does not have full rank, says LAPACK ",
          "(info = ", info, ").");
    case Failure::Lu:
      return str("U[", info, ",", info,
                 "] is zero, and lu_solve would divide by it: linalg.lu and ",
                 "linalg.lu_factor_ex give the factors of such a matrix");
    case Failure::Ldl:
      break;
  }
  return str("The diagonal block ", info, " of D is exactly singular.");
}

}  // namespace

void check_info(const char* name, Failure failure, const Tensor& info) {
  if (info.is_meta() || is_special(info)) {  // there is nothing to see yet
    return;
  }
  const Tensor all = batching::all_of(info);
  const Tensor dense = make_empty(all.sizes(), kInt32, kCPU);
  copy_raw(dense, all);
  const int32_t* codes = dense.data<int32_t>();
  for (int64_t i = 0; i < all.numel(); i++) {
    if (codes[i] != 0) {
      const std::string batch = info.dim() == 0 ? "" : str("(Batch element ", i, "): ");
      throw LinAlgError(str(name, ": ", batch, failure_text(failure, codes[i])));
    }
  }
}

bool is_vectors(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) {
    return true;
  }
  return a.dim() - 1 == b.dim() &&
         b.sizes() == IntArrayRef(a.sizes().data(), static_cast<size_t>(b.dim()));
}

namespace shape {

OutSpecs<2> linalg_cholesky_ex(Tensor& self, bool&, bool&) {
  check_square("linalg.cholesky", self);
  return {columns(self.sizes(), self.dtype()), OutSpec{leading_sizes(self), kInt32}};
}

OutSpecs<3> linalg_lu_factor_ex(Tensor& A, bool& pivot, bool&) {
  check_matrices("torch.lu_factor", A);
  RL_CHECK(pivot, "linalg.lu_factor: pivot=False is not implemented on the CPU");
  const DimVector pivots = with_vector(leading_sizes(A), std::min(A.size(-2), A.size(-1)));
  return {columns(A.sizes(), A.dtype()), OutSpec{pivots, kInt32},
          OutSpec{leading_sizes(A), kInt32}};
}

OutSpec _lu_permutation(Tensor& pivots, int64_t& n) {
  RL_CHECK(pivots.dtype() == kInt32,
           "lu_unpack: LU_pivots must be of torch.int32 dtype, as linalg.lu_factor makes them, but "
           "are of ",
           enum_name(pivots.dtype()));
  RL_CHECK(n >= 0 && pivots.dim() >= 1 && pivots.size(-1) <= n,
           "torch.lu_unpack: LU_pivots has sizes ", pivots.sizes(), ", too many for ", n, " rows");
  return {with_vector(leading_sizes(pivots, 1), n), kInt64};
}

OutSpecs<2> _linalg_solve(Tensor& A, Tensor& B, bool& left) {
  check_square("linalg.solve", A);
  check_same_dtype("linalg.solve", A, B);
  check_matrices("linalg.solve", B, "B");
  check_sides("linalg.solve", A, B, left);
  broadcast_batches(A, B);
  return {left ? columns(B.sizes(), B.dtype()) : OutSpec{B.sizes(), B.dtype()},
          OutSpec{leading_sizes(A), kInt32}};
}

OutSpec linalg_solve_triangular(Tensor& self, Tensor& B, bool&, bool& left, bool&) {
  check_square("linalg.solve_triangular", self);
  check_matrices("linalg.solve_triangular", B, "B");
  check_same_dtype("linalg.solve_triangular", self, B);
  check_sides("linalg.solve_triangular", self, B, left);
  broadcast_batches(self, B);
  return columns(B.sizes(), B.dtype());
}

OutSpecs<2> linalg_inv_ex(Tensor& A, bool&) {
  check_square("linalg.inv", A);
  return {columns(A.sizes(), A.dtype()), OutSpec{leading_sizes(A), kInt32}};
}

OutSpecs<4> _linalg_lstsq(Tensor& self, Tensor& b, std::optional<double>&,
                          std::optional<std::string>& driver) {
  check_matrices("torch.linalg.lstsq", self, "input");
  RL_CHECK(self.dtype() == b.dtype(),
           "torch.linalg.lstsq: input and other tensors must have the same dtype, got ",
           enum_name(self.dtype()), " and ", enum_name(b.dtype()));
  const std::string way = driver.value_or("gelsy");
  RL_CHECK(way == "gels" || way == "gelsy" || way == "gelsd" || way == "gelss",
           "linalg.lstsq: parameter `driver` should be one of 'gels', 'gelsy', 'gelsd' and "
           "'gelss', but is '",
           way, "'");
  RL_CHECK(b.dim() >= 2 && self.size(-2) == b.size(-2),
           "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
  broadcast_batches(self, b);
  driver = way;
  const IntArrayRef batch = leading_sizes(self);
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const bool has_rank = way != "gels";
  const bool has_values = way == "gelsd" || way == "gelss";
  const ScalarType real = to_real(self.dtype());
  // Residuals exist where there are more equations than unknowns; the caller drops them where the
  // rank is not full.
  return {columns(with_matrix(batch, n, b.size(-1)), self.dtype(), std::max(m, n)),
          OutSpec{m > n && way != "gelsy" ? with_vector(batch, b.size(-1)) : DimVector{0}, real},
          OutSpec{has_rank ? DimVector(batch) : DimVector{0}, kInt64},
          OutSpec{has_values ? with_vector(batch, std::min(m, n)) : DimVector{0}, real}};
}

OutSpec _linalg_pinv(Tensor& self, Tensor&, Tensor&, bool& hermitian) {
  check_matrices("linalg.pinv", self);
  if (hermitian) {
    check_square("linalg.pinv", self);
  }
  return {with_matrix(leading_sizes(self), self.size(-1), self.size(-2)), self.dtype()};
}

OutSpecs<2> linalg_qr(Tensor& A, std::string& mode) {
  check_matrices("linalg.qr", A);
  RL_CHECK(mode == "reduced" || mode == "complete" || mode == "r",
           "qr received unrecognized mode '", mode,
           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2);
  const int64_t n = A.size(-1);
  const int64_t k = mode == "complete" ? m : std::min(m, n);
  const IntArrayRef batch = leading_sizes(A);
  return {mode == "r" ? OutSpec{{0}, A.dtype()} : columns(with_matrix(batch, m, k), A.dtype()),
          columns(with_matrix(batch, k, n), A.dtype())};
}

OutSpecs<2> geqrf(Tensor& self) {
  check_matrices("torch.geqrf", self, "input");
  const int64_t k = std::min(self.size(-2), self.size(-1));
  return {columns(self.sizes(), self.dtype()),
          OutSpec{with_vector(leading_sizes(self), k), self.dtype()}};
}

OutSpec linalg_householder_product(Tensor& input, Tensor& tau) {
  check_matrices("torch.linalg.householder_product", input, "input");
  RL_CHECK(input.size(-2) >= input.size(-1), "linalg.householder_product: input.shape[-2], ",
           input.size(-2), ", must be greater than or equal to input.shape[-1], ", input.size(-1));
  RL_CHECK(tau.dim() >= 1 && input.size(-1) >= tau.size(-1),
           "linalg.householder_product: tau must have at most ", input.size(-1),
           " elements, input.shape[-1], but has shape ", tau.sizes());
  RL_CHECK(input.dim() - tau.dim() == 1 && leading_sizes(input) == leading_sizes(tau, 1),
           "linalg.householder_product: tau must have the sizes of input but for the last two, and "
           "then one, but they have shapes ",
           tau.sizes(), " and ", input.sizes());
  RL_CHECK(tau.dtype() == input.dtype(), "torch.linalg.householder_product: tau dtype ",
           enum_name(tau.dtype()), " does not match input dtype ", enum_name(input.dtype()));
  return columns(input.sizes(), input.dtype());
}

OutSpecs<3> _linalg_svd(Tensor& A, bool& full_matrices, bool& compute_uv,
                        std::optional<std::string>& driver) {
  check_matrices("linalg.svd", A);
  RL_CHECK(!driver.has_value(),
           "linalg.svd: `driver=` is only supported on CUDA inputs by cuSOLVER, which is not used "
           "here. Leave it out.");
  const int64_t m = A.size(-2);
  const int64_t n = A.size(-1);
  const int64_t k = std::min(m, n);
  const IntArrayRef batch = leading_sizes(A);
  const ScalarType dtype = A.dtype();
  const OutSpec values{with_vector(batch, k), to_real(dtype)};
  if (!compute_uv) {
    return {OutSpec{{0}, dtype}, values, OutSpec{{0}, dtype}};
  }
  return {columns(with_matrix(batch, m, full_matrices ? m : k), dtype), values,
          columns(with_matrix(batch, full_matrices ? n : k, n), dtype)};
}

OutSpecs<2> _linalg_eigh(Tensor& self, std::string& UPLO, bool& compute_v) {
  check_square("linalg.eigh", self);
  RL_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u",
           "linalg.eigh: UPLO argument to be 'L' or 'U' is the triangle to read, but got ", UPLO);
  return {OutSpec{with_vector(leading_sizes(self), self.size(-1)), to_real(self.dtype())},
          compute_v ? columns(self.sizes(), self.dtype()) : OutSpec{{0}, self.dtype()}};
}

OutSpecs<2> _linalg_eig(Tensor& self, bool& compute_v) {
  check_square("linalg.eig", self);
  const ScalarType dtype = self.is_complex() ? self.dtype() : to_complex(self.dtype());
  return {OutSpec{with_vector(leading_sizes(self), self.size(-1)), dtype},
          compute_v ? columns(self.sizes(), dtype) : OutSpec{{0}, dtype}};
}

OutSpecs<3> linalg_ldl_factor_ex(Tensor& self, bool&, bool&) {
  check_square("torch.linalg.ldl_factor_ex", self);
  return {columns(self.sizes(), self.dtype()),
          OutSpec{with_vector(leading_sizes(self), self.size(-1)), kInt32},
          OutSpec{leading_sizes(self), kInt32}};
}

OutSpec linalg_ldl_solve(Tensor& LD, Tensor& pivots, Tensor& B, bool&) {
  check_square("torch.linalg.ldl_solve", LD, "LD");
  check_matrices("linalg.ldl_solve", B, "B");
  RL_CHECK(LD.size(-2) == B.size(-2), "torch.linalg.ldl_solve: Incompatible shapes of LD and B (",
           LD.sizes(), " and ", B.sizes(), ")");
  RL_CHECK(pivots.dtype() == kInt32, "torch.linalg.ldl_solve: Expected pivots to be integers. Got ",
           enum_name(pivots.dtype()));
  RL_CHECK(pivots.sizes() == IntArrayRef(LD.sizes().data(), static_cast<size_t>(LD.dim() - 1)),
           "linalg.ldl_solve: pivots must have the shape of LD without its last dimension, but "
           "they have shapes ",
           pivots.sizes(), " and ", LD.sizes());
  RL_CHECK(LD.dtype() == B.dtype(), "torch.linalg.ldl_solve: LD dtype ", enum_name(LD.dtype()),
           " does not match b dtype ", enum_name(B.dtype()));
  broadcast_batches(LD, B);
  pivots = expand_raw(pivots, with_vector(leading_sizes(LD), LD.size(-1)));
  return columns(B.sizes(), B.dtype());
}

OutSpec linalg_det(Tensor& A) {
  check_square("linalg.det", A);
  return {leading_sizes(A), A.dtype()};
}

OutSpecs<2> linalg_slogdet(Tensor& A) {
  check_square("linalg.slogdet", A);
  return {OutSpec{leading_sizes(A), A.dtype()}, OutSpec{leading_sizes(A), to_real(A.dtype())}};
}

}  // namespace shape
}  // namespace rushlight
