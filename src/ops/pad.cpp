// The contract of constant padding, and the modes that repeat elements: those select along one
// dimension after another.
#include <algorithm>

#include "generated/kernels.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

constexpr int64_t largest = int64_t{1} << 40;

void check_pad(const Tensor& self, IntArrayRef pad) {
  RL_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  RL_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
           "Padding length should be less than or equal to two times the input dimension but got "
           "padding length ",
           pad.size(), " and input of dimension ", self.dim());
  for (const int64_t p : pad) {
    RL_CHECK(p < largest && p > -largest, "padding ", p, " is too large");
  }
}

enum class PadMode { Reflect, Replicate, Circular };

// Places in a dimension of n elements for `before` + n + `after` elements.
Tensor places(int64_t n, int64_t before, int64_t after, PadMode mode, Device device) {
  const Tensor index = make_empty({before + n + after}, kInt64, device);
  if (device.is_meta()) {
    return index;
  }
  int64_t* to = index.data<int64_t>();
  for (int64_t i = 0; i < before + n + after; i++) {
    int64_t at = i - before;
    if (mode == PadMode::Reflect) {
      at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    } else if (mode == PadMode::Replicate) {
      at = at < 0 ? 0 : at >= n ? n - 1 : at;
    } else {  // what cropping leaves goes round
      const int64_t low = std::max<int64_t>(0, -before);
      const int64_t high = n - std::max<int64_t>(0, -after);
      at = at < low ? at + (high - low) : at >= high ? at - (high - low) : at;
    }
    to[i] = at;
  }
  return index;
}

}  // namespace

namespace shape {

OutSpec constant_pad_nd(Tensor& self, DimVector& pad, Scalar&) {
  check_pad(self, pad);
  OutSpec out{self.sizes(), self.dtype()};
  for (size_t i = 0; i < pad.size() / 2; i++) {
    int64_t& size = out.sizes[out.sizes.size() - 1 - i];
    // Cropping from both sides must not take more than there is.
    RL_CHECK(std::min<int64_t>(pad[2 * i], 0) + std::min<int64_t>(pad[2 * i + 1], 0) + size >= 0 &&
                 size + pad[2 * i] + pad[2 * i + 1] >= 0,
             "narrow(): length must be non-negative: the input of size ", self.sizes(),
             ", plus negative padding ", pad[2 * i], " and ", pad[2 * i + 1],
             ", would have a negative size in dimension ",
             self.dim() - 1 - static_cast<int64_t>(i));
    size += pad[2 * i] + pad[2 * i + 1];
  }
  if (!self.is_contiguous() && self.impl()->is_channels_last()) {
    out.format = MemoryFormat::ChannelsLast;
  }
  return out;
}

}  // namespace shape

DimVector negated(IntArrayRef list) {
  DimVector out(list);
  for (int64_t& x : out) {
    x = -x;
  }
  return out;
}

Tensor composite::pad(const Tensor& self, IntArrayRef pad, std::string_view mode,
                      std::optional<double> value) {
  check_pad(self, pad);
  if (mode == "constant") {
    return constant_pad_nd(self, pad, Scalar(value.value_or(0.0)));
  }
  RL_CHECK(value.value_or(0.0) == 0.0, "Padding mode \"", mode,
           "\" doesn't take in value argument");
  RL_CHECK_NOT_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                           "Unrecognised padding mode ", mode);
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  RL_CHECK_NOT_IMPLEMENTED(
      dims >= 1 && dims <= 3 && (self.dim() == dims + 1 || self.dim() == dims + 2), "Padding size ",
      pad.size(), " is not supported for ", self.dim(), "D input tensor.");
  const PadMode kind = mode == "reflect"     ? PadMode::Reflect
                       : mode == "replicate" ? PadMode::Replicate
                                             : PadMode::Circular;
  Tensor out = self;
  for (int64_t i = 0; i < dims; i++) {
    const int64_t d = self.dim() - 1 - i;
    const int64_t n = self.size(d);
    const int64_t before = pad[static_cast<size_t>(2 * i)];
    const int64_t after = pad[static_cast<size_t>(2 * i + 1)];
    RL_CHECK(n > 0, "Expected ", dims + 1, "D or ", dims + 2,
             "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
             "input, but got: ",
             self.sizes());
    RL_CHECK(
        kind != PadMode::Reflect || (before < n && after < n),
        "Padding size should be less than the corresponding input dimension, but got: padding (",
        before, ", ", after, ") at dimension ", d, " of input ", self.sizes());
    RL_CHECK(kind != PadMode::Circular || (before <= n && after <= n),
             "Padding value causes wrapping around more than once.");
    RL_CHECK(
        before >= -n && after >= -n && n + before + after >= (kind == PadMode::Circular ? 0 : 1),
        "input (size ", n, " in dimension ", d,
        ") is too small. Calculated output size: ", n + before + after);
    if (before != 0 || after != 0) {
      out = out.index_select(d, places(n, before, after, kind, self.device()));
    }
  }
  return out.is_same(self) ? self.clone() : out;
}

}  // namespace rushlight
