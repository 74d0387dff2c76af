// The lapack family on the CPU: each kernel walks its batch of matrices, brings one at a time into
// column-major memory, calls LAPACK (cpu/lapack.h) and writes the results where they belong.
// Matrices are shared out to threads; LAPACK itself runs on one, so bits do not depend on their
// number. A kernel: a function over `for_matrices` here, its contract in ops/lapack.cpp.
#include <algorithm>
#include <cmath>

#include <rushlight/ops.h>

#include "cpu/factorize.h"
#include "cpu/small_matrices.h"
#include "generated/kernels.h"
#include "ops/lapack.h"

namespace rushlight::cpu {

namespace {

template <class T>
void cholesky(const Tensor& out_L, const Tensor& out_info, const Tensor& self, bool upper,
              int64_t b) {
  const Matrix<T> a{Window<T>(self, b)};
  const int n = a.rows();
  int info = n == 0 ? 0 : lapack::potrf(upper ? 'U' : 'L', n, a.data(), a.leading());
  for (int j = 0; j < n && info == 0; j++) {  // not every LAPACK sees what is no number
    info = a.at(j, j) == a.at(j, j) ? 0 : j + 1;
  }
  flag(out_info, b) = info;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = upper ? j + 1 : 0; i < (upper ? n : j); i++) {
      a.at(i, j) = T(0);
    }
  }
  a.store(Window<T>(out_L, b));
}

}  // namespace

void linalg_cholesky_ex(const Tensor& out_L, const Tensor& out_info, const Tensor& self, bool upper,
                        bool check_errors) {
  if (fits_lanes(self)) {
    for_lanes(self, upper, 0, [&](auto& lanes, int64_t first, int live) {
      using T = std::remove_reference_t<decltype(lanes.at(0, 0, 0))>;
      lanes.factor_symmetric();
      for (int lane = 0; lane < live; lane++) {
        const int64_t b = first + lane;
        if (lanes.info(lane) != 0) {  // what is left of such a matrix is LAPACK's
          cholesky<T>(out_L, out_info, self, upper, b);
          continue;
        }
        const Window<T> to(out_L, b);
        store_columns(lanes, lane, 0, upper ? to.transpose() : to);
        flag(out_info, b) = 0;
      }
    });
  } else {
    for_matrices("linalg.cholesky", self, [&](auto tag, int64_t b) {
      cholesky<typename decltype(tag)::type>(out_L, out_info, self, upper, b);
    });
  }
  if (check_errors) {
    check_info("linalg.cholesky_ex", Failure::Cholesky, out_info);
  }
}

void linalg_solve_triangular(const Tensor& out, const Tensor& self, const Tensor& B, bool upper,
                             bool left, bool unitriangular) {
  for_matrices("linalg.solve_triangular", self, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(self, b)};
    const Matrix<T> x{Window<T>(B, b)};
    if (x.rows() != 0 && x.cols() != 0) {
      lapack::trsm(left ? 'L' : 'R', upper ? 'U' : 'L', 'N', unitriangular ? 'U' : 'N', x.rows(),
                   x.cols(), a.data(), a.leading(), x.data(), x.leading());
    }
    x.store(Window<T>(out, b));
  });
}

void _linalg_lstsq(const Tensor& out_solution, const Tensor& out_residuals, const Tensor& out_rank,
                   const Tensor& out_values, const Tensor& self, const Tensor& b,
                   std::optional<double> rcond, std::optional<std::string_view> driver) {
  const std::string_view way = *driver;
  const char letter = way == "gels" ? 'l' : way[4];
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const bool has_rank = letter != 'l';
  const bool has_values = letter == 'd' || letter == 's';
  const bool has_residuals = m > n && letter != 'y';
  const Tensor info = make_empty(leading_sizes(self), kInt32, self.device());
  for_matrices("torch.linalg.lstsq", self, [&](auto tag, int64_t item) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const Matrix<T> a{Window<T>(self, item)};
    const Window<T> right(b, item);
    const Matrix<T> x(std::max(m, n), right.cols);
    for (int64_t j = 0; j < right.cols; j++) {
      for (int64_t i = 0; i < x.rows(); i++) {
        x.at(i, j) = i < m ? right.at(i, j) : T(0);
      }
    }
    const Scratch<R> values(std::max<int64_t>(1, std::min(m, n)));
    int rank = 0;
    int code = 0;
    const R limit = static_cast<R>(
        rcond.value_or(std::numeric_limits<R>::epsilon() * static_cast<double>(std::max(m, n))));
    if (!a.is_finite() || !x.is_finite()) {
      code = letter == 'l' ? 0 : -1;
      for (int64_t i = 0; i < x.rows() * right.cols; i++) {
        x.data()[i] = T(std::numeric_limits<R>::quiet_NaN());
      }
    } else if (m != 0 && n != 0 && right.cols != 0) {
      code = lapack::lstsq(letter, a.rows(), a.cols(), x.cols(), a.data(), a.leading(), x.data(),
                           x.leading(), values.data(), limit, &rank);
    } else {
      for (int64_t i = 0; i < x.rows() * right.cols; i++) {
        x.data()[i] = T(0);
      }
    }
    flag(info, item) = code;
    x.store(Window<T>(out_solution, item));
    if (has_rank) {
      out_rank.data<int64_t>()[batch_offset(out_rank, 0, item)] = rank;
    }
    if (has_values) {
      R* const to = vector_at<R>(out_values, item);
      for (int64_t i = 0; i < std::min(m, n); i++) {
        to[i * out_values.stride(-1)] = values.data()[i];
      }
    }
    if (has_residuals) {
      R* const to = vector_at<R>(out_residuals, item);
      for (int64_t j = 0; j < right.cols; j++) {
        R sum = 0;
        for (int64_t i = n; i < m; i++) {
          const T r = x.at(i, j);
          if constexpr (is_complex_v<T>) {
            sum += r.re * r.re + r.im * r.im;
          } else {
            sum += r * r;
          }
        }
        to[j * out_residuals.stride(-1)] = sum;
      }
    }
  });
  check_info("torch.linalg.lstsq", Failure::Lstsq, info);
}

void _linalg_pinv(const Tensor& out, const Tensor& self, const Tensor& atol, const Tensor& rtol,
                  bool hermitian) {
  const NoGradGuard no_grad;
  if (self.numel() == 0) {
    fill_raw(out, 0);
    return;
  }
  const auto invert_large = [&](const Tensor& sizes, const Tensor& largest) {
    const Tensor limit = maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest);
    return where(sizes.gt(limit), sizes.reciprocal(), 0);
  };
  if (hermitian) {
    const auto [values, vectors] = rushlight::_linalg_eigh(self, "L", true);
    const Tensor sizes = values.abs();
    const Tensor inverse = invert_large(sizes, sizes.amax(-1, true)) * values.sgn();
    copy_raw(out, (vectors * inverse.unsqueeze(-2)).matmul(vectors.adjoint()));
    return;
  }
  const auto [U, S, Vh] = rushlight::_linalg_svd(self, false, true);
  const Tensor inverse = invert_large(S, S.amax(-1, true));
  copy_raw(out, (Vh.adjoint() * inverse.unsqueeze(-2)).matmul(U.adjoint()));
}

void linalg_qr(const Tensor& out_Q, const Tensor& out_R, const Tensor& A, std::string_view mode) {
  const int64_t m = A.size(-2);
  const int64_t n = A.size(-1);
  const int64_t k = std::min(m, n);
  for_matrices("linalg.qr", A, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Window<T> from(A, b);
    const Window<T> r(out_R, b);
    const int64_t columns = mode == "r" ? 0 : out_Q.size(-1);
    // Wide enough for the columns of Q that the reflectors will become.
    const Matrix<T> a(m, std::max(n, columns));
    a.load(from);
    const Scratch<T> tau(std::max<int64_t>(1, k));
    if (k != 0) {
      lapack::geqrf(a.rows(), static_cast<int>(n), a.data(), a.leading(), tau.data());
    }
    for (int64_t i = 0; i < r.rows; i++) {
      for (int64_t j = 0; j < r.cols; j++) {
        r.at(i, j) = i <= j ? a.at(i, j) : T(0);
      }
    }
    if (mode == "r") {
      return;
    }
    if (k != 0) {
      lapack::orgqr(a.rows(), static_cast<int>(columns), static_cast<int>(k), a.data(), a.leading(),
                    tau.data());
    } else {
      for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < m; i++) {
          a.at(i, j) = T(i == j ? 1 : 0);
        }
      }
    }
    a.store(Window<T>(out_Q, b));
  });
}

void geqrf(const Tensor& out_a, const Tensor& out_tau, const Tensor& self) {
  for_matrices("geqrf", self, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(self, b)};
    const int64_t k = std::min(a.rows(), a.cols());
    const Scratch<T> tau(std::max<int64_t>(1, k));
    if (k != 0) {
      lapack::geqrf(a.rows(), a.cols(), a.data(), a.leading(), tau.data());
    }
    a.store(Window<T>(out_a, b));
    T* const to = vector_at<T>(out_tau, b);
    for (int64_t i = 0; i < k; i++) {
      to[i * out_tau.stride(-1)] = tau.data()[i];
    }
  });
}

void linalg_householder_product(const Tensor& out, const Tensor& input, const Tensor& tau) {
  for_matrices("linalg.householder_product", input, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(input, b)};
    const int64_t k = tau.size(-1);
    const Scratch<T> factors(std::max<int64_t>(1, k));
    const T* const from = vector_at<T>(tau, b);
    for (int64_t i = 0; i < k; i++) {
      factors.data()[i] = from[i * tau.stride(-1)];
    }
    if (a.rows() != 0 && a.cols() != 0) {
      lapack::orgqr(a.rows(), a.cols(), static_cast<int>(k), a.data(), a.leading(), factors.data());
    }
    a.store(Window<T>(out, b));
  });
}

void _linalg_svd(const Tensor& out_U, const Tensor& out_S, const Tensor& out_Vh, const Tensor& A,
                 bool full_matrices, bool compute_uv, std::optional<std::string_view>) {
  const int64_t m = A.size(-2);
  const int64_t n = A.size(-1);
  const int64_t k = std::min(m, n);
  const Tensor info = make_empty(leading_sizes(A), kInt32, A.device());
  for_matrices("linalg.svd", A, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const Matrix<T> a{Window<T>(A, b)};
    const Matrix<T> u(compute_uv ? m : 1, compute_uv ? (full_matrices ? m : k) : 1);
    const Matrix<T> vh(compute_uv ? (full_matrices ? n : k) : 1, compute_uv ? n : 1);
    const Scratch<R> s(std::max<int64_t>(1, k));
    int code = 0;
    if (k == 0) {  // the whole of one side is any orthonormal basis
      for (const Matrix<T>* q : {&u, &vh}) {
        for (int64_t i = 0; i < q->rows(); i++) {
          for (int64_t j = 0; j < q->cols(); j++) {
            q->at(i, j) = T(i == j ? 1 : 0);
          }
        }
      }
    } else if (!a.is_finite()) {
      code = -1;
    } else {
      const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
      code = lapack::svd(job, false, a.rows(), a.cols(), a.data(), a.leading(), s.data(), u.data(),
                         u.leading(), vh.data(), vh.leading());
      if (code != 0) {  // the slower way converges where divide and conquer does not
        a.load(Window<T>(A, b));
        code = lapack::svd(job, true, a.rows(), a.cols(), a.data(), a.leading(), s.data(), u.data(),
                           u.leading(), vh.data(), vh.leading());
      }
    }
    flag(info, b) = code;
    R* const to = vector_at<R>(out_S, b);
    for (int64_t i = 0; i < k; i++) {
      to[i * out_S.stride(-1)] = s.data()[i];
    }
    if (compute_uv) {
      u.store(Window<T>(out_U, b));
      vh.store(Window<T>(out_Vh, b));
    }
  });
  check_info("linalg.svd", Failure::Svd, info);
}

void _linalg_eigh(const Tensor& out_values, const Tensor& out_vectors, const Tensor& self,
                  std::string_view UPLO, bool compute_v) {
  const char side = UPLO == "L" || UPLO == "l" ? 'L' : 'U';
  const Tensor info = make_empty(leading_sizes(self), kInt32, self.device());
  for_matrices("linalg.eigh", self, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    using R = real_t<T>;
    const Matrix<T> a{Window<T>(self, b)};
    const int64_t n = a.rows();
    const Scratch<R> w(std::max<int64_t>(1, n));
    int code = 0;
    if (!a.is_finite()) {  // LAPACK might not return
      std::fill(w.data(), w.data() + n, std::numeric_limits<R>::quiet_NaN());
      std::fill(a.data(), a.data() + n * n, T(std::numeric_limits<R>::quiet_NaN()));
    } else if (n != 0) {
      code = lapack::eigh(compute_v, side, a.rows(), a.data(), a.leading(), w.data());
    }
    flag(info, b) = code;
    R* const to = vector_at<R>(out_values, b);
    for (int64_t i = 0; i < n; i++) {
      to[i * out_values.stride(-1)] = w.data()[i];
    }
    if (compute_v) {
      a.store(Window<T>(out_vectors, b));
    }
  });
  check_info("linalg.eigh", Failure::Eigen, info);
}

void _linalg_eig(const Tensor& out_values, const Tensor& out_vectors, const Tensor& self,
                 bool compute_v) {
  const Tensor info = make_empty(leading_sizes(self), kInt32, self.device());
  for_matrices("linalg.eig", self, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    using C = complex<real_t<T>>;
    const Matrix<T> a{Window<T>(self, b)};
    const int64_t n = a.rows();
    RL_CHECK(a.is_finite(),
             "linalg.eig: all elements must be finite, but the input tensor has infs or NaNs");
    const Scratch<C> w(std::max<int64_t>(1, n));
    const Matrix<C> v(compute_v ? n : 1, compute_v ? n : 1);
    flag(info, b) = n == 0 ? 0
                           : lapack::eig(a.rows(), a.data(), a.leading(), w.data(),
                                         compute_v ? v.data() : nullptr, v.leading());
    C* const to = vector_at<C>(out_values, b);
    for (int64_t i = 0; i < n; i++) {
      to[i * out_values.stride(-1)] = w.data()[i];
    }
    if (compute_v) {
      v.store(Window<C>(out_vectors, b));
    }
  });
  check_info("linalg.eig", Failure::Eigen, info);
}

void linalg_ldl_factor_ex(const Tensor& out_LD, const Tensor& out_pivots, const Tensor& out_info,
                          const Tensor& self, bool hermitian, bool check_errors) {
  for_matrices("linalg.ldl_factor_ex", self, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(self, b)};
    const int64_t n = a.rows();
    const Scratch<int> pivots(std::max<int64_t>(1, n));
    flag(out_info, b) =
        n == 0 ? 0 : lapack::ldl(hermitian, a.rows(), a.data(), a.leading(), pivots.data());
    for (int64_t j = 0; j < n; j++) {
      for (int64_t i = 0; i < j; i++) {
        a.at(i, j) = T(0);
      }
    }
    a.store(Window<T>(out_LD, b));
    int32_t* const to = vector_at<int32_t>(out_pivots, b);
    for (int64_t i = 0; i < n; i++) {
      to[i * out_pivots.stride(-1)] = pivots.data()[i];
    }
  });
  if (check_errors) {
    check_info("torch.linalg.ldl_factor_ex", Failure::Ldl, out_info);
  }
}

void linalg_ldl_solve(const Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B,
                      bool hermitian) {
  for_matrices("linalg.ldl_solve", LD, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(LD, b)};
    const Matrix<T> x{Window<T>(B, b)};
    const int64_t n = a.rows();
    const Scratch<int> order(std::max<int64_t>(1, n));
    const int32_t* const from = vector_at<int32_t>(pivots, b);
    // LAPACK trusts these: rows of the matrix, negative ones in equal pairs.
    for (int64_t i = 0; i < n; i++) {
      const int32_t p = from[i * pivots.stride(-1)];
      order.data()[i] = p;
      RL_CHECK(p != 0 && p >= -n && p <= n, "torch.linalg.ldl_solve: pivots must be between 1 and ",
               n, " in size, but got ", p);
    }
    for (int64_t i = 0; i < n; i += order.data()[i] > 0 ? 1 : 2) {
      RL_CHECK(order.data()[i] > 0 || (i + 1 < n && order.data()[i] == order.data()[i + 1]),
               "torch.linalg.ldl_solve: negative pivots must come in equal pairs");
    }
    if (n != 0 && x.cols() != 0) {
      lapack::ldl_solve(hermitian, a.rows(), x.cols(), a.data(), a.leading(), order.data(),
                        x.data(), x.leading());
    }
    x.store(Window<T>(out, b));
  });
}

}  // namespace rushlight::cpu
