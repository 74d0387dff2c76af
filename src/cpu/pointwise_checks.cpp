#include "cpu/pointwise_checks.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "kernels/read_element.h"

namespace rushlight::cpu {

void check_factor(const TensorIterator& it, const Scalar& factor, const char* name) {
  const ScalarType t = it.common_dtype();
  RL_CHECK(t == kBool || !factor.is_bool(), "Boolean ", name,
           " only supported for Boolean results.");
  RL_CHECK(is_differentiable(t) || factor.is_integral(true),
           "For integral input tensors, argument ", name, " must not be a floating point number.");
  RL_CHECK(is_complex(t) || !factor.is_complex(), "For non-complex input tensors, argument ", name,
           " must not be a complex number.");
  factor.check_fits(t);
}

void check_no_bool(const TensorIterator& it) {
  const bool first = it.dtype(1) == kBool;
  if (it.num_operands() == 2) {
    RL_CHECK(!first,
             "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
             "invert a mask, use the `~` or `logical_not()` operator instead.");
    return;
  }
  const bool second = it.dtype(2) == kBool;
  RL_CHECK(!(first && second),
           "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
           "`logical_xor()` operator instead.");
  RL_CHECK(
      !first && !second,
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
      "invert a mask, use the `~` or `logical_not()` operator instead.");
}

void check_true_division(const TensorIterator& it) {
  RL_CHECK(is_differentiable(it.common_dtype()),
           "Integer division with addcdiv is no longer supported: for integers write "
           "input + value * torch.div(tensor1, tensor2, rounding_mode='trunc')");
}

void check_one_dtype(const TensorIterator& it) {
  const char* const names[] = {"self", "end", "weight"};
  for (int i = 2; i < it.num_operands(); i++) {
    RL_CHECK(it.is_number(i) || it.dtype(i) == it.dtype(1), "expected dtype ",
             dtype_info(it.dtype(1)).alias, " for `", names[i - 1], "` but got dtype ",
             dtype_info(it.dtype(i)).alias);
  }
}

namespace {

// Of elements side by side.
template <class T>
bool has_zero(const T* x, int64_t n) {
  std::atomic<bool> found = false;
  parallel_for(0, n, 1 << 16, [&](int64_t begin, int64_t end) {
    constexpr int64_t block = 64;  // a loop of known length becomes vectors
    T zeros = 0;
    int64_t i = begin;
    for (; i + block <= end; i += block) {
      for (int64_t j = 0; j < block; j++) {
        zeros |= static_cast<T>(x[i + j] == 0);
      }
    }
    for (; i < end; i++) {
      zeros |= static_cast<T>(x[i] == 0);
    }
    if (zeros != 0) {
      found = true;
    }
  });
  return found;
}

template <class T>
bool any_zero(const TensorIterator& it, int operand) {
  const IntArrayRef shape = it.shape();
  const IntArrayRef strides = it.strides(operand);
  if (it.dim() == 1 && strides[0] == static_cast<int64_t>(sizeof(T))) {
    return has_zero(reinterpret_cast<const T*>(it.data(operand)), shape[0]);
  }
  int64_t at[TensorIterator::max_dims] = {};
  const char* data = it.data(operand);
  const int64_t rows = it.numel() / shape[0];
  for (int64_t row = 0; row < rows; row++) {
    bool found = false;
    for (int64_t i = 0; i < (strides[0] == 0 ? 1 : shape[0]); i++) {
      found |= *reinterpret_cast<const T*>(data + i * strides[0]) == T(0);
    }
    if (found) {
      return true;
    }
    for (int d = 1; d < it.dim(); d++) {
      data += strides[d];
      if (++at[d] < shape[d]) {
        break;
      }
      data -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return false;
}

}  // namespace

Scalar scalar_operand(const TensorIterator& it, int operand) {
  return visit_dtype<set_all>("load", it.dtype(operand), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Scalar(read_element(reinterpret_cast<const T*>(it.data(operand))));
  });
}

bool is_nan(const Scalar& s) { return s.is_floating_point() && std::isnan(s.as<double>()); }

void check_divisor(const TensorIterator& it) {
  if (!is_integral(it.common_dtype())) {
    return;
  }
  bool found = false;
  if (it.is_scalar(2)) {  // converted first: 256 is a zero of uint8
    const Scalar divisor = scalar_operand(it, 2);
    found = visit_dtype<set_integers>("divide", it.common_dtype(), [&](auto tag) {
      return divisor.as<typename decltype(tag)::type>() == 0;
    });
  } else {
    switch (it.dtype(2)) {
      case kBool:
      case kUInt8:
        found = any_zero<uint8_t>(it, 2);
        break;
      case kInt8:
        found = any_zero<int8_t>(it, 2);
        break;
      case kInt16:
        found = any_zero<int16_t>(it, 2);
        break;
      case kInt32:
        found = any_zero<int32_t>(it, 2);
        break;
      default:
        found = any_zero<int64_t>(it, 2);
        break;
    }
  }
  RL_CHECK(!found, "ZeroDivisionError");
}

double checked_power(const TensorIterator& it) {
  const auto value = scalar_operand(it, 2).as<complex<double>>();
  if (value.im != 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  RL_CHECK(!is_integral(it.common_dtype()) || value.re >= 0 || !it.is_number(2),
           "Integers to negative integer powers are not allowed.");
  return value.re;
}

}  // namespace rushlight::cpu
