// Fourier transforms above the kernels: contracts, derivatives, the functions of rushlight.fft,
// short-time transforms and windows.
#include <algorithm>
#include <cmath>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

void check_dims(const Tensor& self, DimVector& dim) {
  RL_CHECK(self.dim() > 0 && !dim.empty(),
           "_fft: must transform at least one axis, but got a tensor of shape ", self.sizes(),
           " and dim ", dim);
  dim = wrap_dims(dim, self.dim(), false);
}

void check_normalization(int64_t n) {
  RL_CHECK(n >= 0 && n <= 2, "_fft: normalization must be 0, 1 or 2, but got ", n);
}

}  // namespace

namespace shape {

OutSpec _fft_c2c(Tensor& self, DimVector& dim, int64_t& normalization, bool&) {
  RL_CHECK(self.is_complex(), "Expected a complex tensor, but got ", enum_name(self.dtype()));
  check_normalization(normalization);
  if (!dim.empty()) {  // else nothing is transformed
    check_dims(self, dim);
  }
  return {self.sizes(), self.dtype()};
}

OutSpec _fft_r2c(Tensor& self, DimVector& dim, int64_t& normalization, bool& onesided) {
  RL_CHECK(self.dtype() == kFloat32 || self.dtype() == kFloat64, "Unsupported dtype ",
           enum_name(self.dtype()));
  check_normalization(normalization);
  check_dims(self, dim);
  OutSpec out{self.sizes(), to_complex(self.dtype())};
  if (onesided) {
    const auto last = static_cast<size_t>(dim.back());
    out.sizes[last] = out.sizes[last] / 2 + 1;
  }
  return out;
}

OutSpec _fft_c2r(Tensor& self, DimVector& dim, int64_t& normalization, int64_t& last_dim_size) {
  RL_CHECK(self.is_complex(), "Expected a complex tensor, but got ", enum_name(self.dtype()));
  check_normalization(normalization);
  check_dims(self, dim);
  const auto last = static_cast<size_t>(dim.back());
  RL_CHECK(last_dim_size >= 1, "Invalid number of data points (", last_dim_size, ") specified");
  RL_CHECK(self.sizes()[last] >= last_dim_size / 2 + 1, "_fft_c2r: ", self.sizes()[last],
           " values are too few for ", last_dim_size, " points");
  OutSpec out{self.sizes(), to_real(self.dtype())};
  out.sizes[last] = last_dim_size;
  return out;
}

}  // namespace shape

// ---- derivatives ----

Tensor fft_r2c_backward(const Tensor& grad, IntArrayRef sizes, IntArrayRef dim,
                        int64_t normalization, bool onesided) {
  Tensor g = grad;
  if (onesided) {
    const int64_t last = wrap_dim(dim.back(), grad.dim());
    const int64_t missing = sizes[static_cast<size_t>(last)] - grad.size(last);
    DimVector padding(static_cast<size_t>(2 * (grad.dim() - last)), 0);
    padding.back() = missing;
    g = rushlight::constant_pad_nd(grad, padding);
  }
  return real(rushlight::_fft_c2c(g, dim, normalization, false));
}

Tensor fft_c2r_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization) {
  const int64_t last = wrap_dim(dim.back(), grad.dim());
  const Tensor half = rushlight::_fft_r2c(grad, dim, normalization, true);
  // Every frequency but 0 and the middle one stands for two.
  const int64_t n = half.size(last);
  const int64_t doubled = grad.size(last) - n;
  const TensorOptions options = grad.options();
  const Tensor weights = cat({rushlight::ones({1}, options), rushlight::full({doubled}, 2, options),
                              rushlight::ones({n - 1 - doubled}, options)});
  DimVector shape(static_cast<size_t>(grad.dim()), 1);
  shape[static_cast<size_t>(last)] = n;
  return half * weights.reshape(shape);
}

namespace composite {

namespace {

// 0 for none, 1 by the root, 2 by the number of points.
int64_t normalization(std::optional<std::string_view> norm, bool forward) {
  if (!norm.has_value() || *norm == "backward") {
    return forward ? 0 : 2;
  }
  if (*norm == "forward") {
    return forward ? 2 : 0;
  }
  RL_CHECK(*norm == "ortho", "Invalid normalization mode: \"", *norm, "\"");
  return 1;
}

Tensor to_float(const Tensor& t) {
  RL_CHECK(contains((set_all & ~set_reduced) | set_wide_unsigned, t.dtype()), "Unsupported dtype ",
           enum_name(t.dtype()));
  return t.to(to_floating(t.dtype()));
}

Tensor as_complex(const Tensor& t) {
  const Tensor f = to_float(t);
  return f.is_complex() ? f : f.to(to_complex(f.dtype()));
}

Tensor as_real(const char* name, const Tensor& t) {
  RL_CHECK(!t.is_complex(), name, " expects a real input tensor, but got ", enum_name(t.dtype()));
  return to_float(t);
}

// A dimension cut, or filled up with zeros, to n points.
Tensor resize(const Tensor& t, int64_t dim, int64_t n) {
  RL_CHECK(n >= 1, "Invalid number of data points (", n, ") specified");
  const int64_t have = t.size(dim);
  if (have == n) {
    return t;
  }
  if (have > n) {
    return t.narrow(dim, 0, n);
  }
  DimVector padding(static_cast<size_t>(2 * (t.dim() - dim)), 0);
  padding.back() = n - have;
  return rushlight::constant_pad_nd(t, padding);
}

Tensor complex_1d(const Tensor& self, std::optional<int64_t> n, int64_t dim,
                  std::optional<std::string_view> norm, bool forward) {
  const int64_t d = existing_dim(dim, self.dim());
  const Tensor x = resize(as_complex(self), d, n.value_or(self.size(d)));
  return rushlight::_fft_c2c(x, d, normalization(norm, forward), forward);
}

Tensor real_1d(const char* name, const Tensor& self, std::optional<int64_t> n, int64_t dim,
               std::optional<std::string_view> norm, bool forward) {
  const int64_t d = existing_dim(dim, self.dim());
  const Tensor x = resize(as_real(name, self), d, n.value_or(self.size(d)));
  const Tensor half = rushlight::_fft_r2c(x, d, normalization(norm, forward), true);
  return forward ? half : half.conj();
}

Tensor hermitian_1d(const Tensor& self, std::optional<int64_t> n, int64_t dim,
                    std::optional<std::string_view> norm, bool forward) {
  const int64_t d = existing_dim(dim, self.dim());
  const int64_t points = n.value_or(2 * (self.size(d) - 1));
  RL_CHECK(points >= 1, "Invalid number of data points (", points, ") specified");
  const Tensor x = resize(as_complex(self), d, points / 2 + 1);
  return rushlight::_fft_c2r(forward ? x.conj() : x, d, normalization(norm, forward), points);
}

// Sizes and dimensions of a transform over several dimensions.
struct Plan {
  DimVector sizes;
  DimVector dims;
};

Plan plan(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim) {
  Plan p;
  const int64_t ndim = self.dim();
  if (dim.has_value()) {
    for (const int64_t d : dim.value()) {
      p.dims.push_back(existing_dim(d, self.dim()));
    }
    for (size_t i = 0; i < p.dims.size(); i++) {
      for (size_t j = 0; j < i; j++) {
        RL_CHECK(p.dims[i] != p.dims[j], "FFT dims must be unique");
      }
    }
  }
  if (s.has_value()) {
    RL_CHECK(!dim.has_value() || dim.value().size() == s.value().size(),
             "fft: as many sizes as dimensions are needed: dim and shape have ", dim.value().size(),
             " and ", s.value().size());
    const auto count = static_cast<int64_t>(s.value().size());
    RL_CHECK(count <= ndim, "fft: a shape of ", count,
             " values does not fit: input tensor only has ", ndim, " dimensions");
    if (!dim.has_value()) {
      for (int64_t d = ndim - count; d < ndim; d++) {
        p.dims.push_back(d);
      }
    }
    for (size_t i = 0; i < p.dims.size(); i++) {
      const int64_t n = s.value()[i];
      p.sizes.push_back(n == -1 ? self.size(p.dims[i]) : n);
      RL_CHECK(p.sizes[i] > 0, "Invalid number of data points (", n, ") specified");
    }
    return p;
  }
  if (!dim.has_value()) {
    for (int64_t d = 0; d < ndim; d++) {
      p.dims.push_back(d);
    }
  }
  for (const int64_t d : p.dims) {
    p.sizes.push_back(self.size(d));
    RL_CHECK(p.sizes.back() > 0, "Invalid number of data points (", p.sizes.back(), ") specified");
  }
  return p;
}

Tensor resize(const Tensor& t, const Plan& p) {
  Tensor out = t;
  for (size_t i = 0; i < p.dims.size(); i++) {
    out = resize(out, p.dims[i], p.sizes[i]);
  }
  return out;
}

IntArrayRef all_but_last(const DimVector& dims) {
  return IntArrayRef(dims).slice(0, dims.size() - 1);
}

Tensor complex_nd(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim,
                  std::optional<std::string_view> norm, bool forward) {
  const Plan p = plan(self, s, dim);
  const Tensor x = as_complex(self);
  if (p.dims.empty()) {
    return x.clone();
  }
  return rushlight::_fft_c2c(resize(x, p), p.dims, normalization(norm, forward), forward);
}

Tensor real_nd(const char* name, const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim,
               std::optional<std::string_view> norm, bool forward) {
  const Tensor real = as_real(name, self);
  Plan p = plan(self, s, dim);
  RL_CHECK(!p.dims.empty(), name, " must transform at least one axis");
  const Tensor x = resize(real, p);
  const int64_t mode = normalization(norm, forward);
  if (forward) {
    return rushlight::_fft_r2c(x, p.dims, mode, true);
  }
  const Tensor half = rushlight::_fft_r2c(x, p.dims.back(), mode, true).conj();
  return p.dims.size() == 1 ? half : rushlight::_fft_c2c(half, all_but_last(p.dims), mode, false);
}

Tensor hermitian_nd(const char* name, const Tensor& self, OptionalIntArrayRef s,
                    OptionalIntArrayRef dim, std::optional<std::string_view> norm, bool forward) {
  Plan p = plan(self, s, dim);
  RL_CHECK(!p.dims.empty(), name, " must transform at least one axis");
  const bool given = s.has_value() && s.value()[s.value().size() - 1] != -1;
  const int64_t points = given ? p.sizes.back() : 2 * (self.size(p.dims.back()) - 1);
  RL_CHECK(points >= 1, "Invalid number of data points (", points, ") specified");
  p.sizes.back() = points / 2 + 1;
  const Tensor x = resize(as_complex(self), p);
  const int64_t mode = normalization(norm, forward);
  if (!forward) {
    return rushlight::_fft_c2r(x, p.dims, mode, points);
  }
  const Tensor first =
      p.dims.size() == 1 ? x : rushlight::_fft_c2c(x, all_but_last(p.dims), mode, true);
  return rushlight::_fft_c2r(first.conj(), p.dims.back(), mode, points);
}

}  // namespace

#define RL_FFT_FAMILY(name, one, several, ...)                                             \
  Tensor fft_##name(const Tensor& self, std::optional<int64_t> n, int64_t dim,             \
                    std::optional<std::string_view> norm) {                                \
    return one;                                                                            \
  }                                                                                        \
  Tensor fft_##name##2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim,         \
                       std::optional<std::string_view> norm) {                             \
    return several;                                                                        \
  }                                                                                        \
  Tensor fft_##name##n(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, \
                       std::optional<std::string_view> norm) {                             \
    return several;                                                                        \
  }
RL_FFT_FAMILY(fft, complex_1d(self, n, dim, norm, true), complex_nd(self, s, dim, norm, true))
RL_FFT_FAMILY(ifft, complex_1d(self, n, dim, norm, false), complex_nd(self, s, dim, norm, false))
RL_FFT_FAMILY(rfft, real_1d("rfft", self, n, dim, norm, true),
              real_nd("rfftn", self, s, dim, norm, true))
RL_FFT_FAMILY(ihfft, real_1d("ihfft", self, n, dim, norm, false),
              real_nd("ihfftn", self, s, dim, norm, false))
RL_FFT_FAMILY(irfft, hermitian_1d(self, n, dim, norm, false),
              hermitian_nd("irfftn", self, s, dim, norm, false))
RL_FFT_FAMILY(hfft, hermitian_1d(self, n, dim, norm, true),
              hermitian_nd("hfftn", self, s, dim, norm, true))
#undef RL_FFT_FAMILY

// ---- frequencies ----

namespace {

void check_frequency_dtype(const TensorOptions& options) {
  RL_CHECK(is_differentiable(options.dtype()),
           "fftfreq requires a floating point or complex dtype");
}

}  // namespace

Tensor fft_fftfreq(int64_t n, double d, const TensorOptions& options) {
  check_frequency_dtype(options);
  RL_CHECK(n >= 0, "fftfreq: n must not be negative, but got ", n);
  const int64_t half = n / 2 + n % 2;
  const Tensor order = cat({rushlight::arange(0, half, 1, options.requires_grad(false)),
                            rushlight::arange(half - n, 0, 1, options.requires_grad(false))});
  const Tensor out = order * (1 / (static_cast<double>(n) * d));
  return options.requires_grad() ? out.requires_grad_() : out;
}

Tensor fft_rfftfreq(int64_t n, double d, const TensorOptions& options) {
  check_frequency_dtype(options);
  RL_CHECK(n >= 0, "rfftfreq: n must not be negative, but got ", n);
  const Tensor out = rushlight::arange(0, n / 2 + 1, 1, options.requires_grad(false)) *
                     (1 / (static_cast<double>(n) * d));
  return options.requires_grad() ? out.requires_grad_() : out;
}

namespace {

Tensor roll_by_half(const Tensor& self, OptionalIntArrayRef dim, bool back) {
  const DimVector dims =
      dim.has_value() ? wrap_dims(dim.value(), self.dim(), false) : wrap_dims({}, self.dim(), true);
  DimVector shifts;
  for (const int64_t d : dims) {
    const int64_t n = self.dim() == 0 ? 1 : self.size(d);
    shifts.push_back(back ? (n + 1) / 2 : n / 2);
  }
  return dims.empty() ? self.clone() : self.roll(shifts, dims);
}

}  // namespace

Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return roll_by_half(self, dim, false);
}

Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return roll_by_half(self, dim, true);
}

// ---- short-time transforms ----

namespace {

// The window in the middle of n_fft points; all ones where none is given.
Tensor full_window(const Tensor& window, int64_t win_length, int64_t n_fft, ScalarType dtype,
                   Device device) {
  const Tensor w = window.defined()
                       ? window
                       : rushlight::ones({win_length}, TensorOptions(dtype).device(device));
  const int64_t left = (n_fft - win_length) / 2;
  return win_length == n_fft ? w : rushlight::constant_pad_nd(w, {left, n_fft - win_length - left});
}

std::string call_text(const char* name, const Tensor& self, int64_t n_fft, int64_t hop,
                      int64_t win) {
  return str(name, "(", enum_name(self.dtype()), self.sizes(), ", n_fft=", n_fft,
             ", hop_length=", hop, ", win_length=", win, "): ");
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const Tensor& window, bool center,
            std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  const int64_t hop = hop_length.value_or(n_fft / 4);
  const int64_t win = win_length.value_or(n_fft);
  const std::string call = call_text("stft", self, n_fft, hop, win);
  RL_CHECK(is_differentiable(self.dtype()), call, "signals are floating point or complex, not ",
           self.dtype());
  RL_CHECK(self.dim() == 1 || self.dim() == 2, call, "expected a 1D or 2D tensor");
  RL_CHECK(!center || !align_to_window.has_value(),
           "stft align_to_window should only be set when center = false.");
  const bool complex_input = self.is_complex() || (window.defined() && window.is_complex());
  RL_CHECK(complex_input || return_complex.has_value(),
           "stft: return_complex must be given for real inputs: True for a complex result, which "
           "view_as_real shows as pairs of numbers");
  RL_CHECK(n_fft > 0, call, "expected 0 < n_fft < ", self.size(-1), ", but got n_fft=", n_fft);
  Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  const bool aligned = align_to_window.value_or(false);
  const int64_t margin = center ? n_fft / 2 : aligned ? (n_fft - win) / 2 : 0;
  if (center) {
    x = rushlight::pad(x.unsqueeze(1), {margin, margin}, pad_mode).squeeze(1);
  } else if (aligned && margin > 0) {
    x = rushlight::constant_pad_nd(x, {margin, margin});
  }
  RL_CHECK(n_fft <= x.size(1), call, "expected 0 < n_fft <= ", x.size(1),
           ", but got n_fft=", n_fft);
  RL_CHECK(hop > 0, call, "expected hop_length > 0, but got hop_length=", hop);
  RL_CHECK(win > 0 && win <= n_fft, call,
           "expected 0 < win_length <= n_fft, but got win_length=", win);
  RL_CHECK(!window.defined() || (window.dim() == 1 && window.size(0) == win), call,
           "expected a 1D window tensor of size win_length=", win, ", not of the sizes ",
           window.defined() ? window.sizes() : IntArrayRef());
  RL_CHECK(!onesided.value_or(false) || !complex_input, call,
           "cannot have onesided output if window or input is complex");
  if (!window.defined()) {
    static bool warned = false;
    warn_once(warned,
              "stft: A window was not provided, so that all samples of a frame count alike and its "
              "sharp ends leak into every frequency. torch.hann_window(win_length) leaks less.");
  }
  // (batch, frames, n_fft), weighted
  Tensor frames = x.unfold(-1, n_fft, hop);
  if (window.defined() || win < n_fft) {
    frames = frames * full_window(window, win, n_fft, to_real(x.dtype()), x.device());
  }
  const int64_t mode = normalized ? 1 : 0;
  const bool half = onesided.value_or(!complex_input);
  Tensor out = complex_input ? rushlight::_fft_c2c(as_complex(frames), 2, mode, true)
                             : rushlight::_fft_r2c(to_float(frames), 2, mode, half);
  out = out.transpose(1, 2);
  if (self.dim() == 1) {
    out = out.squeeze(0);
  }
  return return_complex.value_or(true) ? out : view_as_real(out);
}

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const Tensor& window, bool center, bool normalized,
             std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
  const int64_t hop = hop_length.value_or(n_fft / 4);
  const int64_t win = win_length.value_or(n_fft);
  const std::string call = call_text("istft", self, n_fft, hop, win);
  RL_CHECK(self.is_complex(),
           "istft requires a complex-valued input tensor, such as stft gives with "
           "return_complex=True, but got ",
           enum_name(self.dtype()));
  RL_CHECK(self.numel() != 0, call, "input tensor cannot be empty.");
  RL_CHECK(self.dim() == 2 || self.dim() == 3, call,
           "spectra are (frequencies, frames) or a batch of them, not of ", self.dim(),
           " dimensions");
  RL_CHECK(n_fft > 0, call, "expected n_fft > 0");
  const Tensor x = self.dim() == 2 ? self.unsqueeze(0) : self;
  const int64_t bins = x.size(1);
  const int64_t count = x.size(2);
  const bool half = onesided.value_or(bins != n_fft);
  const int64_t frequencies = half ? n_fft / 2 + 1 : n_fft;
  RL_CHECK(bins == frequencies, call, "expected ", frequencies, " frequencies where onesided is ",
           half ? "True" : "False", ", in the dimension before the last, but got ", bins);
  RL_CHECK(hop > 0 && hop <= win, call, "expected 0 < hop_length <= win_length");
  RL_CHECK(win > 0 && win <= n_fft, call, "expected 0 < win_length <= n_fft");
  RL_CHECK(!window.defined() || (window.dim() == 1 && window.size(0) == win), call,
           "Invalid window shape: expected [", win, "] (win_length), but got ", window.sizes());
  RL_CHECK(!return_complex || !half, call,
           "cannot have onesided output if window or input is complex");
  const ScalarType real_dtype = to_real(x.dtype());
  const Tensor weights = full_window(window, win, n_fft, real_dtype, x.device());
  const int64_t mode = normalized ? 1 : 2;
  const Tensor spectra = x.transpose(1, 2);  // (batch, frames, bins)
  Tensor frames;
  if (return_complex) {
    frames = rushlight::_fft_c2c(spectra, 2, mode, false);
  } else {
    frames =
        rushlight::_fft_c2r(half ? spectra : spectra.narrow(2, 0, n_fft / 2 + 1), 2, mode, n_fft);
  }
  frames = frames * weights;
  // Frames overlap and add up; so do the squares of the window, which are divided out.
  const int64_t total = n_fft + hop * (count - 1);
  const TensorOptions indices = TensorOptions(kInt64).device(x.device());
  const Tensor places = (rushlight::arange(0, count, 1, indices).unsqueeze(1) * hop +
                         rushlight::arange(0, n_fft, 1, indices))
                            .reshape({-1});
  const auto overlap_add = [&](const Tensor& t) {  // (batch, frames, n_fft) to (batch, total)
    const Tensor empty_signal = rushlight::zeros({t.size(0), total}, t.options());
    return empty_signal.index_add(1, places, t.reshape({t.size(0), count * n_fft}));
  };
  Tensor y = overlap_add(frames);
  Tensor envelope =
      overlap_add((weights * weights).to(real_dtype).expand({1, count, n_fft}).contiguous());
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t stop = length.has_value() ? start + *length : center ? total - n_fft / 2 : total;
  const int64_t end = std::min(stop, total);
  RL_CHECK(end >= start, call, "the output would be empty");
  y = y.narrow(1, start, end - start);
  envelope = envelope.narrow(1, start, end - start);
  if (!x.is_meta() && envelope.numel() != 0) {
    const double least = batching::all_of(envelope.abs()).min().item<double>();
    RL_CHECK(least > 1e-11, call, "window overlap add min: ", least);
  }
  y = y / envelope;
  if (stop > end) {
    static bool warned = false;
    warn_once(warned, str("istft: length=", *length, ", but the frames make a signal of ",
                          end - start, " samples: zeros follow them."));
    y = rushlight::constant_pad_nd(y, {0, stop - end});
  }
  return self.dim() == 2 ? y.squeeze(0) : y;
}

// ---- windows ----

namespace {

// f of the points 0, 1, … and of the length of the period, in the wanted dtype.
template <class F>
Tensor window(const char* name, int64_t n, bool periodic, const TensorOptions& options,
              const F& f) {
  RL_CHECK(is_floating(options.dtype()), name, " expects floating point dtypes, got: ", "torch.",
           options.dtype());
  RL_CHECK(n >= 0, name, " requires non-negative window_length, got window_length=", n);
  const TensorOptions plain = options.requires_grad(false);
  Tensor out;
  if (n <= 1) {
    out = rushlight::ones({n}, plain);
  } else {
    const bool reduced = options.dtype() == kFloat16 || options.dtype() == kBFloat16;
    const Tensor points = rushlight::arange(0, n, 1, reduced ? plain.dtype(kFloat32) : plain);
    out = f(points, static_cast<double>(periodic ? n : n - 1)).to(options.dtype());
  }
  return options.requires_grad() ? out.requires_grad_() : out;
}

}  // namespace

Tensor bartlett_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window("bartlett_window", window_length, periodic, options,
                [](const Tensor& t, double period) { return 1 - (t * (2 / period) - 1).abs(); });
}

Tensor blackman_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window("blackman_window", window_length, periodic, options,
                [](const Tensor& t, double period) {
                  const Tensor angle = t * (2 * M_PI / period);
                  return angle.cos() * -0.5 + (angle * 2).cos() * 0.08 + 0.42;
                });
}

Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta,
                      const TensorOptions& options) {
  return window("hamming_window", window_length, periodic, options,
                [&](const Tensor& t, double period) {
                  return (t * (2 * M_PI / period)).cos() * -beta + alpha;
                });
}

Tensor hann_window(int64_t window_length, bool periodic, const TensorOptions& options) {
  return window(
      "hann_window", window_length, periodic, options,
      [](const Tensor& t, double period) { return (t * (2 * M_PI / period)).cos() * -0.5 + 0.5; });
}

Tensor kaiser_window(int64_t window_length, bool periodic, double beta,
                     const TensorOptions& options) {
  return window("kaiser_window", window_length, periodic, options,
                [&](const Tensor& t, double period) {
                  const Tensor x = t * (2 / period) - 1;
                  const Tensor along = (1 - x * x).clamp(0).sqrt();
                  // Both grow as exp(beta), which may be infinite: scaled they do not.
                  const double size = std::abs(beta);
                  const Tensor whole = rushlight::special_i0e(along.new_full({}, Scalar(size)));
                  const Tensor part = rushlight::special_i0e(along * size);
                  return part / whole * ((along - 1) * size).exp();
                });
}

}  // namespace composite
}  // namespace rushlight
