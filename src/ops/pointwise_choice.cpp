#include "ops/pointwise_choice.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "kernels/read_element.h"

namespace rushlight {

void check_factor(const TensorIterator& it, const char* name, const Scalar& factor) {
  const ScalarType t = it.common_dtype();
  RL_CHECK(is_differentiable(t) || factor.is_integral(true), name,
           " must be an integer for integral input tensors, not ", factor);
  RL_CHECK(is_complex(t) || !factor.is_complex(), name,
           " must be real for non-complex input tensors, not ", factor);
  factor.check_fits(t);
}

void check_bool_alpha(const TensorIterator& it) {
  RL_CHECK(it.common_dtype() == kBool, "Boolean alpha only supported for Boolean results.");
}

void check_approximate(std::string_view approximate) {
  RL_CHECK(approximate == "none" || approximate == "tanh",
           "gelu: approximate argument must be 'none' or 'tanh', not '", approximate, "'");
}

void check_lambda(const Tensor& self, const Scalar& lambd) {
  const double value = lambd.as<double>();
  const bool finite = visit_dtype<set_all>("softshrink", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return !is_real_float_v<T> || std::isfinite(convert<double>(convert<T>(value)));
  });
  RL_CHECK(value >= 0 && finite, "softshrink: lambda must be in range [0, the largest ",
           enum_name(self.dtype()), "], but found ", value);
}

namespace {
constexpr const char* inverts = "`~` or logical_not() inverts a mask";
}

void check_no_bool(const Tensor& self) {
  RL_CHECK(self.dtype() != kBool, "neg: a bool tensor has no negative: ", inverts);
}

void check_no_bool(const Tensor& self, const Tensor& other) {
  const bool first = self.dtype() == kBool;
  const bool second = other.dtype() == kBool;
  RL_CHECK(!(first && second),
           "sub: bool tensors are not subtracted: `^` or "
           "logical_xor() tells where they differ");
  RL_CHECK(!first && !second, "sub: a bool tensor is not subtracted: ", inverts);
}

void check_dtype(const char* op, uint32_t dtypes, const Tensor& self) {
  if (!contains(dtypes, self.dtype())) {
    dtype_not_implemented(op, self.dtype());
  }
}

void check_equal_dtypes(const char* op, const Tensor& self, const Tensor& other) {
  RL_CHECK(self.dtype() == other.dtype(), op,
           " is not implemented for tensors with different dtypes, got ", enum_name(self.dtype()),
           " and ", enum_name(other.dtype()));
}

void check_limits(const Tensor& self, const Scalar& low, const Scalar& high) {
  RL_CHECK(self.dtype() != kUInt8 || (low.as<int64_t>() >= 0 && high.as<int64_t>() >= 0),
           "hardtanh of an unsigned type with negative limits: ", str(low), ", ", str(high));
}

void check_true_division(const Tensor& tensor1, const Tensor& tensor2) {
  RL_CHECK(is_differentiable(tensor1.dtype()) || is_differentiable(tensor2.dtype()),
           "Integer division with addcdiv is no longer supported: for integers write "
           "input + value * torch.div(tensor1, tensor2, rounding_mode='trunc')");
}

void check_same_dtype(const Tensor& self, const char* name, const Tensor& other) {
  RL_CHECK(other.impl()->is_wrapped_number() || other.dtype() == self.dtype(), "expected dtype ",
           dtype_info(self.dtype()).alias, " for `", name, "` but got dtype ",
           dtype_info(other.dtype()).alias);
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

Scalar host_number(const TensorIterator& it, int operand) {
  if (!it.is_on_host(operand) || !it.is_scalar(operand)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return visit_dtype<set_stored>("load", it.dtype(operand), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Scalar(read_element(reinterpret_cast<const T*>(it.data(operand))));
  });
}

bool is_nan(const Scalar& s) { return s.is_floating_point() && std::isnan(s.as<double>()); }

double real_host_number(const TensorIterator& it, int operand) {
  const auto value = host_number(it, operand).as<complex<double>>();
  return value.im == 0 ? value.re : std::numeric_limits<double>::quiet_NaN();
}

double scale_of(int64_t decimals) {
  return std::pow(10.0, std::abs(static_cast<double>(decimals)));
}

double largest_number(ScalarType t) { return float_limits(is_floating(t) ? t : kFloat64).max; }

void check_bound(const TensorIterator& it, int operand) {
  if (it.is_number(operand)) {
    host_number(it, operand).check_fits(it.common_dtype());
  }
}

void check_divisor(const TensorIterator& it) {
  if (!is_integral(it.common_dtype()) || !it.is_on_host(2) || it.numel() == 0 ||
      it.device().is_meta()) {
    return;
  }
  bool found = false;
  if (it.is_scalar(2)) {  // converted first: 256 is a zero of uint8
    const Scalar divisor = host_number(it, 2);
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

void check_power(const TensorIterator& it) {
  if (is_integral(it.common_dtype()) && it.is_number(2)) {
    RL_CHECK(!(real_host_number(it, 2) < 0),
             "Integers to negative integer powers are not allowed.");
    check_bound(it, 2);
  }
}

}  // namespace rushlight
