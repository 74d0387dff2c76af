// im2col and col2im (unfold and fold of nn.functional): windows of images as columns, and their
// adjoint.
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

constexpr int64_t largest = int64_t{1} << 31;

std::string pair_text(IntArrayRef p) { return str("(", p[0], ", ", p[1], ")"); }

void check_pair(const char* name, const char* what, const char* short_name, DimVector& p,
                int64_t least) {
  if (p.size() == 1) {
    p.push_back(p[0]);
  }
  RL_CHECK(p.size() == 2, name, " is a number or two of them, but got ", p.size());
  RL_CHECK(p[0] >= least && p[1] >= least, what,
           least > 0 ? " must be positive" : " must not be negative", ": ", short_name,
           "_height: ", p[0], " ", short_name, "_width: ", p[1]);
  RL_CHECK(p[0] < largest && p[1] < largest, what, " is too large");
}

void check_windows(DimVector& kernel, DimVector& dilation, DimVector& padding, DimVector& stride) {
  check_pair("kernel_size", "kernel size", "kernel", kernel, 1);
  check_pair("dilation", "dilation", "dilation", dilation, 1);
  check_pair("padding", "padding", "pad", padding, 0);
  check_pair("stride", "stride", "stride", stride, 1);
}

DimVector windows_of(IntArrayRef image, const DimVector& kernel, const DimVector& dilation,
                     const DimVector& padding, const DimVector& stride) {
  DimVector n;
  for (size_t d = 0; d < 2; d++) {
    const int64_t room = image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    n.push_back(room < 0 ? 0 : room / stride[d] + 1);
  }
  return n;
}

}  // namespace

namespace shape {

OutSpec im2col(Tensor& self, DimVector& kernel, DimVector& dilation, DimVector& padding,
               DimVector& stride) {
  check_windows(kernel, dilation, padding, stride);
  const bool batched = self.dim() == 4;
  RL_CHECK(batched || self.dim() == 3,
           "im2col: Expected 3D or 4D (batch mode) tensor, but got one of shape ", self.sizes());
  const IntArrayRef image = self.sizes().slice(static_cast<size_t>(self.dim() - 2), 2);
  RL_CHECK(image[0] < largest && image[1] < largest, "im2col: the image is too large");
  const DimVector n = windows_of(image, kernel, dilation, padding, stride);
  RL_CHECK(
      n[0] > 0 && n[1] > 0, "an image of ", pair_text(image), " with padding=", pair_text(padding),
      " has no window of kernel_size=", pair_text(kernel), " and dilation=", pair_text(dilation),
      ": the array of sliding blocks would be ", pair_text(n));
  self = contiguous_raw(self);
  DimVector sizes = {self.size(-3) * kernel[0] * kernel[1], n[0] * n[1]};
  if (batched) {
    sizes.insert(0, self.size(0));
  }
  return {sizes, self.dtype()};
}

OutSpec col2im(Tensor& self, DimVector& output_size, DimVector& kernel, DimVector& dilation,
               DimVector& padding, DimVector& stride) {
  check_windows(kernel, dilation, padding, stride);
  check_pair("output_size", "output_size", "output_size", output_size, 0);
  const bool batched = self.dim() == 3;
  RL_CHECK(batched || self.dim() == 2,
           "col2im: Expected 2D or 3D (batch mode) tensor, but got one of shape ", self.sizes());
  const int64_t taps = kernel[0] * kernel[1];
  RL_CHECK(self.size(-2) % taps == 0,
           "col2im: Expected size of input's dimension 1 to be a multiple of the taps of a window, "
           "but got input.size(1)=",
           self.size(-2), " and kernel_size=", pair_text(kernel));
  const DimVector n = windows_of(output_size, kernel, dilation, padding, stride);
  RL_CHECK(self.size(-1) == n[0] * n[1] && n[0] * n[1] > 0,
           "the windows of output_size=", pair_text(output_size),
           " with kernel_size=", pair_text(kernel), ", padding=", pair_text(padding),
           ", stride=", pair_text(stride), " and dilation=", pair_text(dilation), " are ", n[0],
           " * ", n[1], " = ", n[0] * n[1], ", but got input.size(2)=", self.size(-1));
  self = contiguous_raw(self);
  DimVector sizes = {self.size(-2) / taps, output_size[0], output_size[1]};
  if (batched) {
    sizes.insert(0, self.size(0));
  }
  return {sizes, self.dtype()};
}

}  // namespace shape
}  // namespace rushlight
