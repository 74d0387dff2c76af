// Pooling over one to three spatial dimensions, by its definition: a thread for each output
// element, any layout.
#include "cuda/atomic.cuh"
#include "cuda/column.h"
#include "cuda/images.cuh"
#include "kernels/reduce.h"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
struct MaxPool {
  using A = compute_t<T>;
  T* values;
  int64_t* indices;  // or null
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
    // A dilated window may pass by the image.
    const bool inside = begin[0] < end[0] && begin[1] < end[1] && begin[2] < end[2];
    int64_t place = inside ? (begin[0] * from.size[1] + begin[1]) * from.size[2] + begin[2] : -1;
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
    if (indices != nullptr) {
      indices[places.at(n, c, y)] = place;
    }
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
    atomic_combine<Add>(out + to.at(n, c, x), grad[from.at(n, c, y)]);
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

// Without places where `indices` is undefined.
void max_pool(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dims,
              const Window& window, bool adaptive) {
  if (values.numel() == 0) {
    return;
  }
  const Launch launch(self.device());
  visit_dtype<set_real>("max_pool", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, elements(values.numel()),
         MaxPool<T>{values.data<T>(), indices.defined() ? indices.data<int64_t>() : nullptr,
                    self.data<T>(), images_of(values, dims),
                    images_of(indices.defined() ? indices : values, dims), images_of(self, dims),
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

void cuda::_max_pool(const Tensor& values, const Tensor& indices, const Tensor& self,
                     IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                     IntArrayRef dilation, bool) {
  max_pool(values, indices, self, static_cast<int64_t>(kernel_size.size()),
           window_of(kernel_size, stride, padding, dilation), false);
}
void cuda::_max_pool_values(const Tensor& out, const Tensor& self, IntArrayRef kernel_size,
                            IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool) {
  max_pool(out, {}, self, static_cast<int64_t>(kernel_size.size()),
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
