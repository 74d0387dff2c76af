// The walk of the lapack family over its batches: each matrix is brought into column-major memory,
// given to a routine, and results are written where they belong. Matrices are shared out to
// threads; LAPACK itself runs on one, so bits do not depend on their number.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/lapack.h"
#include "cpu/scratch.h"

namespace rushlight::cpu {

inline constexpr uint32_t field_dtypes = set_floats | set_complexes;

inline int64_t batch_count(const Tensor& t, int64_t own) {
  int64_t n = 1;
  for (int64_t d = 0; d + own < t.dim(); d++) {
    n *= t.size(d);
  }
  return n;
}

// The place of item `b` of the leading dimensions, in elements.
inline int64_t batch_offset(const Tensor& t, int64_t own, int64_t b) {
  const IntArrayRef sizes = t.sizes();
  const IntArrayRef strides = t.strides();
  int64_t offset = 0;
  for (int64_t d = t.dim() - own - 1; d >= 0; d--) {
    offset += b % sizes[d] * strides[d];
    b /= sizes[d];
  }
  return offset;
}

// Matrix `b` of a tensor; element (i, j) is data[i * row + j * col].
template <class T>
struct Window {
  Window(const Tensor& t, int64_t b)
      : data(t.data<T>() + batch_offset(t, 2, b)),
        rows(t.size(-2)),
        cols(t.size(-1)),
        row(t.stride(-2)),
        col(t.stride(-1)) {}
  // Of the type of a sample.
  Window(const Tensor& t, int64_t b, const T&) : Window(t, b) {}
  Window transpose() const {
    Window w = *this;
    std::swap(w.rows, w.cols);
    std::swap(w.row, w.col);
    return w;
  }
  T& at(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  T* data;
  int64_t rows, cols, row, col;
};

template <class T>
T* vector_at(const Tensor& t, int64_t b) {
  return t.data<T>() + batch_offset(t, 1, b);
}

// A column-major matrix of our own.
template <class T>
class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), memory_(rows * cols) {}
  explicit Matrix(const Window<T>& from) : Matrix(from.rows, from.cols) { load(from); }
  void load(const Window<T>& from) const {
    for (int64_t j = 0; j < from.cols; j++) {
      for (int64_t i = 0; i < from.rows; i++) {
        at(i, j) = from.at(i, j);
      }
    }
  }
  void store(const Window<T>& to) const {
    if (to.row == 1 && to.rows != 0) {
      for (int64_t j = 0; j < to.cols; j++) {
        std::copy_n(&at(0, j), to.rows, &to.at(0, j));
      }
      return;
    }
    for (int64_t i = 0; i < to.rows; i++) {
      for (int64_t j = 0; j < to.cols; j++) {
        to.at(i, j) = at(i, j);
      }
    }
  }
  T& at(int64_t i, int64_t j) const { return memory_.data()[i + j * rows_]; }
  T* data() const { return memory_.data(); }
  int rows() const { return static_cast<int>(rows_); }
  int cols() const { return static_cast<int>(cols_); }
  int leading() const { return static_cast<int>(std::max<int64_t>(1, rows_)); }
  bool is_finite() const {
    for (int64_t i = 0; i < rows_ * cols_; i++) {
      const T x = memory_.data()[i];
      if constexpr (is_complex_v<T>) {
        if (!std::isfinite(x.re) || !std::isfinite(x.im)) {
          return false;
        }
      } else if (!std::isfinite(x)) {
        return false;
      }
    }
    return true;
  }

 private:
  int64_t rows_;
  int64_t cols_;
  Scratch<T> memory_;
};

// Calls f(tag, b) for every matrix of the batch of `like`; small ones are taken several at a time.
template <class F>
void for_matrices(const char* op, const Tensor& like, const F& f) {
  const int64_t longest = std::max<int64_t>(1, std::max(like.size(-1), like.size(-2)));
  const int64_t grain =
      longest > 32 ? 1 : std::max<int64_t>(1, 50000 / (longest * longest * longest));
  visit_dtype<field_dtypes>(op, like.dtype(), [&](auto tag) {
    parallel_for(0, batch_count(like, 2), grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        f(tag, b);
      }
    });
  });
}

// A flag for each matrix, whatever the strides of the tensor that holds them.
inline int32_t& flag(const Tensor& info, int64_t b) {
  return info.data<int32_t>()[batch_offset(info, 0, b)];
}

}  // namespace rushlight::cpu
