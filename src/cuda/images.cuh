// Images of one to three spatial dimensions as kernels of convolution and pooling see them, and the
// windows that slide over them.
#pragma once

#include "cuda/each.cuh"

namespace rushlight::cuda {

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
inline Images images_of(const Tensor& t, int64_t dims) {
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
inline void fill_last(int64_t (&to)[3], IntArrayRef from) {
  for (size_t i = 0; i < from.size(); i++) {
    to[3 - from.size() + i] = from[i];
  }
}
inline Window window_of(IntArrayRef size, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation) {
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

inline Space<1> elements(int64_t n) { return {{n}, {DimVector{1}}}; }

}  // namespace rushlight::cuda
