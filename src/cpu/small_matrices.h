// LU with partial pivoting and Cholesky's factor for small real matrices, for which a call of
// LAPACK costs more than the arithmetic: as many matrices as a vector has lanes are factored side
// by side. The conventions are LAPACK's: pivots count from 1, and a matrix's info is the number of
// its first pivot that is zero, or not positive, or 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cpu/factorize.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {

// Beyond this LAPACK's blocks win.
inline constexpr int64_t small_matrix = 16;

template <class T>
class MatrixLanes {
 public:
  static constexpr int lanes = 16 / static_cast<int>(sizeof(T));
  using Int = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef T V __attribute__((vector_size(16), may_alias));
  typedef Int Flags __attribute__((vector_size(16), may_alias));

  // With `right` more columns, which the steps of the elimination are applied to as well.
  MatrixLanes(int64_t rows, int64_t cols, int64_t right)
      : rows_(rows),
        cols_(cols),
        width_(cols + right),
        memory_(rows * width_ * lanes),
        pivots_(std::min(rows, cols) * lanes) {}

  V& at(int64_t i, int64_t j) const { return reinterpret_cast<V*>(numbers(i))[j]; }
  T& at(int64_t i, int64_t j, int lane) const { return numbers(i)[j * lanes + lane]; }
  void fill(int64_t i, int64_t j, T x) const { at(i, j) = V{} + x; }
  int32_t pivot(int64_t k, int lane) const {
    return static_cast<int32_t>(pivots_[k * lanes + lane]);
  }
  int32_t info(int lane) const { return static_cast<int32_t>(info_[lane]); }
  // 1, or -1 after an odd number of exchanges.
  T sign(int lane) const { return sign_[lane]; }

  void factor() {
    info_ = Flags{};
    sign_ = V{} + 1;
    for (int64_t k = 0; k < std::min(rows_, cols_); k++) {
      pivot_row(k);
      const V pivot = at(k, k);
      const Flags zero = pivot == 0;
      info_ = zero & (info_ == 0) ? Flags{} + static_cast<Int>(k + 1) : info_;
      for (int64_t i = k + 1; i < rows_; i++) {
        const V factor = zero ? at(i, k) : at(i, k) / pivot;
        at(i, k) = factor;
        const V* const from = &at(k, 0);
        V* const to = &at(i, 0);
        for (int64_t j = k + 1; j < width_; j++) {
          to[j] -= factor * from[j];
        }
      }
    }
  }

  // L of a symmetric matrix L L^T, whose lower half is read, with zeros above it.
  void factor_symmetric() {
    info_ = Flags{};
    for (int64_t j = 0; j < cols_; j++) {
      V square = at(j, j);
      for (int64_t k = 0; k < j; k++) {
        square -= at(j, k) * at(j, k);
        at(k, j) = V{};
      }
      const Flags positive = square > 0;
      info_ = ~positive & (info_ == 0) ? Flags{} + static_cast<Int>(j + 1) : info_;
      for (int lane = 0; lane < lanes; lane++) {
        at(j, j, lane) = std::sqrt(square[lane]);
      }
      for (int64_t i = j + 1; i < rows_; i++) {
        V sum = at(i, j);
        for (int64_t k = 0; k < j; k++) {
          sum -= at(i, k) * at(j, k);
        }
        at(i, j) = sum / at(j, j);
      }
    }
  }

  // After factor(), the columns on the right become the solutions for them.
  void solve() const {
    for (int64_t k = rows_ - 1; k >= 0; k--) {
      V* const row = &at(k, 0);
      for (int64_t i = k + 1; i < rows_; i++) {
        const V* const solved = &at(i, 0);
        for (int64_t j = cols_; j < width_; j++) {
          row[j] -= row[i] * solved[j];
        }
      }
      for (int64_t j = cols_; j < width_; j++) {
        row[j] = row[j] / row[k];
      }
    }
  }

 private:
  static V size(V x) { return x < 0 ? -x : x; }
  T* numbers(int64_t i) const { return memory_ + i * width_ * lanes; }

  // Brings the row with the largest element of column k to row k, in each matrix by itself.
  void pivot_row(int64_t k) {
    V best = size(at(k, k));
    Flags row = Flags{} + static_cast<Int>(k);
    for (int64_t i = k + 1; i < rows_; i++) {
      const V here = size(at(i, k));
      const Flags worse = here <= best;  // NaN counts as large
      best = worse ? best : here;
      row = worse ? row : Flags{} + static_cast<Int>(i);
    }
    sign_ = row == static_cast<Int>(k) ? sign_ : -sign_;
    for (int lane = 0; lane < lanes; lane++) {
      pivots_[k * lanes + lane] = row[lane] + 1;
      T* const here = numbers(k) + lane;
      T* const other = numbers(row[lane]) + lane;
      for (int64_t j = 0; j < width_ && other != here; j++) {
        std::swap(here[j * lanes], other[j * lanes]);
      }
    }
  }

  int64_t rows_;
  int64_t cols_;
  int64_t width_;
  Scratch<T> memory_;
  Scratch<Int> pivots_;
  Flags info_;
  V sign_;
};

// Whether for_lanes takes these matrices.
inline bool fits_lanes(const Tensor& t) {
  const int64_t longest = std::max(t.size(-1), t.size(-2));
  const bool real = t.dtype() == kFloat32 || t.dtype() == kFloat64;
  return real && longest <= small_matrix && t.numel() != 0;
}

// Calls f(lanes, first matrix of the batch, how many) for groups of small matrices, which are in
// the lanes already; `transposed`: as their transposes. `right`: columns that f fills itself.
template <class F>
void for_lanes(const Tensor& t, bool transposed, int64_t right, const F& f) {
  const int64_t batches = batch_count(t, 2);
  const int64_t rows = t.size(-2);
  const int64_t cols = t.size(-1);
  visit_dtype<set_floats>("small matrices", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Lanes = MatrixLanes<T>;
    const int64_t work = rows * cols * (cols + right) * Lanes::lanes;
    parallel_for(
        0, num_chunks(0, batches, Lanes::lanes), 1 + 20000 / work, [&](int64_t begin, int64_t end) {
          Lanes lanes(transposed ? cols : rows, transposed ? rows : cols, right);
          for (int64_t group = begin; group < end; group++) {
            const int64_t first = group * Lanes::lanes;
            const auto live = static_cast<int>(std::min<int64_t>(Lanes::lanes, batches - first));
            for (int lane = 0; lane < Lanes::lanes; lane++) {
              Window<T> from(t, first + std::min(lane, live - 1));
              from = transposed ? from.transpose() : from;
              for (int64_t i = 0; i < from.rows; i++) {
                for (int64_t j = 0; j < from.cols; j++) {
                  lanes.at(i, j, lane) = from.at(i, j);
                }
              }
            }
            f(lanes, first, live);
          }
        });
  });
}

// The columns on the right of a lane are `from`, or go to `to`.
template <class Lanes, class T>
void load_right(const Lanes& lanes, int lane, int64_t first, const Window<T>& from) {
  for (int64_t i = 0; i < from.rows; i++) {
    for (int64_t j = 0; j < from.cols; j++) {
      lanes.at(i, first + j, lane) = from.at(i, j);
    }
  }
}
template <class Lanes, class T>
void store_columns(const Lanes& lanes, int lane, int64_t first, const Window<T>& to) {
  for (int64_t i = 0; i < to.rows; i++) {
    for (int64_t j = 0; j < to.cols; j++) {
      to.at(i, j) = lanes.at(i, first + j, lane);
    }
  }
}

}  // namespace rushlight::cpu
