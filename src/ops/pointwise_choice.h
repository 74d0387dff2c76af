// What entries of ops/pointwise.py say in C++: checks (`check=`), and what decides between formulas
// (`when=`, `let=`) or gives their attributes. The same for all devices.
//
// A condition on the value of an operand can hold only where that operand is one element in the
// host's memory: what lies on another device cannot be looked at without waiting for it.
#pragma once

#include "core/iterator.h"

namespace rushlight {

// ---- checks ----

// neg and sub are refused for bool.
void check_no_bool(const Tensor& self);
void check_no_bool(const Tensor& self, const Tensor& other);
// NotImplementedError where a tensor's own dtype is not in the set, whatever it is promoted to.
void check_dtype(const char* op, uint32_t dtypes, const Tensor& self);
// heaviside does not promote.
void check_equal_dtypes(const char* op, const Tensor& self, const Tensor& other);
// hardtanh has no negative limits for numbers without a sign.
void check_limits(const Tensor& self, const Scalar& low, const Scalar& high);
// gelu: "none" or "tanh".
void check_approximate(std::string_view approximate);
// softshrink moves by a number that is not negative and that self's dtype holds.
void check_lambda(const Tensor& self, const Scalar& lambd);
// addcdiv does not divide integers.
void check_true_division(const Tensor& tensor1, const Tensor& tensor2);
// `name` is not promoted: RuntimeError where it is no number and of another dtype than self.
void check_same_dtype(const Tensor& self, const char* name, const Tensor& other);
// What one tensor gives, unpromoted, is not written into another dtype (magnitudes: the real one).
inline void check_out_dtype(const TensorIterator& it) {
  const ScalarType common = it.common_dtype();
  RL_CHECK(it.dtype(0) == common || it.dtype(0) == to_real(common), "Found dtype ",
           enum_name(it.dtype(0)), " but expected ", enum_name(common), " for out= of ", it.op());
}
// Integers may not be divided by zero (operand 2), where the host can see it: on other devices a
// zero divisor gives the dividend.
void check_divisor(const TensorIterator& it);
// A bound that is a number must be one of the dtype's.
void check_bound(const TensorIterator& it, int operand);
// A power of integers that is a number (operand 2): one of the dtype's, and not negative.
void check_power(const TensorIterator& it);

inline bool is_one(const Scalar& s) { return s.is_integral() && s.as<int64_t>() == 1; }
// `alpha` and `value` are of the kind and range of the result; True is an alpha of bools alone.
void check_factor(const TensorIterator& it, const char* name, const Scalar& factor);
void check_bool_alpha(const TensorIterator& it);
inline void check_alpha(const TensorIterator& it, const Scalar& alpha) {
  if (!is_one(alpha)) {
    check_factor(it, "alpha", alpha);
  }
  if (alpha.is_bool()) {
    check_bool_alpha(it);
  }
}
inline void check_value(const TensorIterator& it, const Scalar& value) {
  if (!is_one(value)) {
    check_factor(it, "value", value);
  }
}

// ---- values ----

// The value of an operand that is one element, read by all; NaN where it is not or nobody can look.
Scalar host_number(const TensorIterator& it, int operand);
bool is_nan(const Scalar& s);
// The same as a real number; NaN where it is complex.
double real_host_number(const TensorIterator& it, int operand);
// 10^|decimals|.
double scale_of(int64_t decimals);
// The largest finite number.
double largest_number(ScalarType t);

}  // namespace rushlight
