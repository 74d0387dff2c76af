// Products of matrices for kernels that are made of them.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cuda {

// out = beta * out + alpha * left right, for matrices [rows, columns] or batches of them
// [batch, rows, columns]; a batch of one is broadcast. `out` has the operands' dtype, or is float32
// where they are 16-bit floats. A bias is added to each row; false, with nothing done, where
// cuBLASLt has no way to add it.
bool multiply(const char* op, const Tensor& out, const Tensor& left, const Tensor& right,
              const Scalar& beta, const Scalar& alpha, const Tensor& bias = {});

// The same for integers, without a bias; all have three dimensions. (integer_products.cu)
void multiply_integers(const char* op, const Tensor& out, const Tensor& left, const Tensor& right,
                       const Scalar& beta, const Scalar& alpha);

}  // namespace rushlight::cuda
