// softmax and log_softmax above the kernels: contracts and derivatives.
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

OutSpec softmax_spec(const char* name, const Tensor& self, int64_t& dim,
                     const std::optional<ScalarType>& dtype) {
  dim = wrap_dim(dim, self.dim());
  const ScalarType result = dtype.value_or(self.dtype());
  if (!is_floating(result)) {
    dtype_not_implemented(name, result);
  }
  return {self.sizes(), result};
}

OutSpec backward_spec(const char* name, const Tensor& grad_output, const Tensor& output,
                      int64_t& dim, ScalarType input_dtype) {
  RL_CHECK(grad_output.sizes() == output.sizes(), name, ": grad_output of shape ",
           grad_output.sizes(), " does not match output of shape ", output.sizes());
  dim = wrap_dim(dim, output.dim());
  return {output.sizes(), input_dtype};
}

}  // namespace

namespace shape {

OutSpec softmax(Tensor& self, int64_t& dim, std::optional<ScalarType>& dtype) {
  return softmax_spec("softmax", self, dim, dtype);
}
OutSpec log_softmax(Tensor& self, int64_t& dim, std::optional<ScalarType>& dtype) {
  return softmax_spec("log_softmax", self, dim, dtype);
}
OutSpec _softmax_backward_data(Tensor& grad_output, Tensor& output, int64_t& dim,
                               ScalarType& input_dtype) {
  return backward_spec("_softmax_backward_data", grad_output, output, dim, input_dtype);
}
OutSpec _log_softmax_backward_data(Tensor& grad_output, Tensor& output, int64_t& dim,
                                   ScalarType& input_dtype) {
  return backward_spec("_log_softmax_backward_data", grad_output, output, dim, input_dtype);
}

}  // namespace shape

Tensor composite::softmin(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return self.neg().softmax(dim, dtype);
}

Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim) {
  const Tensor along = grad_output.mul(output).sum(dim, true);
  const Tensor across = grad.mul(output).sum(dim, true);
  return grad.mul(grad_output.sub(along)).sub(grad_output.mul(across));
}

}  // namespace rushlight
