// Scaled gradients.
#include <rushlight/ops.h>

#include "core/op_support.h"
#include "generated/contracts.h"

namespace rushlight {

void composite::_amp_foreach_non_finite_check_and_unscale_(TensorList self, const Tensor& found_inf,
                                                           const Tensor& inv_scale) {
  const char* const op = "_amp_foreach_non_finite_check_and_unscale_";
  for (const auto& [name, t] : {std::pair("found_inf", &found_inf), {"inv_scale", &inv_scale}}) {
    RL_CHECK(t->numel() == 1, op, ": ", name, " must be a 1-element tensor, but has shape ",
             t->sizes());
    RL_CHECK(t->dtype() == kFloat32, op, ": ", name, " must be a float tensor, but is ",
             dtype_info(t->dtype()).name);
  }
  const NoGradGuard no_grad;
  std::vector<Tensor> finite;
  for (const Tensor& t : self) {
    RL_CHECK(is_differentiable(t.dtype()), op, ": expected floating-point gradients, got ",
             dtype_info(t.dtype()).name);
    if (t.numel() != 0) {
      finite.push_back(isfinite(linalg_vector_norm(t, std::numeric_limits<double>::infinity())));
      t.mul_(inv_scale.to(t.device()));
    }
  }
  if (!finite.empty()) {
    const Tensor found = stack(finite).all().logical_not().to(kFloat32);
    found_inf.copy_(maximum(found_inf, found.expand_as(found_inf)));
  }
}

Tensor& composite::_amp_update_scale_(const Tensor& self, const Tensor& growth_tracker,
                                      const Tensor& found_inf, double scale_growth_factor,
                                      double scale_backoff_factor, int64_t growth_interval) {
  const char* const op = "_amp_update_scale_";
  RL_CHECK(self.numel() == 1 && self.dtype() == kFloat32, op,
           ": the scale must be a 1-element float tensor");
  RL_CHECK(growth_tracker.numel() == 1 && growth_tracker.dtype() == kInt32, op,
           ": growth_tracker must be a 1-element int tensor");
  RL_CHECK(found_inf.numel() == 1 && found_inf.dtype() == kFloat32, op,
           ": found_inf must be a 1-element float tensor");
  const NoGradGuard no_grad;
  // No value is looked at, so that a device need not be waited for.
  const Tensor found = ne(found_inf, 0).view_as(self);
  const Tensor count = where(found, 0, growth_tracker.view_as(self) + 1);
  const Tensor grown = self * scale_growth_factor;
  const Tensor grows = eq(count, growth_interval);
  const Tensor next = where(logical_and(grows, isfinite(grown)), grown, self);
  growth_tracker.copy_(where(grows, 0, count).view_as(growth_tracker));
  self.copy_(where(found, self * scale_backoff_factor, next));
  return const_cast<Tensor&>(self);
}

}  // namespace rushlight
