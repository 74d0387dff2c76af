// Checks that the functions of the lapack family share. Messages start with the public name
// ("linalg.inv: ...").
#pragma once

#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight {

// At least two dimensions, floating or complex of 32 bits and more, sizes that LAPACK can count.
void check_matrices(const char* name, const Tensor& a, const char* argument = "A");
void check_square(const char* name, const Tensor& a, const char* argument = "A");
// Of A and B, or what stands for A.
void check_same_dtype(const char* name, const Tensor& a, const Tensor& b, const char* a_name = "A");
void check_linear_dtype(const char* name, const Tensor& a, bool low_precision = false);

// Leading dimensions, and sizes made of them and two more.
IntArrayRef leading_sizes(const Tensor& matrices, int64_t own = 2);
DimVector with_matrix(IntArrayRef batch, int64_t rows, int64_t cols);

// What a factorisation's `info` means when it is not 0.
enum class Failure { Inverse, Solve, Cholesky, Svd, Eigen, Lstsq, Lu, Ldl };
// LinAlgError for the first matrix whose info is not 0. Meta tensors pass.
void check_info(const char* name, Failure failure, const Tensor& info);

// `linalg.solve` takes B as vectors where it has one dimension less than A, and A's sizes.
bool is_vectors(const Tensor& a, const Tensor& b);

}  // namespace rushlight
