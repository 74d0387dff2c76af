// What kernels are composed of to Python code below autograd: entries with `shown="parts"`. The ops
// and their order are those that PyTorch's composites are made of.
#include <rushlight/ops.h>

namespace rushlight::parts {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() == 1 || input.dim() == 1) {
    const Tensor product = input.matmul(weight.dim() == 1 ? weight : weight.t());
    return bias.defined() ? product.add(bias) : product;
  }
  const bool folded = input.dim() > 2 && (!bias.defined() || input.is_contiguous());
  if (!folded && input.dim() > 2) {
    return input.matmul(weight.t()).add(bias);
  }
  DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  const int64_t width = input.size(-1);
  // Not -1: without elements there is no telling.
  int64_t count = 1;
  for (int64_t d = 0; d + 1 < input.dim(); d++) {
    count *= input.size(d);
  }
  if (!bias.defined()) {
    const Tensor turned = weight.t();
    const Tensor rows = folded ? input.reshape({count, width}) : input;
    const Tensor product = rows.mm(turned);
    return folded ? product.view(sizes) : product;
  }
  const Tensor rows = folded ? input.view({count, width}) : input;
  const Tensor product = bias.addmm(rows, weight.t());
  return folded ? product.view(sizes) : product;
}

Tensor _weighed(const Tensor& self, const Tensor& other) { return self.mul(other); }

Tensor _softsign(const Tensor& self) { return self.div(self.abs().add(1)); }

}  // namespace rushlight::parts
