// The contracts of padding: with a constant, and by elements that repeat.
#include <algorithm>

#include <rushlight/autocast.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

constexpr int64_t largest = int64_t{1} << 40;

void check_pad(const Tensor& self, IntArrayRef pad) {
  RL_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  RL_CHECK(
      static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
      "pad: expected a padding length of at most two times the dimensions of the input, but got ",
      pad.size(), " for an input of dimension ", self.dim());
  for (const int64_t p : pad) {
    RL_CHECK(p < largest && p > -largest, "padding ", p, " is too large");
  }
}

// What padding by repeated elements makes of an image: checks all that it asks for.
OutSpec padded_spec(IntArrayRef size, ScalarType dtype, IntArrayRef pad, std::string_view mode) {
  const auto total = static_cast<int64_t>(size.size());
  RL_CHECK_NOT_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                           "Unrecognised padding mode ", mode);
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  RL_CHECK_NOT_IMPLEMENTED(dims >= 1 && dims <= 3 && (total == dims + 1 || total == dims + 2), mode,
                           " padding by ", pad.size(), " numbers is not supported for ", total,
                           "D input: (N, C, ...) or (C, ...) of ", dims, " dimensions are");
  const auto check_nonempty = [&](bool nonempty) {
    RL_CHECK(nonempty, "Expected ", dims + 1, "D or ", dims + 2,
             "D (batch mode) tensor of which the batch alone may be empty, but got ", size);
  };
  check_nonempty(mode == "circular" || size[static_cast<size_t>(total - 1 - dims)] > 0);
  OutSpec out{size, dtype};
  for (int64_t i = 0; i < dims; i++) {
    const auto d = static_cast<size_t>(total - 1 - i);
    const int64_t n = size[d];
    const int64_t before = pad[static_cast<size_t>(2 * i)];
    const int64_t after = pad[static_cast<size_t>(2 * i + 1)];
    check_nonempty(n > 0);
    RL_CHECK(mode != "reflect" || (before < n && after < n),
             "Padding size should be less than the dimension that it reflects: (", before, ", ",
             after, ") at dimension ", d, " of input ", size);
    int64_t length = 0;
    RL_CHECK(!__builtin_add_overflow(n, before, &length) &&
                 !__builtin_add_overflow(length, after, &length),
             "padding (", before, ", ", after, ") of ", n, " elements is too large");
    RL_CHECK(before >= -n && after >= -n && length >= (mode == "circular" ? 0 : 1), "input (size ",
             n, " in dimension ", d, ") is too small. Calculated output size: ", length);
    // What goes round comes out of what cropping leaves.
    const int64_t left = n + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    RL_CHECK(mode != "circular" || length == 0 || (before <= left && after <= left),
             "circular padding by (", before, ", ", after, ") would go round dimension ", d,
             " more than once: it has ", n);
    out.sizes[d] = length;
  }
  return out;
}

}  // namespace

namespace shape {

OutSpec constant_pad_nd(Tensor& self, DimVector& pad, Scalar& value) {
  check_pad(self, pad);
  value.check_fits(self.dtype());
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
  out.format = format_of(self);
  return out;
}

OutSpec _pad_edges(Tensor& self, DimVector& pad, std::string& mode) {
  check_pad(self, pad);
  self = contiguous_raw(self);
  return padded_spec(self.sizes(), self.dtype(), pad, mode);
}

OutSpec _pad_edges_backward(Tensor& grad, DimVector& size, DimVector& pad, std::string& mode) {
  check_pad(grad, pad);
  const OutSpec out = padded_spec(size, grad.dtype(), pad, mode);
  RL_CHECK(grad.sizes() == IntArrayRef(out.sizes),
           "_pad_edges_backward: expected a gradient of size ", out.sizes, ", got ", grad.sizes());
  grad = contiguous_raw(grad);
  return {size, grad.dtype()};
}

}  // namespace shape

DimVector negate(IntArrayRef list) {
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
  RL_CHECK(value.value_or(0.0) == 0.0, "pad: mode '", mode,
           "' repeats elements and doesn't take a value, but got ", value.value_or(0.0));
  // Of modes and dimensions only these are ops of their own, with a rule of their own.
  const bool widened = mode == "replicate" || (mode == "reflect" && pad.size() < 6);
  if (RL_UNLIKELY(widened && autocast::is_enabled(kCPU))) {
    return _pad_edges(autocast::cached_cast(kFloat32, self, kCPU), pad, mode);
  }
  return _pad_edges(self, pad, mode);
}

}  // namespace rushlight
