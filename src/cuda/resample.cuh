// Images whose elements are made of a few elements of another image along each axis, as the tables
// of cpu/resample.h say: resampling, padding by an image's own elements, and the adjoints of both.
#pragma once

#include "cpu/resample.h"
#include "cuda/images.cuh"
#include "cuda/tables.h"

namespace rushlight::cuda {

template <class W>
struct Taps {
  int64_t inputs;
  int64_t outputs;
  int64_t count;
  const int32_t* at;
  const W* weight;
};

// Three tables on a device, and what kernels see of them.
template <class W>
struct DeviceAxes {
  Tensor at[3];
  Tensor weight[3];
  Taps<W> taps[3];
  DeviceAxes(const cpu::Axes<W>& axes, Device device) {
    for (int d = 0; d < 3; d++) {
      const cpu::Axis<W>& axis = axes.axis[d];
      at[d] = on_gpu(axis.at, device);
      weight[d] = on_gpu(axis.weight, device);
      taps[d] = {axis.inputs, axis.outputs, axis.taps, at[d].data<int32_t>(), weight[d].data<W>()};
    }
  }
};

// The operands of the kernels below over the elements of `to`: the element, the image of `from`
// that it comes from, and its place. Both have as many images and channels.
inline Space<5> resampled_space(const Images& to, const Images& from) {
  Space<5> space;
  space.sizes = {to.count, to.channels, to.size[0], to.size[1], to.size[2]};
  space.strides = {
      DimVector{to.image_stride, to.channel_stride, to.stride[0], to.stride[1], to.stride[2]},
      DimVector{from.image_stride, from.channel_stride, 0, 0, 0}, DimVector{0, 0, 1, 0, 0},
      DimVector{0, 0, 0, 1, 0}, DimVector{0, 0, 0, 0, 1}};
  return space;
}

// One tap: elements are only moved.
template <class B>
struct MoveTap {
  B* out;
  const B* in;
  const int32_t* taps[3];
  int64_t stride[3];
  __device__ void operator()(const int64_t (&at)[5]) const {
    int64_t from = at[1];
    for (int d = 0; d < 3; d++) {
      from += taps[d][at[2 + d]] * stride[d];
    }
    out[at[0]] = in[from];
  }
};

template <class W>
void move_taps(const Tensor& out, const Tensor& self, const Images& to, const Images& from,
               const cpu::Axes<W>& axes) {
  const DeviceAxes<W> tables(axes, out.device());
  const Launch launch(out.device());
  visit_size(self.element_size(), [&](auto tag) {
    using B = typename decltype(tag)::type;
    MoveTap<B> f{static_cast<B*>(out.data_ptr()), static_cast<const B*>(self.data_ptr()), {}, {}};
    for (int d = 0; d < 3; d++) {
      f.taps[d] = tables.taps[d].at;
      f.stride[d] = from.stride[d];
    }
    each(launch, resampled_space(to, from), f);
  });
}

template <class A, class W>
__device__ A multiply_weight(A x, W weight) {
  if constexpr (is_complex_v<A>) {
    return A(x.re * weight, x.im * weight);
  } else {
    return x * weight;
  }
}

// Weighted sums, along the width first, in the order of the CPU's kernel.
template <class S, class A, class W>
struct AddTaps {
  S* out;
  const S* in;
  Taps<W> taps[3];
  int64_t stride[3];
  __device__ A along_width(int64_t row, int64_t x) const {
    A sum = A(0);
    for (int64_t t = 0; t < taps[2].count; t++) {
      const int64_t slot = t * taps[2].outputs + x;
      if (taps[2].at[slot] < taps[2].inputs) {
        const A value = static_cast<A>(widen(in[row + taps[2].at[slot] * stride[2]]));
        sum = sum + multiply_weight(value, taps[2].weight[slot]);
      }
    }
    return sum;
  }
  __device__ void operator()(const int64_t (&at)[5]) const {
    A sum = A(0);
    for (int64_t a = 0; a < taps[0].count; a++) {
      const int64_t depth = a * taps[0].outputs + at[2];
      for (int64_t b = 0; b < taps[1].count; b++) {
        const int64_t height = b * taps[1].outputs + at[3];
        if (taps[0].at[depth] < taps[0].inputs && taps[1].at[height] < taps[1].inputs) {
          const int64_t row =
              at[1] + taps[0].at[depth] * stride[0] + taps[1].at[height] * stride[1];
          sum = sum + multiply_weight(along_width(row, at[4]),
                                      taps[0].weight[depth] * taps[1].weight[height]);
        }
      }
    }
    if constexpr (std::is_same_v<S, uint8_t>) {
      sum = ::rint(sum);
      out[at[0]] = static_cast<S>(sum < A(0) ? A(0) : sum > A(255) ? A(255) : sum);
    } else {
      out[at[0]] = narrow<S>(sum);
    }
  }
};

template <class S, class A, class W>
void add_taps(const Tensor& out, const Tensor& self, const Images& to, const Images& from,
              const cpu::Axes<W>& axes) {
  const DeviceAxes<W> tables(axes, out.device());
  const Launch launch(out.device());
  AddTaps<S, A, W> f{out.data<S>(), self.data<S>(), {}, {}};
  for (int d = 0; d < 3; d++) {
    f.taps[d] = tables.taps[d];
    f.stride[d] = from.stride[d];
  }
  each(launch, resampled_space(to, from), f);
}

}  // namespace rushlight::cuda
