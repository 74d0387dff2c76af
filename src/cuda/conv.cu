// Convolutions and their gradients as products of matrices. What the windows of some images see is
// written down as columns, [channels * taps, images * places] (`unfold`); a convolution is the
// weight times these, its weight's gradient the gradient times their transpose, and a transposed
// convolution makes columns by a product and adds them up (`fold`). Groups of few channels, for
// which the products would be thin, are done by their definition instead. im2col and col2im are the
// same two steps alone.
#include <algorithm>

#include "cpu/conv.h"
#include "cuda/column.h"
#include "cuda/images.cuh"
#include "cuda/matmul.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

// ---- columns ----

// Element k of the window of channel c at place y of image n stands at
// (c * taps + k) * tap + n * image + y; places are neighbours.
struct Columns {
  char* data;
  int64_t tap;
  int64_t image;
};

DimVector dims_of(int64_t first, int64_t second, const int64_t (&third)[3]) {
  return {first, second, third[0], third[1], third[2]};
}

template <class T>
struct Unfold {
  T* columns;
  const T* images;
  int64_t padding[3];
  int64_t size[3];
  __device__ void operator()(const int64_t (&at)[5]) const {  // column, image, where in the image
    bool inside = true;
    for (int d = 0; d < 3; d++) {
      const int64_t x = at[2 + d] - padding[d];
      inside = inside && x >= 0 && x < size[d];
    }
    columns[at[0]] = inside ? images[at[1]] : T{};
  }
};

// Everything that Unfold asks for is a sum over channel, tap, image and place of an index times a
// stride, so that the walk over these eight dimensions gives it.
void unfold(const Launch& launch, const Columns& columns, const char* images, const Images& from,
            const int64_t (&places)[3], const Window& window, int64_t element_size) {
  Space<5> space;
  const auto dim = [&](int64_t size, int64_t column, int64_t image) {
    space.sizes.push_back(size);
    space.strides[0].push_back(column);
    space.strides[1].push_back(image);
    for (size_t d = 2; d < 5; d++) {
      space.strides[d].push_back(0);
    }
  };
  const DimVector tap = contiguous_strides({window.size[0], window.size[1], window.size[2]});
  const DimVector place = contiguous_strides({places[0], places[1], places[2]});
  int64_t before = 0;  // from the start of the images to what the first window sees first
  dim(from.channels, window.area() * columns.tap, from.channel_stride);
  for (size_t d = 0; d < 3; d++) {
    dim(window.size[d], tap[d] * columns.tap, window.dilation[d] * from.stride[d]);
    space.strides[2 + d].back() = window.dilation[d];
    before += window.padding[d] * from.stride[d];
  }
  dim(from.count, columns.image, from.image_stride);
  for (size_t d = 0; d < 3; d++) {
    dim(places[d], place[d], window.stride[d] * from.stride[d]);
    space.strides[2 + d].back() = window.stride[d];
  }
  visit_size(element_size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Unfold<T> f{
        reinterpret_cast<T*>(columns.data), reinterpret_cast<const T*>(images) - before, {}, {}};
    std::copy_n(window.padding, 3, f.padding);
    std::copy_n(from.size, 3, f.size);
    each(launch, space, f);
  });
}

// The adjoint: each element of an image gathers from the columns of the windows that see it.
template <class T, class S>
struct Fold {
  using A = compute_t<S>;
  T* images;
  const S* columns;
  const T* bias;  // by channel; null: none
  Columns layout;
  int64_t places[3];
  Window window;
  __device__ void operator()(const int64_t (&at)[6]) const {  // image, channel, columns, where
    A sum = bias != nullptr ? static_cast<A>(widen(bias[at[1]])) : A(0);
    int64_t tap = 0;
    for (int64_t a = 0; a < window.size[0]; a++) {
      for (int64_t b = 0; b < window.size[1]; b++) {
        for (int64_t c = 0; c < window.size[2]; c++, tap++) {
          const int64_t k[3] = {a, b, c};
          int64_t place = 0;
          bool hits = true;
          for (int d = 0; d < 3; d++) {
            const int64_t from = at[3 + d] + window.padding[d] - k[d] * window.dilation[d];
            const int64_t y = from / window.stride[d];
            hits = hits && from >= 0 && from == y * window.stride[d] && y < places[d];
            place = place * places[d] + y;
          }
          if (hits) {
            sum = math::add(sum, static_cast<A>(widen(columns[at[2] + tap * layout.tap + place])));
          }
        }
      }
    }
    images[at[0]] = narrow<T>(sum);
  }
};

template <class T, class S>
void fold(const Launch& launch, T* images, const Images& to, const Columns& columns,
          const int64_t (&places)[3], const Window& window, const T* bias) {
  Fold<T, S> f{images, reinterpret_cast<const S*>(columns.data), bias, columns, {}, window};
  std::copy_n(places, 3, f.places);
  const int64_t none[3] = {0, 0, 0};
  Space<6> space{dims_of(to.count, to.channels, to.size),
                 {dims_of(to.image_stride, to.channel_stride, to.stride), dims_of(0, 1, none),
                  dims_of(columns.image, window.area() * columns.tap, none)}};
  for (int d = 0; d < 3; d++) {
    int64_t unit[3] = {0, 0, 0};
    unit[d] = 1;
    space.strides[static_cast<size_t>(3 + d)] = dims_of(0, 0, unit);
  }
  each(launch, space, f);
}

// ---- convolutions by products ----

// An ordinary convolution of `images` gives `places`; a transposed one makes images of places.
struct Problem {
  Images images;
  Images places;
  Window window;
  int64_t groups;
  int64_t taps() const { return images.channels / groups * window.area(); }
  int64_t outs() const { return places.channels / groups; }
  int64_t area() const { return places.area(); }
};

// Calls f(first image, images, group, columns [taps, images * places]) for pieces whose columns
// take a limited amount of memory.
template <class F>
void for_pieces(const Problem& p, ScalarType dtype, Device device, const F& f) {
  constexpr int64_t limit = int64_t{1} << 26;  // elements
  const int64_t one = std::max<int64_t>(p.taps() * p.area(), 1);
  const int64_t most = std::clamp<int64_t>(limit / one, 1, std::max<int64_t>(p.images.count, 1));
  const Tensor room = make_empty({most * one}, dtype, device);
  for (int64_t first = 0; first < p.images.count; first += most) {
    const int64_t count = std::min(most, p.images.count - first);
    const int64_t wide = count * p.area();
    for (int64_t group = 0; group < p.groups; group++) {
      f(first, count, group, make_view(room, {{p.taps(), wide}, {wide, 1}, 0}));
    }
  }
}

Columns columns_of(const Tensor& columns, int64_t area) {
  return {static_cast<char*>(columns.data_ptr()), columns.sizes()[1], area};
}

// Some images of a group, and where they start.
Images part_of(const Images& all, int64_t groups, int64_t count) {
  Images part = all;
  part.count = count;
  part.channels /= groups;
  return part;
}
int64_t start_of(const Images& part, int64_t first, int64_t group) {
  return first * part.image_stride + group * part.channels * part.channel_stride;
}

void unfold_piece(const Launch& launch, const Problem& p, const Tensor& columns,
                  const Tensor& images, int64_t first, int64_t count, int64_t group) {
  const Images part = part_of(p.images, p.groups, count);
  const char* const data = static_cast<const char*>(images.data_ptr()) +
                           start_of(part, first, group) * images.element_size();
  unfold(launch, columns_of(columns, p.area()), data, part, p.places.size, p.window,
         images.element_size());
}

// Places of a group as a dense matrix [channels, images * places].
Tensor matrix_of(const Tensor& t, const Problem& p, int64_t first, int64_t count, int64_t group) {
  const Images part = part_of(p.places, p.groups, count);
  const Tensor view = make_view(
      t, {{part.channels, count, part.size[0], part.size[1], part.size[2]},
          {part.channel_stride, part.image_stride, part.stride[0], part.stride[1], part.stride[2]},
          t.storage_offset() + start_of(part, first, group)});
  const Tensor dense = make_empty(view.sizes(), t.dtype(), t.device());
  copy_raw(dense, view);
  return make_view(dense, {{part.channels, count * part.area()}, {count * part.area(), 1}, 0});
}

// [outs, taps] of a group.
Tensor weight_of(const Tensor& weight, const Problem& p, int64_t group) {
  return make_view(
      weight,
      {{p.outs(), p.taps()}, {p.taps(), 1}, weight.storage_offset() + group * p.outs() * p.taps()});
}
Tensor transpose_matrix(const Tensor& t) {
  return make_view(
      t, {{t.sizes()[1], t.sizes()[0]}, {t.strides()[1], t.strides()[0]}, t.storage_offset()});
}

// 16-bit floats are added up in float.
template <class T>
constexpr ScalarType sum_dtype = dtype_of_v<compute_t<T>>;

template <class T>
struct WritePlaces {
  using A = compute_t<T>;
  T* out;
  const A* sums;
  const T* bias;                                              // null: none
  __device__ void operator()(const int64_t (&at)[3]) const {  // out, sums, channel
    const A x = sums[at[1]];
    out[at[0]] = narrow<T>(bias != nullptr ? math::add(x, widen(bias[at[2]])) : x);
  }
};

template <class T>
void convolve(const Launch& launch, const Problem& p, const Tensor& out, const Tensor& input,
              const Tensor& weight, const T* bias) {
  for_pieces(
      p, input.dtype(), input.device(),
      [&](int64_t first, int64_t count, int64_t group, const Tensor& columns) {
        unfold_piece(launch, p, columns, input, first, count, group);
        const Tensor sums = make_empty({p.outs(), count * p.area()}, sum_dtype<T>, out.device());
        multiply("convolution", sums, weight_of(weight, p, group), columns, 0, 1);
        const Images part = part_of(p.places, p.groups, count);
        const int64_t size[3] = {part.size[0], part.size[1], part.size[2]};
        const int64_t none[3] = {0, 0, 0};
        const int64_t area = p.area();
        const int64_t dense[3] = {size[1] * size[2], size[2], 1};
        each(launch,
             Space<3>{dims_of(part.channels, count, size),
                      {dims_of(part.channel_stride, part.image_stride, part.stride),
                       dims_of(count * area, area, dense), dims_of(1, 0, none)}},
             WritePlaces<T>{out.data<T>() + start_of(part, first, group), sums.data<compute_t<T>>(),
                            bias != nullptr ? bias + group * part.channels : nullptr});
      });
}

template <class T>
void convolve_transposed(const Launch& launch, const Problem& p, const Tensor& out,
                         const Tensor& input, const Tensor& weight, const T* bias) {
  for_pieces(p, sum_dtype<T>, input.device(),
             [&](int64_t first, int64_t count, int64_t group, const Tensor& columns) {
               multiply("convolution", columns, transpose_matrix(weight_of(weight, p, group)),
                        matrix_of(input, p, first, count, group), 0, 1);
               const Images part = part_of(p.images, p.groups, count);
               fold<T, compute_t<T>>(launch, out.data<T>() + start_of(part, first, group), part,
                                     columns_of(columns, p.area()), p.places.size, p.window,
                                     bias != nullptr ? bias + group * part.channels : nullptr);
             });
}

template <class T>
void weight_gradient(const Launch& launch, const Problem& p, const Tensor& out, const Tensor& grad,
                     const Tensor& input) {
  const Tensor sums = make_empty(out.sizes(), sum_dtype<T>, out.device());
  fill_raw(sums, 0);
  for_pieces(p, input.dtype(), input.device(),
             [&](int64_t first, int64_t count, int64_t group, const Tensor& columns) {
               unfold_piece(launch, p, columns, input, first, count, group);
               multiply("convolution_weight_backward", weight_of(sums, p, group),
                        matrix_of(grad, p, first, count, group), transpose_matrix(columns), 1, 1);
             });
  copy_raw(out, sums);
}

// ---- convolutions by their definition ----

// Which elements of one image a place of the other meets through element k of the window.
__device__ __forceinline__ bool input_under(const Window& w, const int64_t (&from)[3],
                                            const int64_t (&k)[3], const Images& to,
                                            int64_t (&x)[3]) {
  for (int d = 0; d < 3; d++) {
    x[d] = from[d] * w.stride[d] - w.padding[d] + k[d] * w.dilation[d];
    if (x[d] < 0 || x[d] >= to.size[d]) {
      return false;
    }
  }
  return true;
}
__device__ __forceinline__ bool output_above(const Window& w, const int64_t (&from)[3],
                                             const int64_t (&k)[3], const Images& to,
                                             int64_t (&x)[3]) {
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
    A sum = bias != nullptr ? widen(bias[o]) : A(0);
    for (int64_t i = 0; i < window.area(); i++) {
      int64_t k[3];
      int64_t x[3];
      split_window(i, window, k);
      const bool hits =
          transposed ? output_above(window, y, k, from, x) : input_under(window, y, k, from, x);
      if (!hits) {
        continue;
      }
      for (int64_t c = 0; c < ins; c++) {
        const int64_t w = transposed ? kernel.at(first + c, o % outs, k) : kernel.at(o, c, k);
        sum = math::multiply_add(widen(in[from.at(n, first + c, x)]), widen(weight[w]), sum);
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
      if (input_under(window, y, k, images, x)) {
        sum = math::multiply_add(widen(grad[grads.at(n, o, y)]),
                                 widen(in[images.at(n, channel, x)]), sum);
      }
    }
    sum = team.template all<SumOf>(sum);
    if (team.rank() == 0) {
      out[kernel.at(o, c, k)] = narrow<T>(sum);
    }
  }
};

// Groups so thin that a thread for each element does better than a product for each group.
bool is_thin(const Problem& p) {
  return p.groups > 1 && p.images.channels / p.groups * p.outs() <= 16;
}

}  // namespace

}  // namespace cuda

void cuda::convolution(const Tensor& out, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool is_transposed, IntArrayRef, int64_t groups) {
  if (out.numel() == 0 || cpu::convolve_empty(out, input, weight, bias)) {
    return;
  }
  const int64_t dims = weight.dim() - 2;
  const IntArrayRef kernel = weight.sizes().slice(2, static_cast<size_t>(dims));
  const Images to = images_of(out, dims);
  const Images from = images_of(input, dims);
  const Problem p{is_transposed ? to : from, is_transposed ? from : to,
                  window_of(kernel, stride, padding, dilation), groups};
  const Launch launch(out.device());
  visit_dtype<set_numbers>("convolution", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const b = bias.defined() ? bias.data<T>() : nullptr;
    if constexpr (is_real_float_v<T>) {
      if (is_thin(p)) {
        each(launch, elements(out.numel()),
             Convolve<T>{out.data<T>(), input.data<T>(), weight.data<T>(), b, to, from,
                         images_of(weight, dims), p.window, groups, is_transposed});
        return;
      }
    }
    if (is_transposed) {
      convolve_transposed<T>(launch, p, out, input, weight, b);
    } else {
      convolve<T>(launch, p, out, input, weight, b);
    }
  });
}

void cuda::convolution_weight_backward(const Tensor& out, const Tensor& grad_output,
                                       const Tensor& input, IntArrayRef weight_size,
                                       IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef dilation, int64_t groups) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t dims = out.dim() - 2;
  const IntArrayRef kernel = weight_size.slice(2, static_cast<size_t>(dims));
  const Problem p{images_of(input, dims), images_of(grad_output, dims),
                  window_of(kernel, stride, padding, dilation), groups};
  const Launch launch(out.device());
  visit_dtype<set_numbers>("convolution_weight_backward", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_real_float_v<T>) {
      if (is_thin(p)) {
        for_rows(launch, out.numel(), p.places.count * p.area(), 1,
                 WeightGradient<T>{out.data<T>(), grad_output.data<T>(), input.data<T>(),
                                   images_of(out, dims), p.places, p.images, p.window, groups});
        return;
      }
    }
    weight_gradient<T>(launch, p, out, grad_output, input);
  });
}

namespace cuda {
namespace {
// Columns as im2col orders them, [images, channels * taps, places], over contiguous tensors of
// images.
Columns im2col_columns(const Tensor& columns, const Images& images, const Window& window,
                       const int64_t (&places)[3]) {
  const int64_t area = places[1] * places[2];
  return {static_cast<char*>(columns.data_ptr()), area, images.channels * window.area() * area};
}
struct Places {
  int64_t size[3];
  Places(const Images& images, const Window& w) : size{1, 1, 1} {
    for (int d = 1; d < 3; d++) {
      size[d] =
          (images.size[d] + 2 * w.padding[d] - w.dilation[d] * (w.size[d] - 1) - 1) / w.stride[d] +
          1;
    }
  }
};
}  // namespace
}  // namespace cuda

void cuda::im2col(const Tensor& out, const Tensor& self, IntArrayRef kernel_size,
                  IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  if (out.numel() == 0) {
    return;
  }
  const Images images = images_of(self, 2);
  const Window window = window_of(kernel_size, stride, padding, dilation);
  const Places places(images, window);
  unfold(Launch(out.device()), im2col_columns(out, images, window, places.size),
         static_cast<const char*>(self.data_ptr()), images, places.size, window,
         self.element_size());
}

void cuda::col2im(const Tensor& out, const Tensor& self, IntArrayRef, IntArrayRef kernel_size,
                  IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  if (out.numel() == 0) {
    return;
  }
  const Images images = images_of(out, 2);
  const Window window = window_of(kernel_size, stride, padding, dilation);
  const Places places(images, window);
  const Launch launch(out.device());
  visit_dtype<set_numbers>("col2im", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fold<T, T>(launch, out.data<T>(), images, im2col_columns(self, images, window, places.size),
               places.size, window, static_cast<const T*>(nullptr));
  });
}

}  // namespace rushlight
