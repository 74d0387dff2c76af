// Derivatives of determinants, which singular matrices have, too: G of A satisfies
// dL = Re tr(G^H dA), so that of the determinant is its gradient times the matrix of cofactors,
// adj(A)^H.
#include <algorithm>

#include <rushlight/batching.h>

#include "ops/derivatives.h"

namespace rushlight {

namespace {

Tensor as_matrices(const Tensor& numbers) { return numbers.unsqueeze(-1).unsqueeze(-1); }

Tensor eye_like(const Tensor& A) { return eye(A.size(-1), {}, A.options()).expand(A.sizes()); }

bool any_true(const Tensor& t) { return !t.is_meta() && batching::all_of(t).any().item<bool>(); }

// The adjugate of matrices of at most three rows, a polynomial of their elements.
Tensor small_adjugate(const Tensor& S) {
  const int64_t n = S.size(-1);
  const auto at = [&](int64_t i, int64_t j) { return S.select(-2, i % n).select(-1, j % n); };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < n; i++) {
    std::vector<Tensor> row;
    for (int64_t j = 0; j < n; j++) {
      if (n == 1) {
        row.push_back(ones_like(at(0, 0)));
      } else if (n == 2) {
        row.push_back(i == j ? at(i + 1, j + 1) : -at(i, j));
      } else {  // what is left without row j and column i, in cyclic order, which keeps the sign
        row.push_back(at(j + 1, i + 1) * at(j + 2, i + 2) - at(j + 1, i + 2) * at(j + 2, i + 1));
      }
    }
    rows.push_back(rushlight::stack(row, -1));
  }
  return rushlight::stack(rows, -2);
}

// Adjugates of matrices that are diagonal, sizes falling. The last three rows are taken apart: what
// they make together with the inverse of the rest has derivatives of every order, unless more than
// three numbers on the diagonal are 0; then the first three derivatives are.
Tensor adjugate_of_sorted(const Tensor& B) {
  const int64_t n = B.size(-1);
  const int64_t k = std::min<int64_t>(n, 3);
  const int64_t m = n - k;
  if (m == 0) {
    return small_adjugate(B);
  }
  const auto block = [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
    return B.narrow(-2, i, rows).narrow(-1, j, columns);
  };
  const Tensor first = block(0, m, 0, m);
  // What is 0 but for rounding may look like a number on the diagonal, and yet have no inverse.
  const Tensor fixed = first.detach();
  const Tensor info = std::get<1>(rushlight::linalg_solve_ex(fixed, eye_like(fixed), true, false));
  const Tensor vanishes =
      as_matrices(fixed.diagonal(0, -2, -1).eq(0).any(-1).logical_or(info.ne(0)));
  const Tensor regular = where(vanishes, eye_like(first), first);
  const Tensor size = as_matrices(rushlight::linalg_det(regular)).masked_fill(vanishes, 0);
  const Tensor inverse = rushlight::linalg_solve(regular, eye_like(regular));
  const Tensor above = inverse.matmul(block(0, m, m, k));
  const Tensor left = block(m, k, 0, m).matmul(inverse);
  const Tensor rest = block(m, k, m, k) - block(m, k, 0, m).matmul(above);
  const Tensor adjugate = small_adjugate(rest);
  const Tensor det = (rest.select(-2, 0) * adjugate.select(-1, 0)).sum(-1);
  const Tensor top = rushlight::cat(
      {as_matrices(det) * inverse + above.matmul(adjugate).matmul(left), -above.matmul(adjugate)},
      -1);
  const Tensor bottom = rushlight::cat({-adjugate.matmul(left), adjugate}, -1);
  return size * rushlight::cat({top, bottom}, -2);
}

// In the bases of A's singular vectors, which stay what they are as A changes.
Tensor cofactors(const Tensor& A) {
  const auto [U, S, Vh] = rushlight::_linalg_svd(A.detach(), false, true);
  const Tensor phase = (rushlight::linalg_det(U) * rushlight::linalg_det(Vh)).conj();
  const Tensor adjugate = adjugate_of_sorted(U.adjoint().matmul(A).matmul(Vh.adjoint()));
  return as_matrices(phase) * U.matmul(adjugate.adjoint()).matmul(Vh);
}

Tensor inverse_adjoint(const Tensor& A) {
  return rushlight::linalg_solve(A, eye_like(A)).adjoint();
}

}  // namespace

Tensor det_backward(const Tensor& grad, const Tensor& det, const Tensor& A) {
  if (A.numel() == 0) {
    return zeros_like(A);
  }
  // The derivatives of det times the inverse cancel each other near singular matrices.
  if (forward::is_differentiated(A) || any_true(det.eq(0))) {
    return as_matrices(grad) * cofactors(A);
  }
  return as_matrices(grad * det.conj()) * inverse_adjoint(A);
}

Tensor log_det_slopes(const Tensor& A, const Tensor& sign) {
  const Tensor singular = sign.eq(0);
  if (A.numel() == 0 || !any_true(singular)) {
    return A.numel() == 0 ? zeros_like(A) : inverse_adjoint(A);
  }
  const Tensor at = as_matrices(singular);
  const Tensor infinite = cofactors(A) / as_matrices(rushlight::linalg_det(A).conj());
  return where(at, infinite, inverse_adjoint(where(at, eye_like(A), A)));
}

Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A,
                        const Tensor& sign) {
  Tensor g = grad_logabsdet;
  if (is_complex(A.dtype()) && grad_sign.defined()) {
    const Tensor im = imag(sign.conj() * grad_sign);
    const Tensor re = g.defined() ? g : zeros_like(im);
    g = rushlight::_complex(re, im);
  }
  if (!g.defined() || A.numel() == 0) {
    return zeros_like(A);
  }
  // A matrix whose result nobody wants may be singular.
  const Tensor unused = as_matrices(g.eq(0).logical_and(sign.eq(0)));
  return as_matrices(g) * log_det_slopes(A, sign).masked_fill(unused, 0);
}

}  // namespace rushlight
