// Convolution and pooling over one to three spatial dimensions, by their definitions: a thread for
// each output element, a team for each element of a weight's gradient. Any layout; right before
// fast.
#include "cuda/atomic.cuh"
#include "cuda/rows.cuh"
#include "generated/column.h"
#include "kernels/reduce.h"

namespace rushlight {

namespace cuda {

namespace {

// Images of three spatial dimensions; those that a tensor lacks have size 1. Strides in elements.
struct Images {
  int64_t count = 1;
  int64_t channels = 1;
  int64_t size[3] = {1, 1, 1};
  int64_t image_stride = 0;
  int64_t channel_stride = 0;
  int64_t stride[3] = {0, 0, 0};
  __host__ __device__ int64_t area() const { return size[0] * size[1] * size[2]; }
  __host__ __device__ int64_t numel() const { return count * channels * area(); }
  __device__ int64_t at(int64_t n, int64_t c, const int64_t (&x)[3]) const {
    return n * image_stride + c * channel_stride + x[0] * stride[0] + x[1] * stride[1] +
           x[2] * stride[2];
  }
};
// `dims` spatial dimensions, behind channels and, where there is one more, images.
Images images_of(const Tensor& t, int64_t dims) {
  Images out;
  const int64_t n = t.dim();
  for (int64_t d = 0; d < dims; d++) {
    const auto from = static_cast<size_t>(n - 1 - d);
    out.size[2 - d] = t.sizes()[from];
    out.stride[2 - d] = t.strides()[from];
  }
  const int64_t leading = n - dims;
  if (leading >= 1) {
    out.channels = t.sizes()[static_cast<size_t>(leading - 1)];
    out.channel_stride = t.strides()[static_cast<size_t>(leading - 1)];
  }
  if (leading >= 2) {
    out.count = t.sizes()[0];
    out.image_stride = t.strides()[0];
  }
  return out;
}

struct Window {
  int64_t size[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};
  __host__ __device__ int64_t area() const { return size[0] * size[1] * size[2]; }
};
void fill_last(int64_t (&to)[3], IntArrayRef from) {
  for (size_t i = 0; i < from.size(); i++) {
    to[3 - from.size() + i] = from[i];
  }
}
Window window_of(IntArrayRef size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  Window w;
  fill_last(w.size, size);
  fill_last(w.stride, stride);
  fill_last(w.padding, padding);
  fill_last(w.dilation, dilation);
  return w;
}

// Element number i of images as image, channel and place.
__device__ __forceinline__ void split(int64_t i, const Images& m, int64_t& n, int64_t& c,
                                      int64_t (&x)[3]) {
  for (int d = 2; d >= 0; d--) {
    x[d] = i % m.size[d];
    i /= m.size[d];
  }
  c = i % m.channels;
  n = i / m.channels;
}
__device__ __forceinline__ void split_window(int64_t i, const Window& w, int64_t (&k)[3]) {
  for (int d = 2; d >= 0; d--) {
    k[d] = i % w.size[d];
    i /= w.size[d];
  }
}

Space<1> elements(int64_t n) { return {{n}, {DimVector{1}}}; }

// ---- convolution ----

// Which elements of one image a place of the other meets through element k of the window.
__device__ __forceinline__ bool under(const Window& w, const int64_t (&from)[3],
                                      const int64_t (&k)[3], const Images& to, int64_t (&x)[3]) {
  for (int d = 0; d < 3; d++) {
    x[d] = from[d] * w.stride[d] - w.padding[d] + k[d] * w.dilation[d];
    if (x[d] < 0 || x[d] >= to.size[d]) {
      return false;
    }
  }
  return true;
}
__device__ __forceinline__ bool above(const Window& w, const int64_t (&from)[3],
                                      const int64_t (&k)[3], const Images& to, int64_t (&x)[3]) {
  for (int d = 0; d < 3; d++) {
    const int64_t at = from[d] + w.padding[d] - k[d] * w.dilation[d];
    x[d] = at / w.stride[d];
    if (at < 0 || at % w.stride[d] != 0 || x[d] >= to.size[d]) {
      return false;
    }
  }
  return true;
}

template <class T>
struct Convolve {
  using A = compute_t<T>;
  T* out;
  const T* in;
  const T* weight;
  const T* bias;  // may be null
  int64_t bias_stride;
  Images to;
  Images from;
  Images kernel;  // [out, in / groups, …], transposed: [in, out / groups, …]
  Window window;
  int64_t groups;
  bool transposed;
  __device__ void operator()(const int64_t (&index)[1]) const {
    int64_t n;
    int64_t o;
    int64_t y[3];
    split(index[0], to, n, o, y);
    const int64_t outs = to.channels / groups;
    const int64_t ins = from.channels / groups;
    const int64_t first = o / outs * ins;
    A sum = bias != nullptr ? widen(bias[o * bias_stride]) : A(0);
    for (int64_t i = 0; i < window.area(); i++) {
      int64_t k[3];
      int64_t x[3];
      split_window(i, window, k);
      const bool meets = transposed ? above(window, y, k, from, x) : under(window, y, k, from, x);
      if (!meets) {
        continue;
      }
      for (int64_t c = 0; c < ins; c++) {
        const int64_t w = transposed ? kernel.at(first + c, o % outs, k) : kernel.at(o, c, k);
        sum = math::fused(widen(in[from.at(n, first + c, x)]), widen(weight[w]), sum);
      }
    }
    out[to.at(n, o, y)] = narrow<T>(sum);
  }
};

// One element of the weight's gradient by a team.
template <class T>
struct WeightGradient {
  using A = compute_t<T>;
  T* out;
  const T* grad;
  const T* in;
  Images kernel;
  Images grads;
  Images images;
  Window window;
  int64_t groups;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    int64_t o;
    int64_t c;
    int64_t k[3];
    split(row, kernel, o, c, k);
    const int64_t channel = o / (kernel.count / groups) * kernel.channels + c;
    const int64_t area = grads.area();
    A sum = 0;
    for (int64_t i = team.rank(); i < grads.count * area; i += team.size()) {
      const int64_t n = i / area;
      int64_t rest = i % area;
      int64_t y[3];
      for (int d = 2; d >= 0; d--) {
        y[d] = rest % grads.size[d];
        rest /= grads.size[d];
      }
      int64_t x[3];
      if (under(window, y, k, images, x)) {
        sum = math::fused(widen(grad[grads.at(n, o, y)]), widen(in[images.at(n, channel, x)]), sum);
      }
    }
    sum = team.template all<SumOf>(sum);
    if (team.rank() == 0) {
      out[kernel.at(o, c, k)] = narrow<T>(sum);
    }
  }
};

// ---- pooling ----

template <class T>
struct MaxPool {
  using A = compute_t<T>;
  T* values;
  int64_t* indices;
  const T* in;
  Images to;
  Images places;  // of the indices
  Images from;
  Window window;
  bool adaptive;
  __device__ void operator()(const int64_t (&index)[1]) const {
    int64_t n;
    int64_t c;
    int64_t y[3];
    split(index[0], to, n, c, y);
    int64_t begin[3];
    int64_t end[3];
    int64_t step[3];
    for (int d = 0; d < 3; d++) {
      if (adaptive) {
        begin[d] = y[d] * from.size[d] / to.size[d];
        end[d] = ((y[d] + 1) * from.size[d] + to.size[d] - 1) / to.size[d];
        step[d] = 1;
      } else {
        begin[d] = y[d] * window.stride[d] - window.padding[d];
        end[d] = begin[d] + (window.size[d] - 1) * window.dilation[d] + 1;
        step[d] = window.dilation[d];
        end[d] = end[d] < from.size[d] ? end[d] : from.size[d];
        while (begin[d] < 0) {
          begin[d] += step[d];
        }
      }
    }
    A best = fold::lowest_value<A>();
    int64_t place = (begin[0] * from.size[1] + begin[1]) * from.size[2] + begin[2];
    for (int64_t a = begin[0]; a < end[0]; a += step[0]) {
      for (int64_t b = begin[1]; b < end[1]; b += step[1]) {
        for (int64_t e = begin[2]; e < end[2]; e += step[2]) {
          const int64_t x[3] = {a, b, e};
          const A value = widen(in[from.at(n, c, x)]);
          if (value > best || value != value) {
            best = value;
            place = (a * from.size[1] + b) * from.size[2] + e;
          }
        }
      }
    }
    values[to.at(n, c, y)] = narrow<T>(best);
    indices[places.at(n, c, y)] = place;
  }
};

template <class T>
struct MaxPoolBackward {
  T* out;
  const T* grad;
  const int64_t* indices;
  Images to;
  Images from;
  Images places;
  __device__ void operator()(const int64_t (&index)[1]) const {
    int64_t n;
    int64_t c;
    int64_t y[3];
    split(index[0], from, n, c, y);
    int64_t place = indices[places.at(n, c, y)];
    if (place < 0 || place >= to.area()) {
      return;
    }
    int64_t x[3];
    for (int d = 2; d >= 0; d--) {
      x[d] = place % to.size[d];
      place /= to.size[d];
    }
    meet<Add>(out + to.at(n, c, x), grad[from.at(n, c, y)]);
  }
};

// Windows of average pooling: where the window of an output lies in the input, and what it divides
// by.
struct Averages {
  Images pooled;
  Images images;
  Window window;
  bool adaptive;
  bool count_padding;
  int64_t divisor;  // 0: by the size
  __device__ int64_t bounds(const int64_t (&y)[3], int64_t (&begin)[3], int64_t (&end)[3]) const {
    int64_t size = 1;
    int64_t inside = 1;
    for (int d = 0; d < 3; d++) {
      if (adaptive) {
        begin[d] = y[d] * images.size[d] / pooled.size[d];
        end[d] = ((y[d] + 1) * images.size[d] + pooled.size[d] - 1) / pooled.size[d];
        size *= end[d] - begin[d];
      } else {
        begin[d] = y[d] * window.stride[d] - window.padding[d];
        end[d] = begin[d] + window.size[d];
        const int64_t padded = images.size[d] + window.padding[d];
        end[d] = end[d] < padded ? end[d] : padded;
        size *= end[d] - begin[d];
        begin[d] = begin[d] > 0 ? begin[d] : 0;
        end[d] = end[d] < images.size[d] ? end[d] : images.size[d];
      }
      inside *= end[d] > begin[d] ? end[d] - begin[d] : 0;
    }
    return divisor != 0 ? divisor : adaptive || count_padding ? size : inside;
  }
};

template <class T>
struct AveragePool {
  using A = compute_t<T>;
  T* out;
  const T* in;
  Averages averages;
  __device__ void operator()(const int64_t (&index)[1]) const {
    int64_t n;
    int64_t c;
    int64_t y[3];
    split(index[0], averages.pooled, n, c, y);
    int64_t begin[3];
    int64_t end[3];
    const int64_t divisor = averages.bounds(y, begin, end);
    A sum = 0;
    for (int64_t a = begin[0]; a < end[0]; a++) {
      for (int64_t b = begin[1]; b < end[1]; b++) {
        for (int64_t e = begin[2]; e < end[2]; e++) {
          const int64_t x[3] = {a, b, e};
          sum += widen(in[averages.images.at(n, c, x)]);
        }
      }
    }
    out[averages.pooled.at(n, c, y)] = narrow<T>(sum / static_cast<A>(divisor));
  }
};

// Each input element gathers from the outputs whose windows may hold it: the order is fixed.
template <class T>
struct AveragePoolBackward {
  using A = compute_t<T>;
  T* out;
  const T* grad;
  Averages averages;
  __device__ void operator()(const int64_t (&index)[1]) const {
    int64_t n;
    int64_t c;
    int64_t x[3];
    split(index[0], averages.images, n, c, x);
    int64_t first[3];
    int64_t last[3];
    for (int d = 0; d < 3; d++) {
      const int64_t outs = averages.pooled.size[d];
      if (averages.adaptive) {
        first[d] = x[d] * outs / averages.images.size[d];
        last[d] = ((x[d] + 1) * outs + averages.images.size[d] - 1) / averages.images.size[d];
      } else {
        const int64_t at = x[d] + averages.window.padding[d];
        const int64_t s = averages.window.stride[d];
        const int64_t before = at - averages.window.size[d] + 1;
        first[d] = before > 0 ? (before + s - 1) / s : 0;
        last[d] = at / s + 1;
      }
      last[d] = last[d] < outs ? last[d] : outs;
    }
    A sum = 0;
    for (int64_t a = first[0]; a < last[0]; a++) {
      for (int64_t b = first[1]; b < last[1]; b++) {
        for (int64_t e = first[2]; e < last[2]; e++) {
          const int64_t y[3] = {a, b, e};
          int64_t begin[3];
          int64_t end[3];
          const int64_t divisor = averages.bounds(y, begin, end);
          bool inside = true;
          for (int d = 0; d < 3; d++) {
            inside = inside && x[d] >= begin[d] && x[d] < end[d];
          }
          if (inside) {
            sum += widen(grad[averages.pooled.at(n, c, y)]) / static_cast<A>(divisor);
          }
        }
      }
    }
    out[averages.images.at(n, c, x)] = narrow<T>(sum);
  }
};

void max_pool(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dims,
              const Window& window, bool adaptive) {
  if (values.numel() == 0) {
    return;
  }
  const Launch launch(self.device());
  visit_dtype<set_real>("max_pool", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(values.numel()),
         MaxPool<T>{values.data<T>(), indices.data<int64_t>(), self.data<T>(),
                    images_of(values, dims), images_of(indices, dims), images_of(self, dims),
                    window, adaptive});
  });
}
void average(const Tensor& out, const Tensor& self, const Averages& averages) {
  const Launch launch(out.device());
  visit_dtype<set_floating>("avg_pool", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(out.numel()), AveragePool<T>{out.data<T>(), self.data<T>(), averages});
  });
}
void average_backward(const Tensor& out, const Tensor& grad, const Averages& averages) {
  const Launch launch(out.device());
  visit_dtype<set_floating>("avg_pool_backward", grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(out.numel()),
         AveragePoolBackward<T>{out.data<T>(), grad.data<T>(), averages});
  });
}
Averages averages_of(const Tensor& pooled, const Tensor& images, IntArrayRef kernel_size,
                     IntArrayRef stride, IntArrayRef padding, bool count_include_pad,
                     std::optional<int64_t> divisor) {
  const auto dims = static_cast<int64_t>(kernel_size.size());
  return {images_of(pooled, dims),
          images_of(images, dims),
          window_of(kernel_size, stride, padding, {}),
          false,
          count_include_pad,
          divisor.value_or(0)};
}

}  // namespace

}  // namespace cuda

void cuda::convolution(const Tensor& out, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool transposed, IntArrayRef, int64_t groups) {
  const int64_t dims = weight.dim() - 2;
  const IntArrayRef kernel = weight.sizes().slice(2, static_cast<size_t>(dims));
  const Launch launch(out.device());
  visit_dtype<set_floating>("convolution", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(out.numel()),
         Convolve<T>{out.data<T>(), input.data<T>(), weight.data<T>(),
                     bias.defined() ? bias.data<T>() : nullptr,
                     bias.defined() && bias.dim() > 0 ? bias.strides()[0] : 0, images_of(out, dims),
                     images_of(input, dims), images_of(weight, dims),
                     window_of(kernel, stride, padding, dilation), groups, transposed});
  });
}
void cuda::convolution_weight_backward(const Tensor& out, const Tensor& grad_output,
                                       const Tensor& input, IntArrayRef weight_size,
                                       IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef dilation, int64_t groups) {
  const int64_t dims = out.dim() - 2;
  const IntArrayRef kernel = weight_size.slice(2, static_cast<size_t>(dims));
  const Images grads = images_of(grad_output, dims);
  const Launch launch(out.device());
  visit_dtype<set_floating>("convolution_weight_backward", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(launch, out.numel(), grads.count * grads.area(), 1,
             WeightGradient<T>{out.data<T>(), grad_output.data<T>(), input.data<T>(),
                               images_of(out, dims), grads, images_of(input, dims),
                               window_of(kernel, stride, padding, dilation), groups});
  });
}

void cuda::_max_pool(const Tensor& values, const Tensor& indices, const Tensor& self,
                     IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                     IntArrayRef dilation, bool) {
  max_pool(values, indices, self, static_cast<int64_t>(kernel_size.size()),
           window_of(kernel_size, stride, padding, dilation), false);
}
void cuda::_adaptive_max_pool(const Tensor& values, const Tensor& indices, const Tensor& self,
                              IntArrayRef output_size) {
  max_pool(values, indices, self, static_cast<int64_t>(output_size.size()), {}, true);
}
void cuda::_max_pool_backward(const Tensor& out, const Tensor& grad_output, const Tensor& indices,
                              IntArrayRef, int64_t dims) {
  fill_raw(out, 0);
  const Launch launch(out.device());
  visit_dtype<set_floating>("max_pool_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(grad_output.numel()),
         MaxPoolBackward<T>{out.data<T>(), grad_output.data<T>(), indices.data<int64_t>(),
                            images_of(out, dims), images_of(grad_output, dims),
                            images_of(indices, dims)});
  });
}

void cuda::_avg_pool(const Tensor& out, const Tensor& self, IntArrayRef kernel_size,
                     IntArrayRef stride, IntArrayRef padding, bool, bool count_include_pad,
                     std::optional<int64_t> divisor_override) {
  average(
      out, self,
      averages_of(out, self, kernel_size, stride, padding, count_include_pad, divisor_override));
}
void cuda::_avg_pool_backward(const Tensor& out, const Tensor& grad_output, IntArrayRef,
                              IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                              bool, bool count_include_pad,
                              std::optional<int64_t> divisor_override) {
  average_backward(out, grad_output,
                   averages_of(grad_output, out, kernel_size, stride, padding, count_include_pad,
                               divisor_override));
}
void cuda::_adaptive_avg_pool(const Tensor& out, const Tensor& self, IntArrayRef output_size) {
  const auto dims = static_cast<int64_t>(output_size.size());
  average(out, self, {images_of(out, dims), images_of(self, dims), {}, true, true, 0});
}
void cuda::_adaptive_avg_pool_backward(const Tensor& out, const Tensor& grad_output, IntArrayRef,
                                       int64_t dims) {
  average_backward(out, grad_output,
                   {images_of(grad_output, dims), images_of(out, dims), {}, true, true, 0});
}

}  // namespace rushlight
