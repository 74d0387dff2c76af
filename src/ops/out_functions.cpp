// out= forms of functions without kernels.
#include <rushlight/out_functions.h>

#include <rushlight/autograd.h>
#include <rushlight/factories.h>

namespace rushlight {

Tensor& write_result(const Tensor& out, const Tensor& result) {
  RL_CHECK(!grad_enabled() || !out.requires_grad(),
           "out=... arguments don't support automatic differentiation, and the one that is written "
           "requires grad");
  const NoGradGuard untracked;
  if (result.layout() == kStrided && out.sizes() != result.sizes()) {
    out.resize_(result.sizes());
  }
  return out.copy_(result);
}
void write_results(TensorList out, TensorList results) {
  RL_CHECK(out.size() == results.size(), "expected ", results.size(), " tensors to write, got ",
           out.size());
  for (size_t i = 0; i < out.size(); i++) {
    write_result(out[i], results[i]);
  }
}

Tensor& complex_out(const Tensor& out, const Tensor& real, const Tensor& imag) {
  return write_result(out, _complex(real, imag));
}
Tensor& _amp_update_scale_out(const Tensor& out, const Tensor& self, const Tensor& tracker,
                              const Tensor& found_inf, double growth, double backoff,
                              int64_t interval) {
  write_result(out, self);
  return _amp_update_scale_(out, tracker, found_inf, growth, backoff, interval);
}
Tensor& sparse_coo_tensor_out(const Tensor& out, IntArrayRef size) {
  return write_result(out, sparse_coo_tensor(size, out.options()));
}
Tensor& _sparse_coo_tensor_with_dims_out(const Tensor& out, int64_t sparse_dim, int64_t dense_dim,
                                         IntArrayRef size) {
  return write_result(out,
                      _sparse_coo_tensor_with_dims(sparse_dim, dense_dim, size, out.options()));
}
Tensor& _sparse_coo_tensor_with_dims_and_tensors_out(const Tensor& out, int64_t sparse_dim,
                                                     int64_t dense_dim, IntArrayRef size,
                                                     const Tensor& indices, const Tensor& values,
                                                     std::optional<bool> is_coalesced) {
  return write_result(out, _sparse_coo_tensor_with_dims_and_tensors(sparse_dim, dense_dim, size,
                                                                    indices, values, out.options(),
                                                                    is_coalesced));
}
std::tuple<Tensor&, Tensor&, Tensor&> _slow_conv2d_backward_out(
    const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad, const Tensor& self,
    const Tensor& weight, IntArrayRef /*kernel_size*/, IntArrayRef stride, IntArrayRef padding) {
  const auto found = convolution_backward(grad, self, weight, IntArrayRef(weight.size(0)), stride,
                                          padding, {1, 1}, false, {0, 0}, 1, {true, true, true});
  return {write_result(x, std::get<0>(found)), write_result(w, std::get<1>(found)),
          write_result(b, std::get<2>(found))};
}

}  // namespace rushlight
