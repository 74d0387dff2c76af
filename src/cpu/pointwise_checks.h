// What the hand-written pointwise kernels of src/cpu/isa/pointwise/pointwise.cpp ask of their
// operands. Apart from them, because the making of messages is no code for three instruction sets.
#pragma once

#include "core/iterator.h"

// RL_API: other devices check the same.
namespace rushlight::cpu {

// `alpha` and `value`: of the kind and range of the result.
RL_API void check_factor(const TensorIterator& it, const Scalar& factor, const char* name);
// neg and sub are refused for bool.
RL_API void check_no_bool(const TensorIterator& it);
// addcdiv does not divide integers.
RL_API void check_true_division(const TensorIterator& it);
// lerp does not promote.
RL_API void check_one_dtype(const TensorIterator& it);
// Integers may not be divided by zero (operand 2): RuntimeError before anything is written.
RL_API void check_divisor(const TensorIterator& it);
// The exponent (operand 2, one element) as a real number, NaN where it is complex.
RL_API double checked_power(const TensorIterator& it);

// The value of an operand that is one element, read by all.
Scalar scalar_operand(const TensorIterator& it, int operand);
bool is_nan(const Scalar& s);

}  // namespace rushlight::cpu
