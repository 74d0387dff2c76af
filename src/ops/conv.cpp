// The contract of convolutions, their gradients, and the public forms of one, two and three
// dimensions.
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

std::string by(IntArrayRef sizes) {
  std::string out;
  for (const int64_t s : sizes) {
    out += str(out.empty() ? "" : " x ", s);
  }
  return out;
}

std::string names(const char* what, IntArrayRef sizes) {
  static const char* const dims[] = {"depth", "height", "width"};
  std::string out;
  for (size_t d = 0; d < sizes.size(); d++) {
    out += str(out.empty() ? "" : " ", what, "_", dims[3 - sizes.size() + d], ": ", sizes[d]);
  }
  return out;
}

bool any_below(IntArrayRef list, int64_t least) {
  for (const int64_t x : list) {
    if (x < least) {
      return true;
    }
  }
  return false;
}

// One value for all dimensions, or one for each.
void repeat(DimVector& list, const char* name, int64_t dims) {
  RL_CHECK(list.size() == 1 || static_cast<int64_t>(list.size()) == dims, name,
           " is a single integer value or one for each of ", dims, " dimensions, but got ", name,
           "=", list);
  if (static_cast<int64_t>(list.size()) < dims) {
    list = DimVector(static_cast<size_t>(dims), list[0]);
  }
}

// Products of sizes that the caller gives must not overflow; every number below is at most this.
constexpr int64_t largest = int64_t{1} << 40;

// Channels last where the input or the weight is.
OutSpec spec_of(const DimVector& sizes, const Tensor& input, const Tensor& weight) {
  const MemoryFormat format = format_of(input);
  return {
      sizes, input.dtype(), {}, format == MemoryFormat::Contiguous ? format_of(weight) : format};
}

}  // namespace

namespace shape {

OutSpec convolution(Tensor& input, Tensor& weight, Tensor& bias, DimVector& stride,
                    DimVector& padding, DimVector& dilation, bool& transposed,
                    DimVector& output_padding, int64_t& groups) {
  const int64_t dims = weight.dim() - 2;
  RL_CHECK(dims >= 1 && dims <= 3,
           "convolution expects a weight of 3 to 5 dimensions, but got weight of size ",
           weight.sizes());
  repeat(stride, "stride", dims);
  repeat(padding, "padding", dims);
  repeat(dilation, "dilation", dims);
  repeat(output_padding, "output_padding", dims);
  RL_CHECK(!any_below(padding, 0), "negative padding is not supported");
  RL_CHECK(!any_below(output_padding, 0), "negative output_padding is not supported");
  RL_CHECK(!any_below(stride, 1), "non-positive stride is not supported");
  RL_CHECK(!any_below(dilation, 1), "dilation should be greater than zero, not ", dilation);
  RL_CHECK(groups > 0, "non-positive groups is not supported");
  for (int64_t d = 0; d < dims; d++) {
    RL_CHECK(padding[d] < largest && stride[d] < largest && dilation[d] < largest &&
                 output_padding[d] < largest,
             "convolution: stride, padding or dilation is too large");
  }
  RL_CHECK(weight.dim() == input.dim(), "Expected ", dims + 1, "D (unbatched) or ", dims + 2,
           "D (batched) input to conv", transposed ? "_transpose" : "", dims,
           "d, but got input of size: ", input.sizes());
  const IntArrayRef kernel = weight.sizes().slice(2, static_cast<size_t>(dims));
  RL_CHECK(!any_below(kernel, 1),
           "kernel size should be greater than zero: ", names("kernel", kernel));
  RL_CHECK(weight.size(0) >= groups, groups,
           " groups need a weight of so many results or more, but got weight of size ",
           weight.sizes());
  RL_CHECK(weight.size(0) % groups == 0, "dimension 0 of the weight must be divisible by ", groups,
           " groups, but got weight of size ", weight.sizes());
  const int64_t channels = transposed ? weight.size(0) : weight.size(1) * groups;
  RL_CHECK(input.size(1) == channels, "a weight ", weight.sizes(), " in ", groups,
           transposed ? " groups of a transposed convolution: " : " groups: ", "expected input",
           input.sizes(), " to have ", channels, " channels, but got ", input.size(1),
           " channels instead");
  const int64_t features = transposed ? weight.size(1) * groups : weight.size(0);
  RL_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == features), "a weight ",
           weight.sizes(), transposed ? " of a transposed convolution" : "", " needs a vector of ",
           features, " numbers as bias, but got bias of size ",
           bias.defined() ? bias.sizes() : IntArrayRef());
  RL_CHECK(!bias.defined() || bias.dtype() == input.dtype(), "Input type (",
           dtype_info(input.dtype()).alias, ") and bias type (",
           bias.defined() ? dtype_info(bias.dtype()).alias : "", ") should be the same");
  RL_CHECK(input.dtype() == weight.dtype(), "expected scalar type ", enum_name(input.dtype()),
           " but found ", enum_name(weight.dtype()));
  if (input.dtype() == kBool) {
    dtype_not_implemented("slow_conv2d_cpu", kBool);
  }
  DimVector sizes = {input.size(0), features};
  const IntArrayRef in = input.sizes().slice(2, static_cast<size_t>(dims));
  DimVector padded(in);
  DimVector effective(kernel);
  bool fits = true;
  for (int64_t d = 0; d < dims; d++) {
    RL_CHECK(kernel[d] < largest / dilation[d] && in[d] < largest / stride[d],
             "convolution: image or kernel is too large");
    const int64_t reach = dilation[d] * (kernel[d] - 1) + 1;
    effective[d] = reach;
    padded[d] += 2 * padding[d];
    fits &= padded[d] >= reach;
    if (transposed) {
      RL_CHECK(output_padding[d] < stride[d] || output_padding[d] < dilation[d],
               "output padding must be smaller than stride or dilation in each dimension: ",
               names("output_padding", output_padding), " ", names("stride", stride), " ",
               names("dilation", dilation));
      sizes.push_back((in[d] - 1) * stride[d] - 2 * padding[d] + reach + output_padding[d]);
    } else {
      sizes.push_back(padded[d] < reach ? 0 : (padded[d] - reach) / stride[d] + 1);
    }
  }
  if (transposed) {
    const IntArrayRef out = IntArrayRef(sizes).slice(2, static_cast<size_t>(dims));
    RL_CHECK(!any_below(out, 1), "images of ", by(in), " would become ", by(out),
             ": Output size is too small");
  } else {
    RL_CHECK(fits, "the padded image (", by(padded), ") is smaller than the kernel, which spans (",
             by(effective), "): Kernel size can't be greater than actual input size");
  }
  const OutSpec out = spec_of(sizes, input, weight);
  weight = contiguous_raw(weight);
  bias = bias.defined() ? contiguous_raw(bias) : bias;
  return out;
}

OutSpec convolution_weight_backward(Tensor& grad, Tensor& input, DimVector& weight_size,
                                    DimVector& stride, DimVector& padding, DimVector& dilation,
                                    int64_t& groups) {
  // The gradient must have the size of what the convolution of such a weight gives, or less.
  Tensor weight = make_empty(weight_size, input.dtype(), Device(kMeta));
  Tensor bias;
  Tensor images = input;
  bool transposed = false;
  DimVector output_padding = {0};
  const OutSpec out = convolution(images, weight, bias, stride, padding, dilation, transposed,
                                  output_padding, groups);
  // Of a transposed convolution with much output padding, the image is larger than its windows
  // need.
  bool fits = grad.dim() == input.dim() && grad.size(0) == out.sizes[0] &&
              grad.size(1) == out.sizes[1] && grad.dtype() == input.dtype();
  for (int64_t d = 2; fits && d < grad.dim(); d++) {
    fits = grad.size(d) <= out.sizes[static_cast<size_t>(d)];
  }
  RL_CHECK(fits, "convolution_weight_backward: expected a gradient of size ", out.sizes, ", got ",
           grad.sizes());
  return {weight_size, input.dtype()};
}

}  // namespace shape

// ---- derivatives ----

namespace {

// The first `sizes` elements of each dimension.
Tensor first_elements(Tensor t, IntArrayRef sizes) {
  for (int64_t d = 0; d < t.dim(); d++) {
    if (t.size(d) > sizes[static_cast<size_t>(d)]) {
      t = t.narrow(d, 0, sizes[static_cast<size_t>(d)]);
    }
  }
  return t;
}

}  // namespace

Tensor convolution_input_backward(const Tensor& grad, IntArrayRef input_size, const Tensor& weight,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                  bool transposed, int64_t groups) {
  // The adjoint has the same weight; where several sizes of a transposed one's output fit, say
  // which.
  // A mode may have answered the convolution: what its own checks would have found is found here.
  RL_CHECK(grad.dim() > 2 && weight.dim() == grad.dim() &&
               static_cast<int64_t>(input_size.size()) == grad.dim(),
           "convolution: a gradient of size ", grad.sizes(), ", a weight of size ", weight.sizes(),
           " and an input of size ", input_size, " do not belong together");
  const auto dims = static_cast<size_t>(grad.dim() - 2);
  if (any_below(input_size, 1)) {
    return grad.new_zeros(input_size);
  }
  for (const IntArrayRef list : {stride, padding, dilation}) {
    RL_CHECK(list.size() == 1 || list.size() == dims, "convolution: a list of ", list.size(),
             " numbers for ", dims, " dimensions");
  }
  DimVector output_padding(dims, 0);
  if (!transposed) {
    const auto of = [](IntArrayRef list, size_t d) { return list[list.size() == 1 ? 0 : d]; };
    for (size_t d = 0; d < dims; d++) {
      const int64_t reach = of(dilation, d) * (weight.sizes()[d + 2] - 1) + 1;
      output_padding[d] = input_size[d + 2] -
                          ((grad.sizes()[d + 2] - 1) * of(stride, d) - 2 * of(padding, d) + reach);
    }
  }
  const Tensor out = convolution(grad, weight.conj(), {}, stride, padding, dilation, !transposed,
                                 output_padding, groups);
  return first_elements(out, input_size);
}

Tensor convolution_output_gradient(const Tensor& grad, IntArrayRef size, const Tensor& input,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   int64_t groups) {
  const Tensor out =
      convolution(input.conj(), grad, {}, stride, padding, dilation, false, {0}, groups);
  return first_elements(out, size);
}

Tensor convolution_weight_gradient(const Tensor& grad, const Tensor& input, IntArrayRef weight_size,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   bool transposed, int64_t groups) {
  return transposed ? convolution_weight_backward(input.conj(), grad, weight_size, stride, padding,
                                                  dilation, groups)
                    : convolution_weight_backward(grad, input.conj(), weight_size, stride, padding,
                                                  dilation, groups);
}

Tensor sum_to_channels(const Tensor& grad) {
  DimVector dims = {0};
  for (int64_t d = 2; d < grad.dim(); d++) {
    dims.push_back(d);
  }
  return grad.sum(dims);
}

// ---- composites ----

namespace {

// Adds a batch of one where there is none, and takes it away afterwards.
Tensor convolve(const char* name, int64_t dims, const Tensor& input, const Tensor& weight,
                const Tensor& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                bool transposed, IntArrayRef output_padding, int64_t groups) {
  RL_CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, "Expected ", dims + 1,
           "D (unbatched) or ", dims + 2, "D (batched) input to ", name, ", not one of shape ",
           input.sizes());
  if (input.dim() == dims + 2) {
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                       groups);
  }
  return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, transposed,
                     output_padding, groups)
      .squeeze(0);
}

Tensor convolve_named(const char* name, int64_t dims, const Tensor& input, const Tensor& weight,
                      const Tensor& bias, IntArrayRef stride, std::string_view padding,
                      IntArrayRef dilation, int64_t groups) {
  RL_CHECK(padding == "same" || padding == "valid", "Invalid padding string: '", padding, "'");
  const DimVector none(static_cast<size_t>(dims), 0);
  if (padding == "valid" || weight.dim() != dims + 2) {
    return convolve(name, dims, input, weight, bias, stride, none, dilation, false, none, groups);
  }
  for (const int64_t s : stride) {
    RL_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
  }
  DimVector steps(dilation);
  repeat(steps, "dilation", dims);
  // An odd total asks for one more element on the right than on the left: pad more on both, drop
  // the first result.
  DimVector both = none;
  DimVector total = none;
  for (int64_t d = 0; d < dims; d++) {
    const bool overflow = __builtin_mul_overflow(steps[d], weight.size(d + 2) - 1, &total[d]);
    RL_CHECK(!overflow && total[d] <= largest, name, ": the dilation ", dilation,
             " of a weight of size ", weight.sizes(), " is too large");
    both[d] = (total[d] + 1) / 2;
  }
  Tensor out =
      convolve(name, dims, input, weight, bias, stride, both, dilation, false, none, groups);
  for (int64_t d = 0; d < dims; d++) {
    if (total[d] % 2 != 0) {
      out = out.narrow(d - dims, 1, out.size(d - dims) - 1);
    }
  }
  return out;
}

}  // namespace

namespace composite {

#define RL_CONV(n)                                                                                 \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias,                 \
                    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,                 \
                    int64_t groups) {                                                              \
    return convolve("conv" #n "d", n, input, weight, bias, stride, padding, dilation, false,       \
                    DimVector(n, 0), groups);                                                      \
  }                                                                                                \
  Tensor conv##n##d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias,         \
                            IntArrayRef stride, std::string_view padding, IntArrayRef dilation,    \
                            int64_t groups) {                                                      \
    return convolve_named("conv" #n "d", n, input, weight, bias, stride, padding, dilation,        \
                          groups);                                                                 \
  }                                                                                                \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias,       \
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding, \
                              int64_t groups, IntArrayRef dilation) {                              \
    return convolve("conv_transpose" #n "d", n, input, weight, bias, stride, padding, dilation,    \
                    true, output_padding, groups);                                                 \
  }
RL_CONV(1)
RL_CONV(2)
RL_CONV(3)
#undef RL_CONV

Tensor _convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                    IntArrayRef output_padding, int64_t groups, bool /*benchmark*/,
                    bool /*deterministic*/, bool /*cudnn_enabled*/, bool /*allow_tf32*/) {
  return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                     groups);
}

Tensor _convolution_deprecated(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                               bool transposed, IntArrayRef output_padding, int64_t groups,
                               bool /*benchmark*/, bool /*deterministic*/, bool /*cudnn_enabled*/) {
  return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                     groups);
}

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  RL_CHECK(self.dim() == 3 && weight.dim() == 3,
           "conv_tbc expects an input and a weight of 3 dimensions");
  RL_CHECK(self.size(2) == weight.size(1),
           "conv_tbc: expected a weight for the channels of the input, ", self.size(2),
           ", but it is for ", weight.size(1));
  return composite::conv1d(self.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, 1, pad, 1, 1)
      .permute({2, 0, 1});
}

}  // namespace composite
}  // namespace rushlight
