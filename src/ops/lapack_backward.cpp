// Derivatives of the factorisations, over public ops, so that they have derivatives themselves.
// X^H is the adjoint; a gradient G of X satisfies dL = Re tr(G^H dX). Where a factor is fixed only
// up to a phase (vectors of svd and eig), the loss must not depend on it.
#include <algorithm>

#include <rushlight/batching.h>

#include "ops/derivatives.h"
#include "ops/lapack.h"

namespace rushlight {

Tensor no_derivative(std::string_view op) {
  throw NotImplementedError(str("derivative for ", op, " is not implemented"));
}

namespace {

Tensor lower_half(const Tensor& t, int64_t diagonal = 0) { return t.tril(diagonal); }

Tensor diagonal_of(const Tensor& t) { return t.diagonal(0, -2, -1); }

// t with its diagonal scaled.
Tensor with_half_diagonal(const Tensor& t) { return t - (diagonal_of(t) * 0.5).diag_embed(); }

Tensor solve(const Tensor& a, const Tensor& b, bool left = true) {
  return rushlight::linalg_solve(a, b, left);
}

Tensor triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                  bool unit = false) {
  return rushlight::linalg_solve_triangular(a, b, upper, left, unit);
}

Tensor square_eye(int64_t n, const Tensor& like) { return eye(n, {}, like.options()); }

}  // namespace

Tensor cholesky_backward(const Tensor& grad, const Tensor& L, bool upper) {
  const Tensor l = upper ? L.adjoint() : L;
  const Tensor g = upper ? grad.adjoint() : grad;
  // L^-H P L^-1 with P the Hermitian part of the lower half of L^H G.
  const Tensor half = with_half_diagonal(lower_half(l.adjoint().matmul(g)));
  const Tensor p = (half + half.adjoint()) * 0.5;
  return triangular(l, triangular(l.adjoint(), p, true), false, false);
}

Tensor lu_factor_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const int64_t m = LU.size(-2);
  const int64_t n = LU.size(-1);
  const int64_t k = std::min(m, n);
  const Tensor square = LU.narrow(-2, 0, k).narrow(-1, 0, k);
  const Tensor gl = grad.narrow(-1, 0, k).tril(-1);  // m x k
  const Tensor gu = grad.narrow(-2, 0, k).triu();    // k x n
  const Tensor l1 = square.tril(-1) + square_eye(k, LU);
  const Tensor u1 = square.triu();
  const Tensor l1h = l1.adjoint();
  const Tensor u1h = u1.adjoint();
  Tensor lower = l1h.matmul(gl.narrow(-2, 0, k));
  Tensor upper = gu.narrow(-1, 0, k).matmul(u1h);
  if (n > m) {
    lower = lower - gu.narrow(-1, k, n - k).matmul(LU.narrow(-1, k, n - k).adjoint());
  }
  if (m > n) {
    upper = upper - LU.narrow(-2, k, m - k).adjoint().matmul(gl.narrow(-2, k, m - k));
  }
  const Tensor inner = lower.tril(-1) + upper.triu();
  // L1^-H inner U1^-H, then the parts beyond the square.
  Tensor g = triangular(l1h, triangular(u1h, inner, false, false), true, true, true);
  if (n > m) {
    g = cat({g, triangular(l1h, gu.narrow(-1, k, n - k), true, true, true)}, -1);
  }
  if (m > n) {
    g = cat({g, triangular(u1h, gl.narrow(-2, k, m - k), false, false)}, -2);
  }
  // Row perm[i] of A went to row i.
  const Tensor back = rushlight::_lu_permutation(pivots, m).argsort(int64_t{-1});
  return g.gather(-2, back.unsqueeze(-1).expand(g.sizes()));
}

Tensor inv_backward(const Tensor& grad, const Tensor& inverse) {
  const Tensor h = inverse.adjoint();
  return -h.matmul(grad).matmul(h);
}

std::tuple<Tensor, Tensor> linalg_solve_backward(const Tensor& grad, const Tensor& A,
                                                 const Tensor& result, bool left,
                                                 std::array<bool, 2> mask) {
  const Tensor gb = solve(A.adjoint(), grad, left);
  if (!mask[0]) {
    return {Tensor(), gb};
  }
  return {left ? -gb.matmul(result.adjoint()) : -result.adjoint().matmul(gb), gb};
}

std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A,
                                                     const Tensor& result, bool upper, bool left,
                                                     bool unitriangular, std::array<bool, 2> mask) {
  const Tensor gb = triangular(A.adjoint(), grad, !upper, left, unitriangular);
  if (!mask[0]) {
    return {Tensor(), gb};
  }
  const Tensor ga = left ? -gb.matmul(result.adjoint()) : -result.adjoint().matmul(gb);
  const int64_t off = unitriangular ? 1 : 0;
  return {upper ? ga.triu(off) : ga.tril(-off), gb};
}

Tensor pinv_backward(const Tensor& grad, const Tensor& inverse, const Tensor& A) {
  // dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
  const Tensor& p = inverse;
  const Tensor ph = p.adjoint();
  const Tensor gh = grad.adjoint();
  const Tensor first = ph.matmul(grad).matmul(ph);
  const Tensor left = gh.matmul(p).matmul(ph);
  const Tensor right = ph.matmul(p).matmul(gh);
  return left - A.matmul(p.matmul(left)) + right - right.matmul(p).matmul(A) - first;
}

std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad, const Tensor& A, const Tensor& B,
                                          std::array<bool, 2> mask) {
  // The solution is pinv(A) B.
  const Tensor inverse = rushlight::linalg_pinv(A, std::optional<double>(), {}, false);
  Tensor ga;
  if (mask[0]) {
    ga = pinv_backward(grad.matmul(B.adjoint()), inverse, A);
  }
  return {ga, mask[1] ? inverse.adjoint().matmul(grad) : Tensor()};
}

Tensor qr_backward(const Tensor& grad_Q, const Tensor& grad_R, const Tensor& Q, const Tensor& R,
                   std::string_view mode) {
  RL_CHECK(mode != "r",
           "linalg.qr: the derivative depends on Q, which is not computed when mode='r'. "
           "mode='reduced' computes it, and has one");
  const int64_t m = Q.size(-2);
  const int64_t n = R.size(-1);
  RL_CHECK(mode != "complete" || m <= n,
           "linalg.qr is not differentiable when mode='complete' and nrows > ncols: columns of Q "
           "are arbitrary then. mode='reduced' has a derivative");
  const int64_t k = std::min(m, n);
  Tensor gq = grad_Q.defined() ? grad_Q : zeros_like(Q);
  const Tensor gr = grad_R.defined() ? grad_R : zeros_like(R);
  Tensor wide;
  if (n > m) {
    // R2 = Q^H A2 for the columns beyond the square: they depend on Q as well.
    const Tensor r2 = R.narrow(-1, k, n - k);
    const Tensor gr2 = gr.narrow(-1, k, n - k);
    wide = Q.matmul(gr2);
    gq = gq + Q.matmul(r2).matmul(gr2.adjoint());
  }
  const Tensor r1 = R.narrow(-1, 0, k);
  const Tensor gr1 = gr.narrow(-1, 0, k).triu();
  const Tensor half =
      with_half_diagonal((gr1.matmul(r1.adjoint()) - Q.adjoint().matmul(gq)).triu());
  const Tensor inner = gq + Q.matmul(half + half.adjoint());
  const Tensor ga = triangular(r1.adjoint(), inner, false, false);
  return wide.defined() ? cat({ga, wide}, -1) : ga;
}

std::tuple<Tensor, Tensor> householder_backward(const Tensor& grad, const Tensor& input,
                                                const Tensor& tau) {
  const int64_t m = input.size(-2);
  const int64_t n = input.size(-1);
  const int64_t k = tau.size(-1);
  // v[j]: zeros, a one in row j, then column j of input. parts[j]: reflectors j, j + 1, … applied
  // to the first columns of the unit matrix.
  std::vector<Tensor> v(static_cast<size_t>(k));
  std::vector<Tensor> parts(static_cast<size_t>(k) + 1);
  const Tensor unit = eye(m, n, input.options());
  parts[static_cast<size_t>(k)] = unit.expand(input.sizes());
  for (int64_t j = k - 1; j >= 0; j--) {
    const auto at = static_cast<size_t>(j);
    v[at] = input.narrow(-1, j, 1).tril(-j - 1) + unit.narrow(-1, j, 1);
    const Tensor factor = tau.narrow(-1, j, 1).unsqueeze(-1);
    parts[at] = parts[at + 1] - factor * v[at].matmul(v[at].adjoint().matmul(parts[at + 1]));
  }
  std::vector<Tensor> grad_columns;
  std::vector<Tensor> grad_factors;
  Tensor g = grad;
  for (int64_t j = 0; j < k; j++) {
    const auto at = static_cast<size_t>(j);
    const Tensor factor = tau.narrow(-1, j, 1).unsqueeze(-1);
    const Tensor& x = parts[at + 1];
    const Tensor w = v[at].adjoint().matmul(x);   // 1 x n
    const Tensor gw = g.matmul(w.adjoint());      // m x 1
    const Tensor gv = g.adjoint().matmul(v[at]);  // n x 1
    grad_factors.push_back(-(v[at].conj() * gw).sum(-2));
    grad_columns.push_back((-factor.conj() * gw - factor * x.matmul(gv)).tril(-j - 1));
    g = g - factor.conj() * v[at].matmul(gv.adjoint());
  }
  if (k < n) {
    DimVector rest(input.sizes());
    rest.back() = n - k;
    grad_columns.push_back(zeros(rest, input.options()));
  }
  return {n == 0 ? zeros_like(input) : cat(grad_columns, -1),
          k == 0 ? zeros_like(tau) : cat(grad_factors, -1)};
}

Tensor svd_backward(const Tensor& grad_U, const Tensor& grad_S, const Tensor& grad_Vh,
                    const Tensor& U, const Tensor& S, const Tensor& Vh) {
  RL_CHECK(U.dim() > 1,
           "svd_backward: the singular vectors were not computed; differentiate through "
           "linalg.svd(A, full_matrices=False) or linalg.svdvals(A)");
  const int64_t k = S.size(-1);
  const bool has_vectors = grad_U.defined() || grad_Vh.defined();
  // Vectors beyond the first k, of full matrices, are any basis of what is left: nothing is said of
  // their gradients.
  const Tensor u = U.narrow(-1, 0, k);
  const Tensor vh = Vh.narrow(-2, 0, k);
  if (!has_vectors) {
    return (u * grad_S.unsqueeze(-2)).matmul(vh);
  }
  const bool complex_vectors = is_complex(U.dtype());
  const Tensor s = S.unsqueeze(-2);
  const Tensor st = S.unsqueeze(-1);
  // E[i][j] = S[j]^2 - S[i]^2 off the diagonal.
  const Tensor unit = square_eye(k, S);
  const Tensor e = (s - st) * (s + st) + unit;
  const auto skew_part = [](const Tensor& t) { return t - t.adjoint(); };
  Tensor inner = grad_S.defined() ? grad_S.diag_embed() : Tensor();
  if (complex_vectors && inner.defined()) {
    inner = inner.to(U.dtype());
  }
  Tensor phase;  // the imaginary part of the diagonal
  Tensor beyond;
  const auto plus = [](const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; };
  if (grad_U.defined()) {
    const Tensor gu = grad_U.narrow(-1, 0, k);
    const Tensor uhgu = skew_part(u.adjoint().matmul(gu));
    inner = plus(inner, uhgu / e * (1 - unit) * s);
    phase = diagonal_of(uhgu);
    if (U.size(-2) > k) {
      const Tensor outside = (gu - u.matmul(u.adjoint().matmul(gu))) / s;
      beyond = plus(beyond, outside.matmul(vh));
    }
  }
  if (grad_Vh.defined()) {
    const Tensor gvh = grad_Vh.narrow(-2, 0, k);
    const Tensor vhgv = skew_part(vh.matmul(gvh.adjoint()));
    inner = plus(inner, st * (vhgv / e * (1 - unit)));
    phase = phase.defined() ? phase - diagonal_of(vhgv) : -diagonal_of(vhgv);
    if (Vh.size(-1) > k) {
      const Tensor outside = (gvh - gvh.matmul(vh.adjoint()).matmul(vh)) / st;
      beyond = plus(beyond, u.matmul(outside));
    }
  }
  if (complex_vectors) {  // skewed() doubled it
    inner = inner + (phase / (4 * S)).diag_embed();
  }
  return plus(beyond, u.matmul(inner).matmul(vh));
}

Tensor eigh_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors) {
  RL_CHECK(vectors.dim() > 1, "eigh_backward: the eigenvectors were not computed");
  const Tensor& v = vectors;
  const Tensor vh = v.adjoint();
  if (!grad_vectors.defined()) {
    return (v * grad_values.unsqueeze(-2)).matmul(vh);
  }
  const Tensor unit = square_eye(values.size(-1), values);
  const Tensor gaps = values.unsqueeze(-2) - values.unsqueeze(-1) + unit;
  Tensor inner = vh.matmul(grad_vectors) / gaps * (1 - unit);
  if (grad_values.defined()) {
    inner = inner + grad_values.diag_embed();
  }
  return v.matmul(inner).matmul(vh);
}

Tensor eig_backward(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                    const Tensor& vectors, bool is_complex) {
  RL_CHECK(vectors.dim() > 1, "eig_backward: the eigenvectors were not computed");
  const Tensor vh = vectors.adjoint();
  Tensor inner;
  if (grad_vectors.defined()) {
    const Tensor unit = square_eye(values.size(-1), values);
    const Tensor vhgv = vh.matmul(grad_vectors);
    // Vectors have length 1: what would change it is taken out.
    const Tensor along = vh.matmul(vectors) * real(diagonal_of(vhgv)).unsqueeze(-2);
    const Tensor gaps = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj() + unit;
    inner = (vhgv - along) / gaps * (1 - unit);
  }
  if (grad_values.defined()) {
    const Tensor diagonal = grad_values.diag_embed();
    inner = inner.defined() ? inner + diagonal : diagonal;
  }
  const Tensor g = solve(vh, inner.matmul(vh));
  return is_complex ? g : real(g);
}

}  // namespace rushlight
