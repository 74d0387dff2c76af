// The contract of layers of 8-bit codes (ops/int8.py).
#include "generated/contracts.h"
#include "kernels/int8_layout.h"

namespace rushlight {

namespace {

// Products of sizes that the caller gives must not overflow; every number is at most this.
constexpr int64_t largest = int64_t{1} << 31;

void check_vector(const char* op, const char* name, const Tensor& t, ScalarType dtype,
                  int64_t size) {
  RL_CHECK(t.dim() == 1 && t.size(0) == size && t.dtype() == dtype, op, ": ", name,
           " must be a vector of ", size, " numbers of ", dtype, ", not of size ", t.sizes(),
           " and of ", t.dtype());
}

// What a weight with as many results as `sums` has elements brings; all of it contiguous after it.
void check_weight(const char* op, Tensor& weight, Tensor& sums, Tensor& steps, Tensor& bias) {
  RL_CHECK(weight.dtype() == kInt8, op, ": weight must be of int8, not of ", weight.dtype());
  RL_CHECK(sums.dim() == 1, op, ": sums must be a vector, not of size ", sums.sizes());
  check_vector(op, "sums", sums, kInt32, sums.size(0));
  check_vector(op, "steps", steps, kFloat32, sums.size(0));
  if (bias.defined()) {
    check_vector(op, "bias", bias, kFloat32, sums.size(0));
    bias = contiguous_raw(bias);
  }
  weight = contiguous_raw(weight);
  sums = contiguous_raw(sums);
  steps = contiguous_raw(steps);
}

void check_packed(const char* op, const Tensor& weight, int64_t results, int64_t inputs,
                  int64_t groups) {
  RL_CHECK(inputs <= int8_most_terms, op, ": a result is the sum of at most ", int8_most_terms,
           " products, not of ", inputs, ", which may not fit 32 bits");
  const DimVector packed = {groups, int8_panels(results / groups), int8_groups(inputs),
                            int8_panel * int8_group};
  RL_CHECK(weight.sizes() == IntArrayRef(packed), op, ": a weight of ", results, " results and ",
           inputs, " inputs in ", groups, " groups is packed into ", packed, ", not into ",
           weight.sizes());
}

void check_zero_point(const char* op, const char* name, int64_t zero_point, ScalarType codes) {
  const int64_t first = codes == kInt8 ? -128 : 0;
  RL_CHECK(zero_point >= first && zero_point <= first + 255, op, ": ", name, " must be a code of ",
           codes, ", not ", zero_point);
}

int64_t checked_taps(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation) {
  constexpr const char* op = "_int8_convolution";
  const size_t dims = kernel.size();
  RL_CHECK(dims <= 3 && stride.size() == dims && padding.size() == dims && dilation.size() == dims,
           op,
           ": kernel, stride, padding and dilation have a number for each of up to three "
           "dimensions");
  RL_CHECK(dims == 0 ? input.dim() >= 1 : input.dim() == static_cast<int64_t>(dims) + 2, op,
           ": input must have ", dims + 2, " dimensions, not ", input.dim());
  int64_t taps = 1;
  for (size_t d = 0; d < dims; d++) {
    const int64_t size = input.size(static_cast<int64_t>(d) + 1);
    RL_CHECK(kernel[d] > 0 && stride[d] > 0 && padding[d] >= 0 && dilation[d] > 0, op,
             ": kernel, stride and dilation must be positive and padding not negative");
    RL_CHECK(kernel[d] < largest / dilation[d] && stride[d] < largest && size < largest &&
                 padding[d] < largest && taps < largest / kernel[d],
             op, ": kernel, stride, padding or dilation is too large");
    RL_CHECK(dilation[d] * (kernel[d] - 1) < size + 2 * padding[d], op,
             ": Kernel size can't be greater than actual input size");
    taps *= kernel[d];
  }
  return taps;
}

}  // namespace

namespace shape {

OutSpec _int8_pack(Tensor& weight, int64_t& groups) {
  RL_CHECK(weight.dim() == 2 && weight.dtype() == kInt8,
           "_int8_pack: weight must be a matrix of int8, not of size ", weight.sizes(), " and of ",
           weight.dtype());
  RL_CHECK(groups > 0 && weight.size(0) % groups == 0, "_int8_pack: ", weight.size(0),
           " rows do not go into ", groups, " groups");
  weight = contiguous_raw(weight);
  return {{groups, int8_panels(weight.size(0) / groups), int8_groups(weight.size(1)),
           int8_panel * int8_group},
          kInt8};
}

OutSpec _int8_linear_dynamic(Tensor& input, Tensor& weight, Tensor& sums, Tensor& steps,
                             Tensor& bias, bool& /*reduce_range*/, bool& /*by_rows*/,
                             bool& /*relu*/) {
  constexpr const char* op = "_int8_linear_dynamic";
  RL_CHECK(input.dtype() == kFloat32 && input.dim() > 0, op,
           ": input must be of float32 and have a dimension, not of ", input.dtype(), " and size ",
           input.sizes());
  check_weight(op, weight, sums, steps, bias);
  check_packed(op, weight, sums.size(0), input.size(-1), 1);
  input = contiguous_raw(input);
  DimVector sizes(input.sizes());
  sizes.back() = sums.size(0);
  return {sizes, kFloat32};
}

OutSpec _int8_convolution(Tensor& input, double& /*scale*/, int64_t& zero_point, Tensor& weight,
                          Tensor& sums, Tensor& steps, Tensor& bias, bool& /*relu*/,
                          double& /*result_scale*/, int64_t& result_zero_point, DimVector& kernel,
                          DimVector& stride, DimVector& padding, DimVector& dilation,
                          int64_t& groups) {
  constexpr const char* op = "_int8_convolution";
  RL_CHECK(input.dtype() == kInt8 || input.dtype() == kUInt8, op,
           ": input must be of int8 or uint8, not of ", input.dtype());
  check_zero_point(op, "zero_point", zero_point, input.dtype());
  check_zero_point(op, "result_zero_point", result_zero_point, input.dtype());
  const int64_t taps = checked_taps(input, kernel, stride, padding, dilation);
  check_weight(op, weight, sums, steps, bias);
  const int64_t channels = input.size(-1);
  const int64_t results = sums.size(0);
  RL_CHECK(groups > 0 && channels % groups == 0 && results % groups == 0, op, ": ", channels,
           " channels and ", results, " results do not go into ", groups, " groups");
  RL_CHECK(channels < largest, op, ": too many channels");
  if (weight.dim() == 2) {
    RL_CHECK(groups == channels && results == channels && weight.size(0) == taps &&
                 weight.size(1) == channels,
             op, ": a weight for each channel alone is (", taps, ", ", channels, "), not ",
             weight.sizes());
  } else {
    check_packed(op, weight, results, taps * (channels / groups), groups);
  }
  input = contiguous_raw(input);
  DimVector sizes(input.sizes());
  sizes.back() = results;
  for (size_t d = 0; d < kernel.size(); d++) {
    sizes[d + 1] =
        (sizes[d + 1] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  return {sizes, input.dtype()};
}

namespace {

void check_codes(const char* op, const char* name, const Tensor& t) {
  RL_CHECK(t.dtype() == kInt8 || t.dtype() == kUInt8, op, ": ", name,
           " must be of int8 or uint8, not of ", t.dtype());
}

// As a tensor lies, which has no gaps after it.
OutSpec like(Tensor& t, ScalarType dtype) {
  if (!t.is_non_overlapping_and_dense()) {
    t = contiguous_raw(t);
  }
  return {DimVector(t.sizes()), dtype, DimVector(t.strides())};
}

}  // namespace

OutSpec _codes_of(Tensor& self, double& scale, int64_t& zero_point, ScalarType& dtype) {
  constexpr const char* op = "_codes_of";
  RL_CHECK(self.dtype() == kFloat32, op, ": self must be of float32, not of ", self.dtype());
  RL_CHECK(dtype == kInt8 || dtype == kUInt8, op, ": dtype must be int8 or uint8, not ", dtype);
  check_zero_point(op, "zero_point", zero_point, dtype);
  return like(self, dtype);
}

OutSpec _numbers_of_codes(Tensor& codes, double& /*scale*/, int64_t& zero_point) {
  check_codes("_numbers_of_codes", "codes", codes);
  check_zero_point("_numbers_of_codes", "zero_point", zero_point, codes.dtype());
  return like(codes, kFloat32);
}

OutSpec _combine_codes(Tensor& self, double& /*self_scale*/, int64_t& self_zero_point,
                       Tensor& other, double& /*other_scale*/, int64_t& other_zero_point,
                       std::string& how, bool& /*relu*/, double& /*scale*/, int64_t& zero_point) {
  constexpr const char* op = "_combine_codes";
  check_codes(op, "self", self);
  RL_CHECK(other.dtype() == self.dtype(), op, ": other must be of ", self.dtype(),
           " as self, not of ", other.dtype());
  check_zero_point(op, "self_zero_point", self_zero_point, self.dtype());
  check_zero_point(op, "other_zero_point", other_zero_point, self.dtype());
  check_zero_point(op, "zero_point", zero_point, self.dtype());
  RL_CHECK(how == "add" || how == "mul", op, ": how must be add or mul, not ", how);
  const DimVector sizes = broadcast_sizes(self.sizes(), other.sizes());
  self = expand_raw(self, sizes);
  other = expand_raw(other, sizes);
  if (other.strides() != self.strides()) {
    self = contiguous_raw(self);
    other = contiguous_raw(other);
  }
  OutSpec out = like(self, self.dtype());
  if (other.strides() != self.strides()) {
    other = contiguous_raw(other);
  }
  return out;
}

OutSpec _block_linear(Tensor& input, Tensor& weight, Tensor& scales, Tensor& zeros, Tensor& bias,
                      int64_t& group, int64_t& bits) {
  constexpr const char* op = "_block_linear";
  RL_CHECK(input.dtype() == kFloat32 && input.dim() > 0, op,
           ": input must be of float32 and have a dimension, not of ", input.dtype(), " and size ",
           input.sizes());
  RL_CHECK(bits == 4 || bits == 8, op, ": bits must be 4 or 8, not ", bits);
  const int64_t inputs = input.size(-1);
  RL_CHECK(group > 0 && group % 8 == 0 && group <= 32768 && inputs % group == 0, op, ": ", inputs,
           " inputs do not go into groups of ", group, ", a multiple of 8 up to 32768");
  RL_CHECK(scales.dim() == 2 && scales.dtype() == kFloat32 && scales.size(0) == inputs / group, op,
           ": scales must be of float32 and of size (", inputs / group, ", results), not of ",
           scales.dtype(), " and size ", scales.sizes());
  const int64_t results = scales.size(1);
  const DimVector packed = {int8_panels(results), int8_groups(inputs) * bits / 8,
                            int8_panel * int8_group};
  RL_CHECK(weight.dtype() == kUInt8 && weight.sizes() == IntArrayRef(packed), op,
           ": weight must be of uint8 and of size ", packed, ", not of ", weight.dtype(),
           " and size ", weight.sizes());
  if (zeros.defined()) {
    RL_CHECK(zeros.dtype() == kUInt8 && zeros.sizes() == scales.sizes(), op,
             ": zeros must be of uint8 and of size ", scales.sizes(), ", not of ", zeros.dtype(),
             " and size ", zeros.sizes());
    zeros = contiguous_raw(zeros);
  }
  if (bias.defined()) {
    check_vector(op, "bias", bias, kFloat32, results);
    bias = contiguous_raw(bias);
  }
  input = contiguous_raw(input);
  weight = contiguous_raw(weight);
  scales = contiguous_raw(scales);
  DimVector sizes(input.sizes());
  sizes.back() = results;
  return {sizes, kFloat32};
}

}  // namespace shape

}  // namespace rushlight
