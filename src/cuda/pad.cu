// Padding by elements that repeat, and its gradient: images made of elements of another, by tables
// as in resampling.
#include "cpu/edges.h"
#include "cuda/column.h"
#include "cuda/resample.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class W>
cpu::Axis<W> axis_of(const cpu::Edges& edges) {
  cpu::Axis<W> axis;
  axis.inputs = edges.n;
  axis.outputs = edges.total();
  axis.at.assign(edges.places.begin(), edges.places.end());
  axis.weight.assign(edges.places.size(), W(1));
  return axis;
}

template <class W>
cpu::Axes<W> axes_of(const cpu::EdgesOfImage& e) {
  return {{axis_of<W>(e.depth), axis_of<W>(e.height), axis_of<W>(e.width)}};
}

// Contiguous images of these sizes.
Images dense_images(int64_t count, int64_t depth, int64_t height, int64_t width) {
  Images out;
  out.count = count;
  out.image_stride = depth * height * width;
  const int64_t size[3] = {depth, height, width};
  const int64_t stride[3] = {height * width, width, 1};
  std::copy_n(size, 3, out.size);
  std::copy_n(stride, 3, out.stride);
  return out;
}
Images image_without_padding(const cpu::EdgesOfImage& e) {
  return dense_images(e.images, e.depth.n, e.height.n, e.width.n);
}
Images image_with_padding(const cpu::EdgesOfImage& e) {
  return dense_images(e.images, e.depth.total(), e.height.total(), e.width.total());
}

}  // namespace

}  // namespace cuda

void cuda::_pad_edges(const Tensor& out, const Tensor& self, IntArrayRef pad,
                      std::string_view mode) {
  if (out.numel() == 0) {
    return;
  }
  const cpu::EdgesOfImage edges(self.sizes(), pad, mode);
  move_taps(out, self, image_with_padding(edges), image_without_padding(edges),
            axes_of<float>(edges));
}

void cuda::_pad_edges_backward(const Tensor& out, const Tensor& grad, IntArrayRef input_size,
                               IntArrayRef pad, std::string_view mode) {
  if (out.numel() == 0) {
    return;
  }
  if (grad.numel() == 0) {
    return fill_raw(out, 0);
  }
  const cpu::EdgesOfImage edges(input_size, pad, mode);
  visit_dtype<set_floating | set_complexes>("pad_backward", out.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = compute_t<S>;
    using W = real_t<A>;
    cpu::Axes<W> axes = axes_of<W>(edges);
    for (cpu::Axis<W>& axis : axes.axis) {
      axis = cpu::transpose(axis);
    }
    add_taps<S, A, W>(out, grad, image_without_padding(edges), image_with_padding(edges), axes);
  });
}

}  // namespace rushlight
