// Composites of the comparison family.
#include <rushlight/ops.h>

#include "core/refusals.h"
#include "generated/contracts.h"
#include "ops/contracts.h"

namespace rushlight {

namespace {

void check_clamp(const Tensor& self, bool has_bound) {
  RL_CHECK(has_bound, "clamp has nothing to do: At least one of 'min' or 'max' must not be None");
  RL_CHECK_NOT_IMPLEMENTED(!is_complex(self.dtype()), "clamp is not supported for complex types");
}

}  // namespace

namespace composite {

Tensor isreal(const Tensor& self) {
  return is_complex(self.dtype()) ? rushlight::imag(self).eq(0)
                                  : ones_like(self, TensorOptions(kBool));
}
Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_complex(self.dtype())) {  // each part by itself
    const Tensor parts = rushlight::view_as_real(self);
    return rushlight::view_as_complex(rushlight::_nan_to_num(parts, nan, posinf, neginf));
  }
  return is_floating(self.dtype()) ? rushlight::_nan_to_num(self, nan, posinf, neginf)
                                   : self.clone();
}
Tensor& nan_to_num_(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  if (is_complex(self.dtype())) {
    rushlight::_nan_to_num_(rushlight::view_as_real(self), nan, posinf, neginf);
    return const_cast<Tensor&>(self);
  }
  return is_floating(self.dtype()) ? rushlight::_nan_to_num_(self, nan, posinf, neginf)
                                   : const_cast<Tensor&>(self);
}

Tensor clamp(const Tensor& self, const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  check_clamp(self, min.has_value() || max.has_value());
  if (!min.has_value()) {
    return rushlight::clamp_max(self, *max);
  }
  if (!max.has_value()) {
    return rushlight::clamp_min(self, *min);
  }
  return rushlight::_clamp(self, *min, *max);
}
Tensor& clamp_(const Tensor& self, const std::optional<Scalar>& min,
               const std::optional<Scalar>& max) {
  check_clamp(self, min.has_value() || max.has_value());
  if (!min.has_value()) {
    return rushlight::clamp_max_(self, *max);
  }
  if (!max.has_value()) {
    return rushlight::clamp_min_(self, *min);
  }
  return rushlight::_clamp_(self, *min, *max);
}
Tensor clamp_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check_clamp(self, min.defined() || max.defined());
  return !min.defined()   ? rushlight::clamp_max(self, max)
         : !max.defined() ? rushlight::clamp_min(self, min)
                          : rushlight::_clamp(self, min, max);
}
Tensor& clamp__Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check_clamp(self, min.defined() || max.defined());
  return !min.defined()   ? rushlight::clamp_max_(self, max)
         : !max.defined() ? rushlight::clamp_min_(self, min)
                          : rushlight::_clamp_(self, min, max);
}
Tensor clip(const Tensor& self, const std::optional<Scalar>& min,
            const std::optional<Scalar>& max) {
  return rushlight::clamp(self, min, max);
}
Tensor& clip_(const Tensor& self, const std::optional<Scalar>& min,
              const std::optional<Scalar>& max) {
  return rushlight::clamp_(self, min, max);
}
Tensor clip_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  return rushlight::clamp(self, min, max);
}
Tensor& clip__Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  return rushlight::clamp_(self, min, max);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  RL_CHECK(self.dtype() == other.dtype(), enum_name(self.dtype()), " did not match ",
           enum_name(other.dtype()));
  RL_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  RL_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = self.eq(other);
  if (equal_nan && is_differentiable(self.dtype())) {
    close = close.logical_or(self.isnan().logical_and(other.isnan()));
  }
  if (rtol == 0 && atol == 0) {
    return close;
  }
  const ScalarType t = self.dtype();
  const bool widen = !is_differentiable(t);
  const Tensor a = widen ? self.to(get_default_dtype()) : self;
  const Tensor b = widen ? other.to(get_default_dtype()) : other;
  const Tensor distance = (a - b).abs();
  return close.logical_or(distance.isfinite().logical_and(distance.le(b.abs() * rtol + atol)));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return rushlight::isclose(self, other, rtol, atol, equal_nan).all().item().toBool();
}
bool equal(const Tensor& self, const Tensor& other) {
  check_same_device("equal", self.device(), other.device());
  if (!(self.sizes() == other.sizes())) {
    return false;
  }
  // Bytes decide only where equal bytes mean equal numbers: not for NaN.
  if (self.is_same(other) && !is_differentiable(self.dtype())) {
    return true;
  }
  return self.numel() == 0 || self.eq(other).all().item().toBool();
}

}  // namespace composite

}  // namespace rushlight
