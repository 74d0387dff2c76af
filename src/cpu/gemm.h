// Matrix products on raw memory: the one door through which ops, convolutions and recurrences
// multiply. `gemm` picks the fastest way for the dtype, the layout and the size (gemm.cpp holds the
// list), and cuts the work into tiles that depend on the problem alone, so that the bits of the
// result do not depend on the number of threads.
#pragma once

#include <string>

#include <rushlight/dtype.h>
#include <rushlight/scalar.h>

namespace rushlight::cpu {

// A batch of matrices; strides in elements, any of them may be 0 or negative.
struct Matrices {
  void* data;
  int64_t row;
  int64_t col;
  int64_t batch = 0;
  int64_t outer = 0;  // where a batch has two strides: Gemm::inner
};

// What is added to a product: element (i, j) lies at i * row + j * col. One of these is 0, the
// other 1: it is a row that all rows get, or a column that all columns get.
struct GemmBias {
  const void* data = nullptr;
  int64_t row = 0;
  int64_t col = 1;

  explicit operator bool() const { return data != nullptr; }
  template <class T>
  const T* at(int64_t i, int64_t j) const {
    return static_cast<const T*>(data) + i * row + j * col;
  }
};

// c = alpha * a @ b + beta * c, where a is m x k, b is k x n and c is m x n. Where beta is 0, c is
// not read.
struct Gemm {
  ScalarType dtype;  // of all three
  int64_t batch = 1;
  int64_t m;
  int64_t n;
  int64_t k;
  Matrices a;
  Matrices b;
  Matrices c;  // distinct elements, apart from a and b
  Scalar alpha = 1;
  Scalar beta = 0;
  // Matrix b of the batch lies at b / inner * outer + b % inner * batch.
  int64_t inner = INT64_MAX;
  GemmBias bias = {};  // only with beta 0

  std::string describe() const;
};

void gemm(const Gemm& problem);
// c = a @ b of one matrix each, where a holds int8 or uint8, b int8 and c (the problem's dtype)
// int32. False, and nothing done, where no way takes it.
bool bytes_gemm(const Gemm& problem, ScalarType a);
// Whether the processor has products of these 16-bit floats.
bool uses_own_gemm(const Gemm& problem);

}  // namespace rushlight::cpu
