// softmax and log_softmax above the kernels: contracts and derivatives.
#include "core/refusals.h"
#include "ops/derivatives.h"
#include "ops/reductions.h"

namespace rushlight {

ScalarType softmax_dtype(const char* name, const Tensor& self,
                         const std::optional<ScalarType>& dtype) {
  const ScalarType result = dtype.value_or(self.dtype());
  if (!is_floating(result)) {
    dtype_not_implemented(name, result);
  }
  warn_of_lost_parts(self.dtype(), result);
  return result;
}

void check_same_sizes(const char* name, const Tensor& grad_output, const Tensor& output) {
  RL_CHECK(grad_output.sizes() == output.sizes(), name, ": grad_output of shape ",
           grad_output.sizes(), " does not match output of shape ", output.sizes());
}

Tensor composite::softmin(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.neg().softmax(dim, dtype);
}

Tensor composite::_masked_softmax(const Tensor& self, const Tensor& mask,
                                  std::optional<int64_t> dim, std::optional<int64_t> mask_type) {
  RL_CHECK(mask.dtype() == kBool, "_masked_softmax: expected a mask of bool, got ", mask.dtype());
  const int64_t kind = mask_type.value_or(2);
  Tensor where = mask;
  if (kind < 2 && self.dim() == 4 && mask.dim() == 2) {
    const bool of_items = kind == 1;
    where = of_items ? mask.unsqueeze(1).unsqueeze(1) : mask;
    RL_CHECK(mask.size(0) == self.size(of_items ? 0 : 2) && mask.size(1) == self.size(3),
             "_masked_softmax: a mask of sizes ", mask.sizes(), " with mask_type ", kind,
             " does not fit scores of sizes ", self.sizes());
    where = where.expand(self.sizes());
  }
  RL_CHECK(where.sizes() == self.sizes(),
           "_masked_softmax: expected a mask of the input's sizes, got ", mask.sizes(), " and ",
           self.sizes());
  return self.masked_fill(where, -std::numeric_limits<double>::infinity())
      .softmax(dim.value_or(-1));
}

Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim) {
  const Tensor along = grad_output.mul(output).sum(dim, true);
  const Tensor across = grad.mul(output).sum(dim, true);
  return grad.mul(grad_output.sub(along)).sub(grad_output.mul(across));
}

}  // namespace rushlight
