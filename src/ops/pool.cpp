// The contract of pooling, and its public forms. An input has one or more dimensions before those
// that are pooled.
#include <limits>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"

namespace rushlight {

namespace {

// No size, stride or padding beyond this: products stay far from overflow.
constexpr int64_t largest = int64_t{1} << 31;

// Batches of images in channels-last order stay so; all others, single images of such strides too,
// are made contiguous.
MemoryFormat make_dense(Tensor& t, size_t dims) {
  const bool batch = t.sizes().size() == dims + 2;
  const MemoryFormat format = batch ? format_of(t) : MemoryFormat::Contiguous;
  t = contiguous_raw(t, format);
  return format;
}

std::string by(IntArrayRef sizes) {
  std::string out;
  for (const int64_t s : sizes) {
    out += str(out.empty() ? "" : "x", s);
  }
  return out;
}

void check_images(const Tensor& t, int64_t dims) {
  RL_CHECK(dims >= 1 && dims <= 3, "pooling is over 1, 2 or 3 dimensions, not ", dims);
  RL_CHECK(t.dim() > dims, "pooling over ", dims, " dimensions expects an input of more, but got ",
           t.sizes());
  for (int64_t d = 0; d < dims; d++) {
    RL_CHECK(t.size(t.dim() - 1 - d) < largest, "pooling: the image is too large");
  }
}

struct Window {
  DimVector& kernel;
  DimVector& stride;
  DimVector& padding;
  DimVector& dilation;
};

void check_window(const Window& w) {
  const size_t dims = w.kernel.size();
  RL_CHECK(dims >= 1 && dims <= 3,
           "pooling works over one to three dimensions, got kernel_size=", w.kernel);
  if (w.stride.empty()) {
    w.stride = w.kernel;
  }
  RL_CHECK(w.stride.size() == dims && w.padding.size() == dims && w.dilation.size() == dims,
           "pooling: kernel_size, stride, padding and dilation must have as many elements as there "
           "are dimensions");
  for (size_t d = 0; d < dims; d++) {
    RL_CHECK(w.stride[d] != 0, "stride should not be zero");
    RL_CHECK(w.kernel[d] > 0, "kernel size should be greater than zero, not ", w.kernel);
    RL_CHECK(w.stride[d] > 0, "stride should be greater than zero, not ", w.stride);
    RL_CHECK(w.dilation[d] > 0, "dilation should be greater than zero, not ", w.dilation);
    RL_CHECK(w.kernel[d] < largest && w.stride[d] < largest && w.dilation[d] < largest,
             "pooling: the window is too large");
    RL_CHECK(w.padding[d] >= 0, "padding must be non-negative, not ", w.padding[d]);
    RL_CHECK(w.padding[d] <= ((w.kernel[d] - 1) * w.dilation[d] + 1) / 2,
             "pad should be at most half of the window, whose kernel_size=", w.kernel[d],
             " and dilation=", w.dilation[d], ", but pad=", w.padding[d]);
  }
}

DimVector pooled_sizes(IntArrayRef input, const Window& w, bool ceil_mode) {
  const size_t dims = w.kernel.size();
  const size_t before = input.size() - dims;
  DimVector sizes(input);
  bool positive = true;
  for (size_t d = 0; d < dims; d++) {
    const int64_t room =
        input[before + d] + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1;
    const int64_t stride = w.stride[d];
    const int64_t steps = room + (ceil_mode ? stride - 1 : 0);
    int64_t n = (steps < 0 ? -((-steps + stride - 1) / stride) : steps / stride) + 1;
    // The last window must start inside the image or the padding before it.
    if (ceil_mode && (n - 1) * stride >= input[before + d] + w.padding[d]) {
      n--;
    }
    sizes[before + d] = n;
    positive &= n >= 1;
  }
  RL_CHECK(positive, "an input of ", by(input.slice(before - 1, dims + 1)), " would become ",
           by(IntArrayRef(sizes).slice(before - 1, dims + 1)), ": Output size is too small");
  return sizes;
}

void check_not_bool(const char* op, const Tensor& t) {
  if (t.dtype() == kBool || t.is_complex()) {
    dtype_not_implemented(op, t.dtype());
  }
}

OutSpecs<2> with_indices(const DimVector& sizes, const Tensor& self, MemoryFormat format) {
  return {OutSpec{sizes, self.dtype(), {}, format}, OutSpec{sizes, kInt64, {}, format}};
}

// Makes `t` dense and brings the other into its order.
MemoryFormat same_format(Tensor& t, Tensor& other, size_t dims) {
  const MemoryFormat format = make_dense(t, dims);
  other = contiguous_raw(other, format);
  return format;
}

void check_same_images(const Tensor& grad, IntArrayRef input_size, int64_t dims) {
  RL_CHECK(dims >= 1 && dims <= 3 && grad.dim() > dims &&
               static_cast<size_t>(grad.dim()) == input_size.size(),
           "pooling backward: the gradient must have as many dimensions as the input");
  for (int64_t d = 0; d < grad.dim() - dims; d++) {
    RL_CHECK(grad.size(d) == input_size[static_cast<size_t>(d)],
             "pooling backward: wrong size of the gradient");
  }
}

DimVector adaptive_sizes(const Tensor& self, IntArrayRef output_size) {
  const int64_t dims = static_cast<int64_t>(output_size.size());
  check_images(self, dims);
  DimVector sizes(self.sizes());
  for (int64_t d = 0; d < dims; d++) {
    RL_CHECK(output_size[d] >= 0 && output_size[d] < largest,
             "adaptive pooling: output_size must not be negative or huge, but is ", output_size);
    RL_CHECK(self.size(d - dims) > 0,
             "adaptive pooling: the input must have non-zero size in all dimensions but the "
             "batch, but it has sizes ",
             self.sizes(), " with dimension ", self.dim() - dims + d, " being empty");
    sizes[static_cast<size_t>(self.dim() - dims + d)] = output_size[d];
  }
  return sizes;
}

}  // namespace

namespace shape {

OutSpecs<2> _max_pool(Tensor& self, DimVector& kernel, DimVector& stride, DimVector& padding,
                      DimVector& dilation, bool& ceil_mode) {
  check_window({kernel, stride, padding, dilation});
  check_images(self, static_cast<int64_t>(kernel.size()));
  check_not_bool("max_pool", self);
  const DimVector sizes =
      pooled_sizes(self.sizes(), {kernel, stride, padding, dilation}, ceil_mode);
  return with_indices(sizes, self, make_dense(self, kernel.size()));
}

OutSpec _max_pool_values(Tensor& self, DimVector& kernel, DimVector& stride, DimVector& padding,
                         DimVector& dilation, bool& ceil_mode) {
  return _max_pool(self, kernel, stride, padding, dilation, ceil_mode)[0];
}

OutSpec _max_pool_backward(Tensor& grad, Tensor& indices, DimVector& input_size, int64_t& dims) {
  check_same_images(grad, input_size, dims);
  RL_CHECK(grad.sizes() == indices.sizes() && indices.dtype() == kInt64,
           "max pooling backward: gradient and indices must have one size, got ", grad.sizes(),
           " and ", indices.sizes());
  const MemoryFormat format = same_format(grad, indices, static_cast<size_t>(dims));
  return {input_size, grad.dtype(), {}, format};
}

OutSpec _avg_pool(Tensor& self, DimVector& kernel, DimVector& stride, DimVector& padding,
                  bool& ceil_mode, bool&, std::optional<int64_t>& divisor_override) {
  DimVector dilation(kernel.size(), 1);
  check_window({kernel, stride, padding, dilation});
  check_images(self, static_cast<int64_t>(kernel.size()));
  check_not_bool("avg_pool", self);
  RL_CHECK(divisor_override.value_or(1) != 0, "divisor must be not zero");
  const DimVector sizes =
      pooled_sizes(self.sizes(), {kernel, stride, padding, dilation}, ceil_mode);
  return {sizes, self.dtype(), {}, make_dense(self, kernel.size())};
}

OutSpec _avg_pool_backward(Tensor& grad, DimVector& input_size, DimVector& kernel,
                           DimVector& stride, DimVector& padding, bool& ceil_mode, bool&,
                           std::optional<int64_t>& divisor_override) {
  DimVector dilation(kernel.size(), 1);
  check_window({kernel, stride, padding, dilation});
  check_same_images(grad, input_size, static_cast<int64_t>(kernel.size()));
  RL_CHECK(divisor_override.value_or(1) != 0, "divisor must be not zero");
  const DimVector sizes = pooled_sizes(input_size, {kernel, stride, padding, dilation}, ceil_mode);
  RL_CHECK(grad.sizes() == IntArrayRef(sizes),
           "average pooling backward: expected a gradient of size ", sizes, ", got ", grad.sizes());
  return {input_size, grad.dtype(), {}, make_dense(grad, kernel.size())};
}

OutSpec _adaptive_avg_pool(Tensor& self, DimVector& output_size) {
  const DimVector sizes = adaptive_sizes(self, output_size);
  check_not_bool("adaptive_avg_pool", self);
  return {sizes, self.dtype(), {}, make_dense(self, output_size.size())};
}

OutSpec _adaptive_avg_pool_backward(Tensor& grad, DimVector& input_size, int64_t& dims) {
  check_same_images(grad, input_size, dims);
  return {input_size, grad.dtype(), {}, make_dense(grad, static_cast<size_t>(dims))};
}

OutSpecs<2> _adaptive_max_pool(Tensor& self, DimVector& output_size) {
  const DimVector sizes = adaptive_sizes(self, output_size);
  check_not_bool("adaptive_max_pool", self);
  return with_indices(sizes, self, make_dense(self, output_size.size()));
}

}  // namespace shape

// ---- derivatives ----

Tensor gather_pooled(const Tensor& t, const Tensor& indices, int64_t dims) {
  return t.flatten(t.dim() - dims)
      .gather(-1, indices.flatten(indices.dim() - dims))
      .reshape(indices.sizes());
}

Tensor places_of_largest(const Tensor& images, IntArrayRef kernel_size, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return std::get<1>(_max_pool(images, kernel_size, stride, padding, dilation, ceil_mode));
}

DimVector last_sizes(IntArrayRef sizes, int64_t dims) {
  return DimVector(
      sizes.slice(sizes.size() - static_cast<size_t>(dims), static_cast<size_t>(dims)));
}

// ---- composites ----

namespace {

// What a public form of `dims` dimensions takes: (N, C, ...) or (C, ...).
void check_input(const char* name, const Tensor& self, int64_t dims) {
  RL_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, ": non-empty ", dims + 1,
           "D or ", dims + 2, "D input is expected, (C, ...) or (N, C, ...), not ", self.sizes());
  for (int64_t d = self.dim() == dims + 2 ? 1 : 0; d < self.dim(); d++) {
    RL_CHECK(
        self.size(d) > 0, "Expected ", dims + 1, "D or ", dims + 2,
        "D input without empty dimensions (optional 0 dim batch size for input alone), but got ",
        self.sizes());
  }
}

DimVector one_for_each(const char* name, const char* what, IntArrayRef list, int64_t dims) {
  RL_CHECK(list.size() == 1 || static_cast<int64_t>(list.size()) == dims, name, ": ", what,
           " must be a single int or ", dims, " of them, not ", list);
  return list.size() == 1 ? DimVector(static_cast<size_t>(dims), list[0]) : DimVector(list);
}

DimVector strides_of(const char* name, IntArrayRef stride, const DimVector& kernel) {
  return stride.empty() ? kernel
                        : one_for_each(name, "stride", stride, static_cast<int64_t>(kernel.size()));
}

// `pool` is _max_pool or _max_pool_values.
template <class Pool>
auto max_pool(const Pool& pool, const char* name, int64_t dims, const Tensor& self,
              IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
              IntArrayRef dilation, bool ceil_mode) {
  check_input(name, self, dims);
  const DimVector kernel = one_for_each(name, "kernel_size", kernel_size, dims);
  return pool(self, kernel, strides_of(name, stride, kernel),
              one_for_each(name, "padding", padding, dims),
              one_for_each(name, "dilation", dilation, dims), ceil_mode);
}

// Backward needs the places; without it they would be most of the work.
Tensor largest_of_windows(const char* name, int64_t dims, const Tensor& self,
                          IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                          IntArrayRef dilation, bool ceil_mode) {
  if (grad_enabled() && self.requires_grad()) {
    return std::get<0>(
        max_pool(_max_pool, name, dims, self, kernel_size, stride, padding, dilation, ceil_mode));
  }
  return max_pool(_max_pool_values, name, dims, self, kernel_size, stride, padding, dilation,
                  ceil_mode);
}

Tensor avg_pool(const char* name, int64_t dims, const Tensor& self, IntArrayRef kernel_size,
                IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor) {
  check_input(name, self, dims);
  const DimVector kernel = one_for_each(name, "kernel_size", kernel_size, dims);
  return _avg_pool(self, kernel, strides_of(name, stride, kernel),
                   one_for_each(name, "padding", padding, dims), ceil_mode, count_include_pad,
                   divisor);
}

DimVector adaptive_output(const char* name, int64_t dims, const Tensor& self,
                          IntArrayRef output_size) {
  RL_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, "(): Expected ", dims + 1,
           "D or ", dims + 2, "D tensor, but got ", self.sizes());
  RL_CHECK(output_size.size() == 1 || static_cast<int64_t>(output_size.size()) == dims, name,
           ": output_size must be ", dims);
  return one_for_each(name, "output_size", output_size, dims);
}

}  // namespace

// ---- windows at random places ----

namespace {

// (N, C, count): where the windows of one dimension begin; the last ends at the image's end.
Tensor window_starts(const Tensor& samples, int64_t length, int64_t count, int64_t window) {
  const Tensor last = rushlight::full({samples.size(0), samples.size(1), 1}, length - window,
                                      TensorOptions(kInt64).device(samples.device()));
  if (count == 1) {
    return last;
  }
  const double step = static_cast<double>(length - window) / static_cast<double>(count - 1);
  const Tensor place = rushlight::arange(0, count - 1, 1, samples.options());
  const Tensor shift = samples.unsqueeze(-1);
  const Tensor starts = ((shift + place) * step).to(kInt64) - (shift * step).to(kInt64);
  return rushlight::cat({starts, last}, -1);
}

std::tuple<Tensor, Tensor> fractional_max_pool(const char* name, int64_t dims, const Tensor& self,
                                               IntArrayRef kernel_size, IntArrayRef output_size,
                                               const Tensor& samples) {
  RL_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, ": Expected ", dims + 1, "D or ",
           dims + 2, "D tensor, but got ", self.sizes());
  const DimVector window = one_for_each(name, "kernel_size", kernel_size, dims);
  const DimVector size = one_for_each(name, "output_size", output_size, dims);
  const bool batched = self.dim() == dims + 2;
  const Tensor x = batched ? self : self.unsqueeze(0);
  for (int64_t d = 0; d < dims; d++) {
    const size_t i = static_cast<size_t>(d);
    RL_CHECK(size[i] >= 1 && window[i] >= 1 && window[i] < largest && size[i] < largest &&
                 size[i] + window[i] - 1 <= x.size(d + 2),
             name, ": pool size ", window[i], " and output size ", size[i],
             " are too large for an input size ", x.size(d + 2));
  }
  const int64_t batch = x.size(0);
  const int64_t channels = x.size(1);
  RL_CHECK(samples.dim() == 3 && samples.size(0) >= batch && samples.size(1) == channels &&
               samples.size(2) == dims,
           name, ": expected _random_samples of shape ", DimVector{batch, channels, dims}, ", got ",
           samples.sizes());
  RL_CHECK(samples.dtype() == self.dtype(), name, ": expected _random_samples of dtype ",
           self.dtype(), ", got ", samples.dtype());
  // The places of all elements of all windows: (N, C, sizes..., windows...).
  Tensor flat;
  for (int64_t d = 0; d < dims; d++) {
    const size_t i = static_cast<size_t>(d);
    const int64_t sample = dims == 2 ? 1 - d : d;  // in two dimensions the width's stands first
    const Tensor starts = window_starts(samples.narrow(0, 0, batch).select(-1, sample),
                                        x.size(d + 2), size[i], window[i]);
    const Tensor within =
        rushlight::arange(0, window[i], 1, TensorOptions(kInt64).device(x.device()));
    DimVector shape(static_cast<size_t>(2 + 2 * dims), 1);
    shape[0] = batch;
    shape[1] = channels;
    shape[2 + i] = size[i];
    shape[static_cast<size_t>(2 + dims) + i] = window[i];
    const Tensor places = (starts.unsqueeze(-1) + within).reshape(shape);
    flat = flat.defined() ? flat * x.size(d + 2) + places : places;
  }
  flat = flat.flatten(2 + dims);
  const auto [values, chosen] =
      x.flatten(2).gather(2, flat.flatten(2)).reshape(flat.sizes()).max(-1);
  const Tensor indices = flat.gather(-1, chosen.unsqueeze(-1)).squeeze(-1);
  return batched ? std::tuple(values, indices) : std::tuple(values.squeeze(0), indices.squeeze(0));
}

// ---- maxima put back ----

Tensor put_back(const char* name, int64_t dims, const Tensor& self, const Tensor& indices,
                IntArrayRef output_size) {
  RL_CHECK(indices.dtype() == kInt64, "unpooling: elements in indices should be int64, not ",
           indices.dtype());
  RL_CHECK(self.sizes() == indices.sizes(), name, ": input and indices must have one shape, not ",
           self.sizes(), " and ", indices.sizes());
  RL_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "max_unpool", dims,
           "d takes (C, ...) or (N, C, ...): ", dims + 1, " or ", dims + 2, " dimensions, not ",
           self.dim());
  const DimVector size = one_for_each(name, "output_size", output_size, dims);
  int64_t area = 1;
  for (const int64_t n : size) {
    RL_CHECK(n >= 0 && n < largest, name, ": output sizes must not be negative, got ", size);
    area = n == 0 ? 0 : area < std::numeric_limits<int64_t>::max() / n ? area * n : -1;
    RL_CHECK(area >= 0, name, ": the image is too large");
  }
  if (indices.numel() != 0 && !indices.is_meta()) {
    const auto [low, high] = rushlight::aminmax(batching::all_of(indices));
    const int64_t least = low.item<int64_t>();
    const int64_t most = high.item<int64_t>();
    RL_CHECK(least >= 0 && most < area, "unpooling: Found an invalid max index, ",
             most >= area ? most : least, ", for an output of ", by(size));
  }
  const size_t before = static_cast<size_t>(self.dim() - dims);
  DimVector flat(self.sizes().slice(0, before));
  DimVector sizes = flat;
  flat.push_back(area);
  for (const int64_t n : size) {
    sizes.push_back(n);
  }
  const int64_t first = static_cast<int64_t>(before);
  return rushlight::zeros(flat, self.options())
      .scatter(-1, indices.flatten(first), self.flatten(first))
      .reshape(sizes);
}

// Undoes x.pow(p), averaged over `count` elements.
Tensor root_of_sum(const Tensor& mean, int64_t count, double p) {
  return (mean.sign() * mean.abs().relu() * count).pow(Scalar(1.0 / p));
}

// The same pooling window by window, each in units of its largest element where powers would
// overflow or vanish. `sizes`: of the result; the last windows may reach beyond the input.
Tensor lp_pool_in_units(const Tensor& x, double p, IntArrayRef kernel, IntArrayRef stride,
                        IntArrayRef sizes, const Sizes& limits) {
  const auto n = static_cast<int64_t>(kernel.size());
  const int64_t first = x.dim() - n;
  DimVector beyond;
  DimVector inside;
  DimVector within_window;
  for (int64_t d = n - 1; d >= 0; d--) {
    const int64_t end = (sizes[first + d] - 1) * stride[d] + kernel[d];
    beyond.push_back(0);
    beyond.push_back(std::max<int64_t>(0, end - x.size(first + d)));
  }
  for (int64_t d = 0; d < n; d++) {
    inside.push_back(x.size(first + d));
    within_window.push_back(d - n);
  }
  const auto windows_of = [&](const Tensor& t) {
    Tensor windows = rushlight::constant_pad_nd(t, beyond);
    for (int64_t d = 0; d < n; d++) {
      windows = windows.unfold(t.dim() - n + d, kernel[d], stride[d]);
    }
    return windows;
  };
  const Tensor windows = windows_of(x);
  const Tensor unit = unit_of(windows, within_window, limits);
  const Tensor counts = windows_of(rushlight::ones(inside, x.options())).sum(within_window);
  const Tensor sums = windows.div(unit).pow(Scalar(p)).sum(within_window);
  const Tensor root = root_of_sum(sums.div(counts), product(kernel), p);
  return root.mul(unit.reshape(root.sizes()));
}

Tensor lp_pool(const char* name, int64_t n, const Tensor& self, double p, IntArrayRef kernel_size,
               OptionalIntArrayRef stride, bool ceil_mode) {
  const DimVector kernel = one_for_each(name, "kernel_size", kernel_size, n);
  const DimVector steps = stride.value_or({});
  const Tensor x = self.to(compute_dtype(self.dtype()));
  const Tensor powers = x.pow(Scalar(p));
  const Tensor mean = n == 1   ? rushlight::avg_pool1d(powers, kernel, steps, 0, ceil_mode)
                      : n == 2 ? rushlight::avg_pool2d(powers, kernel, steps, 0, ceil_mode)
                               : rushlight::avg_pool3d(powers, kernel, steps, 0, ceil_mode);
  const ScalarType dtype = mean.dtype();
  const Sizes limits = moderate_sizes(dtype, p);
  const bool plain = !is_floating(dtype) || mean.numel() == 0 ||
                     are_moderate(mean, moderate_sizes(dtype, 1), false) || are_moderate(x, limits);
  const Tensor root =
      plain ? root_of_sum(mean, product(kernel), p)
            : lp_pool_in_units(x, p, kernel,
                               steps.empty() ? kernel : one_for_each(name, "stride", steps, n),
                               mean.sizes(), limits);
  return is_differentiable(self.dtype()) ? root.to(self.dtype()) : root;
}

}  // namespace

namespace composite {

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntArrayRef kernel_size,
                                                 IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  return fractional_max_pool("fractional_max_pool2d", 2, self, kernel_size, output_size,
                             random_samples);
}

std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntArrayRef kernel_size,
                                                 IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  return fractional_max_pool("fractional_max_pool3d", 3, self, kernel_size, output_size,
                             random_samples);
}

std::tuple<Tensor, Tensor> _fractional_max_pool(const Tensor& self, int64_t dims,
                                                IntArrayRef kernel_size,
                                                OptionalIntArrayRef output_size,
                                                std::optional<ArrayRef<double>> output_ratio,
                                                const Tensor& random_samples) {
  RL_CHECK(dims == 2 || dims == 3, "fractional_max_pool is over 2 or 3 dimensions, not ", dims);
  const std::string name = str("fractional_max_pool", dims, "d");
  RL_CHECK_VALUE(output_size.has_value() || output_ratio.has_value(), name,
                 " requires specifying either an output_size or an output_ratio");
  RL_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, ": Expected ", dims + 1, "D or ",
           dims + 2, "D tensor, but got ", self.sizes());
  DimVector size;
  if (output_size.has_value()) {
    size = DimVector(*output_size);
  } else {
    RL_CHECK(output_ratio->size() == 1 || static_cast<int64_t>(output_ratio->size()) == dims, name,
             ": output_ratio must be one number or ", dims);
    for (int64_t d = 0; d < dims; d++) {
      const double ratio = (*output_ratio)[output_ratio->size() == 1 ? 0 : static_cast<size_t>(d)];
      RL_CHECK(ratio > 0 && ratio < 1, name, ": output_ratio must be between 0 and 1, got ", ratio);
      size.push_back(
          static_cast<int64_t>(static_cast<double>(self.size(self.dim() - dims + d)) * ratio));
    }
  }
  Tensor samples = random_samples;
  if (!samples.defined()) {
    const int64_t batch = self.dim() == dims + 2 ? self.size(0) : 1;
    samples = rushlight::rand({batch, self.size(self.dim() - dims - 1), dims}, Generator(),
                              self.options());
  }
  return fractional_max_pool(name.c_str(), dims, self, kernel_size, size, samples);
}

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return put_back("max_unpool2d", 2, self, indices, output_size);
}

Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                    IntArrayRef stride, IntArrayRef padding) {
  for (const int64_t s : one_for_each("max_unpool3d", "stride", stride, 3)) {
    RL_CHECK(s > 0, "max_unpool3d: strides should be greater than zero, not ", stride);
  }
  one_for_each("max_unpool3d", "padding", padding, 3);
  return put_back("max_unpool3d", 3, self, indices, output_size);
}

Tensor _max_unpool(const Tensor& self, const Tensor& indices, int64_t dims, IntArrayRef kernel_size,
                   OptionalIntArrayRef stride_, IntArrayRef padding_,
                   OptionalIntArrayRef output_size) {
  RL_CHECK(dims >= 1 && dims <= 3, "max_unpool is over 1, 2 or 3 dimensions, not ", dims);
  const std::string name = str("max_unpool", dims, "d");
  const DimVector kernel = one_for_each(name.c_str(), "kernel_size", kernel_size, dims);
  const DimVector stride =
      stride_.has_value() ? strides_of(name.c_str(), *stride_, kernel) : kernel;
  const DimVector padding = one_for_each(name.c_str(), "padding", padding_, dims);
  RL_CHECK(self.dim() >= dims, "max_unpool", dims, "d takes (C, ...) or (N, C, ...): ", dims + 1,
           " or ", dims + 2, " dimensions, not ", self.dim());
  DimVector size;
  for (int64_t d = 0; d < dims; d++) {
    const size_t i = static_cast<size_t>(d);
    for (const int64_t n : {kernel[i], stride[i], padding[i]}) {
      RL_CHECK(n > -largest && n < largest, name, ": the window is too large");
    }
    const int64_t n = self.size(self.dim() - dims + d);
    RL_CHECK(n < largest, name, ": the image is too large");
    size.push_back((n - 1) * stride[i] - 2 * padding[i] + kernel[i]);
  }
  if (output_size.has_value()) {
    IntArrayRef wanted = *output_size;
    RL_CHECK_VALUE(static_cast<int64_t>(wanted.size()) == dims ||
                       static_cast<int64_t>(wanted.size()) == dims + 2,
                   "output_size should be a sequence containing ", dims, " or ", dims + 2,
                   " numbers, not of ", wanted.size());
    wanted = wanted.slice(wanted.size() - static_cast<size_t>(dims), static_cast<size_t>(dims));
    for (int64_t d = 0; d < dims; d++) {
      const size_t i = static_cast<size_t>(d);
      RL_CHECK_VALUE(size[i] - stride[i] < wanted[i] && wanted[i] < size[i] + stride[i],
                     "invalid output_size '", wanted, "' (dim ", d, " must be between ",
                     size[i] - stride[i], " and ", size[i] + stride[i], ")");
    }
    size = DimVector(wanted);
  }
  return put_back(name.c_str(), dims, self, indices, size);
}

#define RL_POOL_BACKWARD(n)                                                                       \
  Tensor max_pool##n##d_with_indices_backward(const Tensor& grad_output, const Tensor& self,      \
                                              IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, \
                                              bool, const Tensor& indices) {                      \
    RL_CHECK(self.dim() == n || self.dim() == n + 1 || self.dim() == n + 2,                       \
             "max_pool" #n "d_with_indices_backward: an image has ", n + 1, " dimensions, got ",  \
             self.dim());                                                                         \
    return _max_pool_backward(grad_output, indices, self.sizes(), n);                             \
  }                                                                                               \
  Tensor _adaptive_avg_pool##n##d_backward(const Tensor& grad_output, const Tensor& self) {       \
    return _adaptive_avg_pool_backward(grad_output, self.sizes(), n);                             \
  }
RL_POOL_BACKWARD(2)
RL_POOL_BACKWARD(3)
#undef RL_POOL_BACKWARD

#define RL_POOL(n)                                                                                 \
  Tensor max_pool##n##d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,           \
                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {               \
    return largest_of_windows("max_pool" #n "d", n, self, kernel_size, stride, padding, dilation,  \
                              ceil_mode);                                                          \
  }                                                                                                \
  std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(                                          \
      const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,        \
      IntArrayRef dilation, bool ceil_mode) {                                                      \
    return max_pool(_max_pool, "max_pool" #n "d", n, self, kernel_size, stride, padding, dilation, \
                    ceil_mode);                                                                    \
  }                                                                                                \
  Tensor adaptive_avg_pool##n##d(const Tensor& self, IntArrayRef output_size) {                    \
    return _adaptive_avg_pool(self,                                                                \
                              adaptive_output("adaptive_avg_pool" #n "d", n, self, output_size));  \
  }                                                                                                \
  std::tuple<Tensor, Tensor> adaptive_max_pool##n##d(const Tensor& self,                           \
                                                     IntArrayRef output_size) {                    \
    return _adaptive_max_pool(self,                                                                \
                              adaptive_output("adaptive_max_pool" #n "d", n, self, output_size));  \
  }                                                                                                \
  Tensor lp_pool##n##d(const Tensor& self, double norm_type, IntArrayRef kernel_size,              \
                       OptionalIntArrayRef stride, bool ceil_mode) {                               \
    return lp_pool("lp_pool" #n "d", n, self, norm_type, kernel_size, stride, ceil_mode);          \
  }
RL_POOL(1)
RL_POOL(2)
RL_POOL(3)
#undef RL_POOL

Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool("avg_pool1d", 1, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  {});
}

Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool("avg_pool2d", 2, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override);
}

Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool("avg_pool3d", 3, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
                  divisor_override);
}

}  // namespace composite
}  // namespace rushlight
