// Operators on tensors and numbers, in terms of the ops.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

#define RL_BINARY_OPERATOR(symbol, function)                                                 \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) {                          \
    return function(a, make_number(b));                                                      \
  }                                                                                          \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) {                          \
    return function(make_number(a), b);                                                      \
  }
RL_BINARY_OPERATOR(+, add)
RL_BINARY_OPERATOR(-, sub)
RL_BINARY_OPERATOR(*, mul)
RL_BINARY_OPERATOR(/, div)
RL_BINARY_OPERATOR(%, remainder)
RL_BINARY_OPERATOR(==, eq)
RL_BINARY_OPERATOR(!=, ne)
RL_BINARY_OPERATOR(<, lt)
RL_BINARY_OPERATOR(<=, le)
RL_BINARY_OPERATOR(>, gt)
RL_BINARY_OPERATOR(>=, ge)
RL_BINARY_OPERATOR(&, bitwise_and)
RL_BINARY_OPERATOR(|, bitwise_or)
RL_BINARY_OPERATOR(^, bitwise_xor)
#undef RL_BINARY_OPERATOR

#define RL_UPDATE_OPERATOR(symbol, function)                                                  \
  inline Tensor& operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
  inline Tensor& operator symbol(const Tensor& a, const Scalar& b) {                          \
    return function(a, make_number(b));                                                       \
  }
RL_UPDATE_OPERATOR(+=, add_)
RL_UPDATE_OPERATOR(-=, sub_)
RL_UPDATE_OPERATOR(*=, mul_)
RL_UPDATE_OPERATOR(/=, div_)
RL_UPDATE_OPERATOR(&=, bitwise_and_)
RL_UPDATE_OPERATOR(|=, bitwise_or_)
RL_UPDATE_OPERATOR(^=, bitwise_xor_)
#undef RL_UPDATE_OPERATOR

inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }

}  // namespace rushlight
