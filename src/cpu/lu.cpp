// What LU with partial pivoting gives: factors, solutions, inverses, determinants. Batches of small
// real matrices are factored several at a time (small_matrices.h), all others by LAPACK
// (factorize.h).
#include "cpu/factorize.h"
#include "cpu/small_matrices.h"
#include "generated/kernels.h"
#include "ops/lapack.h"

namespace rushlight::cpu {

void linalg_lu_factor_ex(const Tensor& out_LU, const Tensor& out_pivots, const Tensor& out_info,
                         const Tensor& A, bool, bool check_errors) {
  const int64_t k = std::min(A.size(-1), A.size(-2));
  const int64_t step = k == 0 ? 1 : out_pivots.stride(-1);
  if (fits_lanes(A)) {
    for_lanes(A, false, 0, [&](auto& lanes, int64_t first, int live) {
      lanes.factor();
      for (int lane = 0; lane < live; lane++) {
        const int64_t b = first + lane;
        store_columns(lanes, lane, 0, Window(out_LU, b, lanes.at(0, 0, 0)));
        for (int64_t i = 0; i < k; i++) {
          vector_at<int32_t>(out_pivots, b)[i * step] = lanes.pivot(i, lane);
        }
        flag(out_info, b) = lanes.info(lane);
      }
    });
  } else {
    for_matrices("lu_factor", A, [&](auto tag, int64_t b) {
      using T = typename decltype(tag)::type;
      const Matrix<T> a{Window<T>(A, b)};
      const Scratch<int> pivots(std::max<int64_t>(1, k));
      flag(out_info, b) =
          k == 0 ? 0 : lapack::getrf(a.rows(), a.cols(), a.data(), a.leading(), pivots.data());
      a.store(Window<T>(out_LU, b));
      int32_t* const to = vector_at<int32_t>(out_pivots, b);
      for (int64_t i = 0; i < k; i++) {
        to[i * step] = pivots.data()[i];
      }
    });
  }
  if (check_errors) {
    check_info("torch.linalg.lu_factor_ex", Failure::Lu, out_info);
  }
}

void _lu_permutation(const Tensor& out, const Tensor& pivots, int64_t n) {
  const int64_t k = pivots.size(-1);
  const int64_t batches = batch_count(pivots, 1);
  for (int64_t b = 0; b < batches; b++) {
    const int32_t* const from = vector_at<int32_t>(pivots, b);
    int64_t* const to = vector_at<int64_t>(out, b);
    const int64_t step = n == 0 ? 1 : out.stride(-1);
    for (int64_t i = 0; i < n; i++) {
      to[i * step] = i;
    }
    for (int64_t i = 0; i < k; i++) {
      const int64_t other = int64_t{from[i * pivots.stride(-1)]} - 1;
      RL_CHECK(other >= 0 && other < n,
               "pivots passed to lu_unpack must be numbers of rows, between 1 and ", n,
               ", but one is ", other + 1, ". linalg.lu_factor makes such pivots.");
      std::swap(to[i * step], to[other * step]);
    }
  }
}

void _linalg_solve(const Tensor& out_result, const Tensor& out_info, const Tensor& A,
                   const Tensor& B, bool left) {
  // X A = B is A^T X^T = B^T.
  const int64_t n = A.size(-1);
  const int64_t right = left ? B.size(-1) : B.size(-2);
  if (fits_lanes(A) && right <= small_matrix) {
    return for_lanes(A, !left, right, [&](auto& lanes, int64_t first, int live) {
      const auto side = [&](const Tensor& t, int lane) {
        const auto window = Window(t, first + std::min(lane, live - 1), lanes.at(0, 0, 0));
        return left ? window : window.transpose();
      };
      for (int lane = 0; lane < lanes.lanes; lane++) {
        load_right(lanes, lane, n, side(B, lane));
      }
      lanes.factor();
      lanes.solve();
      for (int lane = 0; lane < live; lane++) {
        store_columns(lanes, lane, n, side(out_result, lane));
        flag(out_info, first + lane) = lanes.info(lane);
      }
    });
  }
  for_matrices("linalg.solve", A, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Window<T> right_side(B, b);
    const Window<T> result(out_result, b);
    const Matrix<T> a(Window<T>(A, b));
    const Matrix<T> x(left ? right_side : right_side.transpose());
    const int size = a.rows();
    const Scratch<int> pivots(std::max(1, size));
    int info = 0;
    if (size != 0) {
      info = lapack::getrf(size, size, a.data(), a.leading(), pivots.data());
      if (x.cols() != 0) {
        lapack::getrs(left ? 'N' : 'T', size, x.cols(), a.data(), a.leading(), pivots.data(),
                      x.data(), x.leading());
      }
    }
    flag(out_info, b) = info;
    x.store(left ? result : result.transpose());
  });
}

void linalg_inv_ex(const Tensor& out_inverse, const Tensor& out_info, const Tensor& A,
                   bool check_errors) {
  if (fits_lanes(A)) {
    const int64_t n = A.size(-1);
    for_lanes(A, false, n, [&](auto& lanes, int64_t first, int live) {
      for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
          lanes.fill(i, n + j, i == j);
        }
      }
      lanes.factor();
      lanes.solve();
      for (int lane = 0; lane < live; lane++) {
        store_columns(lanes, lane, n, Window(out_inverse, first + lane, lanes.at(0, 0, 0)));
        flag(out_info, first + lane) = lanes.info(lane);
      }
    });
  } else {
    for_matrices("linalg.inv", A, [&](auto tag, int64_t b) {
      using T = typename decltype(tag)::type;
      const Matrix<T> a{Window<T>(A, b)};
      const int n = a.rows();
      const Scratch<int> pivots(std::max(1, n));
      int info = 0;
      if (n != 0) {
        info = lapack::getrf(n, n, a.data(), a.leading(), pivots.data());
        if (info == 0) {
          info = lapack::getri(n, a.data(), a.leading(), pivots.data());
        }
      }
      flag(out_info, b) = info;
      a.store(Window<T>(out_inverse, b));
    });
  }
  if (check_errors) {
    check_info("linalg.inv_ex", Failure::Inverse, out_info);
  }
}

namespace {

// Calls f(b, the diagonal of the LU matrix, whether the rows were exchanged an odd number of
// times).
template <class F>
void for_factored_matrices(const char* op, const Tensor& A, const F& f) {
  const int64_t n = A.size(-1);
  if (fits_lanes(A)) {
    return for_lanes(A, false, 0, [&](auto& lanes, int64_t first, int live) {
      lanes.factor();
      for (int lane = 0; lane < live; lane++) {
        f(first + lane, [&](int64_t i) { return lanes.at(i, i, lane); }, lanes.sign(lane) < 0);
      }
    });
  }
  for_matrices(op, A, [&](auto tag, int64_t b) {
    using T = typename decltype(tag)::type;
    const Matrix<T> a{Window<T>(A, b)};
    const int size = a.rows();
    const Scratch<int> pivots(std::max(1, size));
    bool odd = false;
    if (n != 0) {
      lapack::getrf(size, size, a.data(), a.leading(), pivots.data());
      for (int i = 0; i < size; i++) {
        odd ^= pivots.data()[i] != i + 1;
      }
    }
    f(b, [&](int64_t i) { return a.at(i, i); }, odd);
  });
}

}  // namespace

void linalg_det(const Tensor& out, const Tensor& A) {
  for_factored_matrices("linalg.det", A, [&](int64_t b, const auto& diagonal, bool odd) {
    using T = decltype(diagonal(0));
    T product(odd ? -1 : 1);
    for (int64_t i = 0; i < A.size(-1); i++) {
      product = product * diagonal(i);
    }
    out.data<T>()[batch_offset(out, 0, b)] = product;
  });
}

void linalg_slogdet(const Tensor& out_sign, const Tensor& out_logabsdet, const Tensor& A) {
  for_factored_matrices("linalg.slogdet", A, [&](int64_t b, const auto& diagonal, bool odd) {
    using T = decltype(diagonal(0));
    using R = real_t<T>;
    T sign(odd ? -1 : 1);
    R sum = 0;
    for (int64_t i = 0; i < A.size(-1); i++) {
      const T x = diagonal(i);
      R size;
      if constexpr (is_complex_v<T>) {
        size = std::hypot(x.re, x.im);
        sign = size == R(0) ? T(0) : sign * T(x.re / size, x.im / size);
      } else {
        size = std::abs(x);
        sign = x > 0 ? sign : x < 0 ? -sign : x * sign;
      }
      sum += std::log(size);
    }
    out_sign.data<T>()[batch_offset(out_sign, 0, b)] = sign;
    out_logabsdet.data<R>()[batch_offset(out_logabsdet, 0, b)] = sum;
  });
}

}  // namespace rushlight::cpu
