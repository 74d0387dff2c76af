// Convolutions as matrix products whose second factor is never stored: the columns of a window of
// the image are brought into panels (or read in place) while the product runs.
//
// A tile of work is a part of the output of one group. It first copies what it needs of the input
// into a padded slab in which every window lies at a fixed offset, whatever the padding, dilation,
// dtype or layout of the tensors; a stride in width is undone by splitting rows into phases, so
// that neighbouring outputs always read neighbouring elements. A transposed convolution of stride s
// is s * s (* s) ordinary ones of stride 1, each with some of the taps.
#include <memory>
#include <vector>

#include "cpu/isa/conv_axes.h"
#include "cpu/isa/gemm_engine.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// A part of the output: images n0..n1, rows r0..r1 along the outermost dimension that is not 1.
struct Part {
  int64_t group;
  int64_t n0;
  int64_t n1;
  int64_t r0;
  int64_t r1;
};

// The windows of one part, in a slab of T.
template <class T>
struct Windows {
  const T* slab = nullptr;
  std::vector<int64_t> offsets;  // of (channel, tap), channels outermost
  int64_t rows_d = 0;            // of one image
  int64_t rows_h = 0;
  int64_t width = 0;
  std::vector<int64_t> row_starts;  // in the slab, of the rows of all images
  int64_t rows() const { return static_cast<int64_t>(row_starts.size()); }
  // Calls f(at, offset, n) for the runs of neighbouring pixels among `columns` from pixel j on.
  template <class F>
  void for_runs(int64_t j, int64_t columns, const F& f) const {
    int64_t at = 0;
    while (at < columns) {
      const int64_t row = (j + at) / width;
      const int64_t x = (j + at) % width;
      const int64_t n = std::min(columns - at, width - x);
      f(at, row_starts[static_cast<size_t>(row)] + x, n);
      at += n;
    }
  }
};

// ---- the slab ----

template <class S, class T>
void copy_row(T* dst, const S* from, int64_t stride, int64_t n) {
  if (std::is_same_v<S, T> && stride == 1) {
    std::memcpy(dst, from, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 1) {
    using V = Simd<T>;
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
      V::store(dst + i, V::load(from + i));
    }
    for (; i < n; i++) {
      dst[i] = static_cast<T>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      dst[i] = static_cast<T>(from[i * stride]);
    }
  }
}

// Slab coordinates of one dimension that a part needs.
struct Range {
  int64_t from;
  int64_t size;
};

Range range_of(const ConvAxis& a, int64_t r0, int64_t r1) {
  int64_t low = INT64_MAX;
  int64_t high = 0;
  for (const int64_t o : a.offsets) {
    low = std::min(low, o);
    high = std::max(high, o);
  }
  if (a.offsets.empty()) {
    low = 0;
  }
  return {a.base + r0 * a.stride + low, (r1 - 1 - r0) * a.stride + high - low + 1};
}

// Copies channels c0..c1 of the part's images into a slab and describes its windows. `memory` is
// replaced.
template <class S, class T>
class Slab {
 public:
  Slab(const Conv& c, const std::array<const ConvAxis*, 3>& axes, const Part& part, int64_t c0,
       int64_t c1) {
    const int split = axes[0]->count > 1 ? 0 : 1;
    std::array<Range, 3> ranges;
    for (int d = 0; d < 3; d++) {
      ranges[d] =
          d == split ? range_of(*axes[d], part.r0, part.r1) : range_of(*axes[d], 0, axes[d]->count);
    }
    const int64_t phases = axes[2]->stride;  // of a row
    const int64_t phase_size = (ranges[2].size + phases - 1) / phases;
    const int64_t row = phases * phase_size;
    const int64_t plane = ranges[1].size * row;
    const int64_t channel = ranges[0].size * plane;
    windows.rows_d = split == 0 ? part.r1 - part.r0 : axes[0]->count;
    windows.rows_h = split == 1 ? part.r1 - part.r0 : axes[1]->count;
    windows.width = axes[2]->count;
    const int64_t image = (c1 - c0) * channel;
    const int64_t elements = (part.n1 - part.n0) * image;
    for (int64_t n = part.n0; n < part.n1; n++) {
      for (int64_t d = 0; d < windows.rows_d; d++) {
        for (int64_t h = 0; h < windows.rows_h; h++) {
          windows.row_starts.push_back((n - part.n0) * image + d * axes[0]->stride * plane +
                                       h * axes[1]->stride * row);
        }
      }
    }
    // Vectors may be read past the end of the last row.
    memory_ = std::make_unique<Scratch<T>>(elements + 4 * Simd<T>::width);
    std::fill_n(memory_->data() + elements, 4 * Simd<T>::width, T(0));
    windows.slab = memory_->data();
    const auto& s = c.input.strides;
    for (int64_t n = part.n0; n < part.n1; n++) {
      for (int64_t ch = c0; ch < c1; ch++) {
        for (int64_t d = 0; d < ranges[0].size; d++) {
          for (int64_t h = 0; h < ranges[1].size; h++) {
            T* to =
                memory_->data() + (n - part.n0) * image + (ch - c0) * channel + d * plane + h * row;
            const int64_t in_d = ranges[0].from + d - axes[0]->low;
            const int64_t in_h = ranges[1].from + h - axes[1]->low;
            if (in_d < 0 || in_d >= c.in[0] || in_h < 0 || in_h >= c.in[1]) {
              std::fill_n(to, row, T(0));
              continue;
            }
            const S* from = static_cast<const S*>(c.input.data) + n * s[0] +
                            (part.group * c.in_channels + ch) * s[1] + in_d * s[2] + in_h * s[3];
            for (int64_t f = 0; f < phases; f++) {
              // Element j of this phase is input column j * phases + shift.
              const int64_t shift = ranges[2].from + f - axes[2]->low;
              const int64_t first = shift >= 0 ? 0 : (-shift + phases - 1) / phases;
              const int64_t end =
                  shift >= c.in[2] ? 0 : std::min(phase_size, (c.in[2] - 1 - shift) / phases + 1);
              T* part_of_row = to + f * phase_size;
              const int64_t begin = std::min(first, phase_size);
              const int64_t stop = std::max(begin, end);
              std::fill_n(part_of_row, begin, T(0));
              copy_row(part_of_row + begin, from + (begin * phases + shift) * s[4], phases * s[4],
                       stop - begin);
              std::fill_n(part_of_row + stop, phase_size - stop, T(0));
            }
          }
        }
      }
    }
    const auto offset = [&](int d, int64_t tap) {
      const int64_t low =
          ranges[d].from - axes[d]->base - (d == split ? part.r0 * axes[d]->stride : 0);
      return axes[d]->offsets[static_cast<size_t>(tap)] - low;
    };
    for (int64_t ch = 0; ch < c1 - c0; ch++) {
      for (int64_t d = 0; d < static_cast<int64_t>(axes[0]->taps.size()); d++) {
        for (int64_t h = 0; h < static_cast<int64_t>(axes[1]->taps.size()); h++) {
          for (int64_t w = 0; w < static_cast<int64_t>(axes[2]->taps.size()); w++) {
            const int64_t x = offset(2, w);
            windows.offsets.push_back(ch * channel + offset(0, d) * plane + offset(1, h) * row +
                                      x % phases * phase_size + x / phases);
          }
        }
      }
    }
  }
  Windows<T> windows;

 private:
  std::unique_ptr<Scratch<T>> memory_;
};

// ---- forward ----

// As micro_kernel, with the two vectors of B at offsets from two places in the slab.
template <class T, int rows>
void window_kernel(int64_t k, const T* a, const T* first, const T* second, const int64_t* offsets,
                   T* c, bool accumulate) {
  using S = Simd<T>;
  using V = typename S::V;
  constexpr int64_t w = S::width;
  V acc[rows][2];
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
    acc[i][0] = accumulate ? S::load(c + i * 2 * w) : S::zero();
    acc[i][1] = accumulate ? S::load(c + i * 2 * w + w) : S::zero();
  }
  for (int64_t p = 0; p < k; p++) {
    const V b0 = S::load(first + offsets[p]);
    const V b1 = S::load(second + offsets[p]);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
      const V x = S::set1(a[p * rows + i]);
      acc[i][0] = S::fma(x, b0, acc[i][0]);
      acc[i][1] = S::fma(x, b1, acc[i][1]);
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
    S::store(c + i * 2 * w, acc[i][0]);
    S::store(c + i * 2 * w + w, acc[i][1]);
  }
}

template <class T>
using WindowKernel = void (*)(int64_t k, const T* a, const T* first, const T* second,
                              const int64_t* offsets, T* c, bool accumulate);

template <class T, size_t... I>
constexpr std::array<WindowKernel<T>, sizeof...(I)> window_kernels(std::index_sequence<I...>) {
  return {&window_kernel<T, static_cast<int>(I) + 1>...};
}

template <class S, class T>
void put_row(S* to, int64_t stride, const T* from, int64_t n, T bias) {
  if (stride == 1) {
    using V = Simd<T>;
    const typename V::V shift = V::set1(bias);
    for_vectors<T>(n, [&](int64_t i, int64_t lanes) {
      store_some(to + i, V::add(load_some(from + i, lanes), shift), lanes);
    });
  } else {
    for (int64_t i = 0; i < n; i++) {
      to[i * stride] = S(from[i] + bias);
    }
  }
}

// One phase of a convolution, for all parts of the output.
template <class S, class T>
class Forward {
 public:
  Forward(const Conv& c, const std::array<const ConvAxis*, 3>& axes) : c_(c), axes_(axes) {
    for (const int64_t d : axes[0]->taps) {
      for (const int64_t h : axes[1]->taps) {
        for (const int64_t w : axes[2]->taps) {
          taps_.push_back((d * c.kernel[1] + h) * c.kernel[2] + w);
        }
      }
    }
    depth_ = c.in_channels * static_cast<int64_t>(taps_.size());
    packed_size_ = c.out_channels * depth_ + Simd<T>::width;
    packed_ = std::make_unique<Scratch<T>>(c.groups * packed_size_);
    parallel_for(0, c.groups, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, packed_size_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t g = begin; g < end; g++) {
                     pack_weight(g);
                   }
                 });
  }

  void run() const {
    const int split = axes_[0]->count > 1 ? 0 : 1;
    const int64_t rows = axes_[split]->count;
    const int64_t row_pixels = axes_[2]->count * (split == 0 ? axes_[1]->count : 1);
    // At least 512 pixels a part make packing cheap; more while slab and result stay in the
    // second-level cache.
    const int64_t wanted =
        std::max<int64_t>(512, std::min(16384 / c_.in_channels, 65536 / c_.out_channels));
    const int64_t part_rows = std::clamp<int64_t>(wanted / row_pixels, 1, rows);
    const int64_t row_parts = (rows + part_rows - 1) / part_rows;
    const int64_t even_rows = (rows + row_parts - 1) / row_parts;
    const int64_t images = std::clamp<int64_t>(row_parts > 1 ? 1 : 512 / (rows * row_pixels), 1,
                                               std::max<int64_t>(1, c_.batch / 4));
    const int64_t image_parts = (c_.batch + images - 1) / images;
    const int64_t work =
        even_rows * row_pixels * images * c_.out_channels * std::max<int64_t>(depth_, 16);
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / work);
    parallel_for(0, c_.groups * image_parts * row_parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; t++) {
        const int64_t n = t / row_parts % image_parts * images;
        const int64_t r = t % row_parts * even_rows;
        if (r < rows) {
          run_part({t / (row_parts * image_parts), n, std::min(n + images, c_.batch), r,
                    std::min(r + even_rows, rows)});
        }
      }
    });
  }

 private:
  // Weight element of (output channel, input channel, tap).
  void pack_weight(int64_t g) {
    const int64_t volume = c_.taps();
    const int64_t channels = c_.out_channels * c_.in_channels * volume;
    const S* w = static_cast<const S*>(c_.weight) + g * channels;
    const int64_t by_out = c_.transposed ? volume : c_.in_channels * volume;
    const int64_t by_in = c_.transposed ? c_.out_channels * volume : volume;
    T* to = packed_->data() + g * packed_size_;
    if (!c_.transposed) {
      pack_all(to, c_.out_channels, depth_, PackA<S, T>{w, by_out, 1, T(1)});
      return;
    }
    const auto taps = static_cast<int64_t>(taps_.size());
    pack_all(
        to, c_.out_channels, depth_, [&](T* dst, int64_t i, int64_t rows, int64_t p, int64_t k) {
          for (int64_t q = 0; q < k; q++) {
            const S* from = w + (p + q) / taps * by_in + taps_[static_cast<size_t>((p + q) % taps)];
            for (int64_t r = 0; r < rows; r++) {
              dst[q * rows + r] = static_cast<T>(from[(i + r) * by_out]);
            }
          }
        });
  }

  void run_part(const Part& part) const {
    const Slab<S, T> slab(c_, axes_, part, 0, depth_ == 0 ? 0 : c_.in_channels);
    const int64_t width = slab.windows.width;
    constexpr int64_t w = Simd<T>::width;
    // Where rows waste little of their vectors, or few channels share a panel, windows are read in
    // place.
    const int64_t reads = (width + w - 1) / w * w;
    if (c_.out_channels <= GemmBlocks<T>::max_rows || reads * 6 <= width * 7) {
      in_place(part, slab.windows);
    } else {
      packed(part, slab.windows);
    }
  }

  // Where the rows of the part's first channel begin in the output.
  std::vector<S*> output_rows(const Part& part, const Windows<T>& win) const {
    const auto& s = c_.output.strides;
    const bool split_d = axes_[0]->count > 1;
    std::vector<S*> rows;
    rows.reserve(win.row_starts.size());
    for (int64_t n = part.n0; n < part.n1; n++) {
      for (int64_t d = 0; d < win.rows_d; d++) {
        for (int64_t h = 0; h < win.rows_h; h++) {
          const int64_t y_d = axes_[0]->first + (d + (split_d ? part.r0 : 0)) * axes_[0]->step;
          const int64_t y_h = axes_[1]->first + (h + (split_d ? 0 : part.r0)) * axes_[1]->step;
          rows.push_back(static_cast<S*>(c_.output.data) + n * s[0] +
                         part.group * c_.out_channels * s[1] + y_d * s[2] + y_h * s[3] +
                         axes_[2]->first * s[4]);
        }
      }
    }
    return rows;
  }

  T bias(const Part& part, int64_t channel) const {
    return c_.bias == nullptr ? T(0)
                              : static_cast<T>(static_cast<const S*>(
                                    c_.bias)[part.group * c_.out_channels + channel]);
  }

  void in_place(const Part& part, const Windows<T>& win) const {
    using B = GemmBlocks<T>;
    static constexpr auto kernels = window_kernels<T>(std::make_index_sequence<B::max_rows>());
    const int64_t m = c_.out_channels;
    const T* a = packed_->data() + part.group * packed_size_;
    const int64_t step = axes_[2]->step * c_.output.strides[4];
    const int64_t channel_step = c_.output.strides[1];
    alignas(64) T block[B::max_rows * B::nr] = {};
    // One vector of outputs each: two together may be of one row, or of two.
    struct Place {
      const T* from;
      S* to;
      int64_t n;
    };
    std::vector<Place> places;
    const std::vector<S*> rows = output_rows(part, win);
    for (size_t row = 0; row < rows.size(); row++) {
      for (int64_t x = 0; x < win.width; x += B::width) {
        places.push_back({win.slab + win.row_starts[row] + x, rows[row] + x * step,
                          std::min(B::width, win.width - x)});
      }
    }
    for (int64_t i = 0; i < m; i += B::m_step) {
      const int64_t block_rows = std::min(B::m_step, m - i);
      const int64_t panels = (block_rows + B::max_rows - 1) / B::max_rows;
      int64_t done = 0;
      for (int64_t panel = 0; panel < panels; panel++) {
        const int64_t channels = block_rows * (panel + 1) / panels - done;
        for (size_t v = 0; v < places.size(); v += 2) {
          const size_t last = std::min(v + 1, places.size() - 1);
          for (int64_t p = 0; p < depth_; p += B::k_step) {
            const int64_t k = std::min(B::k_step, depth_ - p);
            kernels[channels - 1](k, a + p * m + i * k + done * k, places[v].from,
                                  places[last].from, win.offsets.data() + p, block, p > 0);
          }
          for (int64_t r = 0; r < channels; r++) {
            const int64_t channel = i + done + r;
            const T shift = bias(part, channel);
            for (size_t u = v; u <= last; u++) {
              put_row(places[u].to + channel * channel_step, step,
                      block + r * B::nr + static_cast<int64_t>(u - v) * B::width, places[u].n,
                      shift);
            }
          }
        }
        done += channels;
      }
    }
  }

  void packed(const Part& part, const Windows<T>& win) const {
    using B = GemmBlocks<T>;
    const int64_t n = win.rows() * win.width;
    const int64_t m = c_.out_channels;
    const Scratch<T> result(m * n);
    if (depth_ == 0) {
      std::fill_n(result.data(), m * n, T(0));
    }
    const T* a = packed_->data() + part.group * packed_size_;
    const auto rows_of_a = [&](int64_t i, int64_t, int64_t p, int64_t k) {
      return a + p * m + i * k;
    };
    const auto pack_b = [&](T* dst, int64_t j, int64_t columns, int64_t p, int64_t k) {
      struct Run {
        int64_t at;
        int64_t offset;
        int64_t n;
      } runs[B::nr];
      int count = 0;
      win.for_runs(j, columns, [&](int64_t at, int64_t offset, int64_t length) {
        runs[count++] = {at, offset, length};
      });
      for (int64_t q = 0; q < k; q++) {
        const T* from = win.slab + win.offsets[static_cast<size_t>(p + q)];
        T* to = dst + q * B::nr;
        for (int r = 0; r < count; r++) {  // in order: what one writes too far, the next overwrites
          for (int64_t v = 0; v < runs[r].n; v += B::width) {
            Simd<T>::store(to + runs[r].at + v, Simd<T>::load(from + runs[r].offset + v));
          }
        }
      }
    };
    gemm_panels(m, n, depth_, rows_of_a, pack_b, result.data(), n, false);
    const int64_t step = axes_[2]->step * c_.output.strides[4];
    const std::vector<S*> rows = output_rows(part, win);
    for (size_t row = 0; row < rows.size(); row++) {
      const T* from = result + static_cast<int64_t>(row) * win.width;
      for (int64_t channel = 0; channel < m; channel++) {
        put_row(rows[row] + channel * c_.output.strides[1], step, from + channel * n, win.width,
                bias(part, channel));
      }
    }
  }

  const Conv& c_;
  std::array<const ConvAxis*, 3> axes_;
  std::vector<int64_t> taps_;  // kernel positions in use
  int64_t depth_ = 0;          // channels times taps: the length of every sum
  int64_t packed_size_ = 0;
  std::unique_ptr<Scratch<T>> packed_;
};

void forward(const Conv& c) {
  const std::vector<ConvAxis> depth = axes_of(c, 0);
  const std::vector<ConvAxis> height = axes_of(c, 1);
  const std::vector<ConvAxis> width = axes_of(c, 2);
  visit_dtype<set_floating>("convolution", c.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    for (const ConvAxis& d : depth) {
      for (const ConvAxis& h : height) {
        for (const ConvAxis& w : width) {
          Forward<S, compute_t<S>>(c, {&d, &h, &w}).run();
        }
      }
    }
  });
}

// ---- gradient of the weight ----

// Rows of the output's gradient for channels o0 to o0 + n of a part, one after another, in T.
template <class S, class T>
void gather_gradient(const Conv& c, const std::array<const ConvAxis*, 3>& axes, const Part& part,
                     const Windows<T>& win, int64_t o0, int64_t n, T* to) {
  const int64_t rows = win.rows();
  const auto& s = c.output.strides;
  const bool split_d = axes[0]->count > 1;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t h = row % win.rows_h + (split_d ? 0 : part.r0);
    const int64_t d = row / win.rows_h % win.rows_d + (split_d ? part.r0 : 0);
    const int64_t image = part.n0 + row / (win.rows_h * win.rows_d);
    const S* from = static_cast<const S*>(c.output.data) + image * s[0] +
                    part.group * c.out_channels * s[1] + d * s[2] + h * s[3];
    for (int64_t o = 0; o < n; o++) {
      copy_row(to + (o * rows + row) * win.width, from + (o0 + o) * s[1], s[4], win.width);
    }
  }
}

// How many dot products share what they load.
struct DotTile {
  static constexpr int outputs = 3;
#if defined(__AVX512F__)
  static constexpr int taps = 8;
#else
  static constexpr int taps = 4;
#endif
};

// The lanes of DotTile's sums over all rows: of the products of gradients at g[r] and windows at
// at[u].
template <class T>
void dot_tile(const Windows<T>& win, const T* const* g, const int64_t* at, T* sums) {
  using V = Simd<T>;
  constexpr int outputs = DotTile::outputs;
  constexpr int taps = DotTile::taps;
  typename V::V acc[outputs][taps];
#pragma GCC unroll 8
  for (int r = 0; r < outputs; r++) {
#pragma GCC unroll 8
    for (int u = 0; u < taps; u++) {
      acc[r][u] = V::zero();
    }
  }
  const auto add = [&](const T* x, int64_t start, auto load) __attribute__((always_inline)) {
    typename V::V gv[outputs];
#pragma GCC unroll 8
    for (int r = 0; r < outputs; r++) {
      gv[r] = load(g[r] + start);
    }
#pragma GCC unroll 8
    for (int u = 0; u < taps; u++) {
      const typename V::V xv = load(x + at[u]);
#pragma GCC unroll 8
      for (int r = 0; r < outputs; r++) {
        acc[r][u] = V::fma(gv[r], xv, acc[r][u]);
      }
    }
  };
  const int64_t whole = win.width / V::width * V::width;
  const int64_t rest = win.width - whole;
  for (int64_t row = 0; row < win.rows(); row++) {
    const T* x = win.slab + win.row_starts[static_cast<size_t>(row)];
    const int64_t start = row * win.width;
    for (int64_t i = 0; i < whole; i += V::width) {
      add(x + i, start + i, [](const T* p) { return V::load(p); });
    }
    if (rest > 0) {
      add(x + whole, start + whole, [rest](const T* p) { return load_first(p, rest); });
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < outputs; r++) {
#pragma GCC unroll 8
    for (int u = 0; u < taps; u++) {
      V::store(sums + (r * taps + u) * V::width, acc[r][u]);
    }
  }
}

// add_weight_gradient for few output channels: dot products along the rows, no packing.
template <class S, class T>
void add_weight_dots(const Conv& c, const std::array<const ConvAxis*, 3>& axes, const Part& part,
                     int64_t c0, int64_t c1, T* block, int64_t ld, bool accumulate) {
  using V = Simd<T>;
  constexpr int outputs = DotTile::outputs;
  constexpr int taps = DotTile::taps;
  const Slab<S, T> slab(c, axes, part, c0, c1);
  const Windows<T>& win = slab.windows;
  const int64_t m = c.out_channels;
  const int64_t pixels = win.rows() * win.width;
  const auto depth = static_cast<int64_t>(win.offsets.size());
  const Scratch<T> gradient(m * pixels);
  gather_gradient<S>(c, axes, part, win, 0, m, gradient.data());
  alignas(64) T sums[outputs * taps * V::width];
  for (int64_t o = 0; o < m; o += outputs) {
    const T* g[outputs];
    for (int r = 0; r < outputs; r++) {  // past the last: the last once more
      g[r] = gradient + std::min(o + r, m - 1) * pixels;
    }
    for (int64_t q = 0; q < depth; q += taps) {
      int64_t at[taps];
      for (int u = 0; u < taps; u++) {
        at[u] = win.offsets[static_cast<size_t>(std::min(q + u, depth - 1))];
      }
      dot_tile(win, g, at, sums);
      for (int64_t r = 0; r < std::min<int64_t>(outputs, m - o); r++) {
        for (int64_t u = 0; u < std::min<int64_t>(taps, depth - q); u++) {
          T& to = block[(o + r) * ld + q + u];
          to = (accumulate ? to : T(0)) + sum_lanes<T>(V::load(sums + (r * taps + u) * V::width));
        }
      }
    }
  }
}

// weight[o, (channel, tap)] += sum over pixels of gradient[o, pixel] * window[(channel, tap),
// pixel], for one part and channels c0..c1, into a block of T with rows of length ld.
template <class S, class T>
void add_weight_gradient(const Conv& c, const std::array<const ConvAxis*, 3>& axes,
                         const Part& part, int64_t c0, int64_t c1, T* block, int64_t ld,
                         bool accumulate) {
  using B = GemmBlocks<T>;
  using V = Simd<T>;
  const Slab<S, T> slab(c, axes, part, c0, c1);
  const Windows<T>& win = slab.windows;
  const int64_t m = c.out_channels;
  const int64_t rows = win.rows();
  const int64_t pixels = rows * win.width;
  const Scratch<T> gradient(m * pixels);
  gather_gradient<S>(c, axes, part, win, 0, m, gradient.data());
  const auto pack_b = [&](T* dst, int64_t j, int64_t columns, int64_t p, int64_t k) {
    alignas(64) T lines[V::width * (B::k_step + V::width)];
    constexpr int64_t line = B::k_step + V::width;
    for (int64_t x = 0; x < columns; x += V::width) {
      const int64_t n = std::min(V::width, columns - x);
      win.for_runs(p, k, [&](int64_t at, int64_t offset, int64_t length) {
        for (int64_t i = 0; i < n; i++) {
          const T* from = win.slab + win.offsets[static_cast<size_t>(j + x + i)] + offset;
          for (int64_t v = 0; v < length; v += V::width) {
            V::store(lines + i * line + at + v, V::load(from + v));
          }
        }
      });
      turn(dst + x, B::nr, lines, line, n, k, T(1));
    }
  };
  gemm_blocked<T>(m, (c1 - c0) * c.taps(), pixels, PackA<T, T>{gradient.data(), pixels, 1, T(1)},
                  pack_b, block, ld, accumulate);
}

template <class S>
void weight_backward_typed(const Conv& c) {
  using T = compute_t<S>;
  const std::vector<ConvAxis> axes[3] = {axes_of(c, 0), axes_of(c, 1), axes_of(c, 2)};
  const std::array<const ConvAxis*, 3> one = {&axes[0][0], &axes[1][0], &axes[2][0]};
  const int split = one[0]->count > 1 ? 0 : 1;
  const int64_t rows = one[split]->count;
  const int64_t row_pixels = one[2]->count * (split == 0 ? one[1]->count : 1);
  const int64_t taps = c.taps();
  const int64_t depth = c.in_channels * taps;
  const int64_t size = c.out_channels * depth;
  // Blocks of channels are independent; where they are few, images are summed in several chunks,
  // too.
  const int64_t channels = std::clamp<int64_t>(512 / taps, 1, c.in_channels);
  const int64_t blocks = (c.in_channels + channels - 1) / channels;
  const int64_t work = c.batch * c.pixels() * c.out_channels * std::min(depth, channels * taps);
  int64_t chunks = 1;
  while (c.groups * blocks * chunks < 8 && chunks * 2 <= c.batch &&
         work / chunks > (int64_t{1} << 21)) {
    chunks *= 2;
  }
  const int64_t images_of_chunk = (c.batch + chunks - 1) / chunks;
  const int64_t wanted = std::max<int64_t>(1024, 16384 / channels);
  const int64_t part_rows = std::clamp<int64_t>(wanted / row_pixels, 1, rows);
  const int64_t images =
      std::clamp<int64_t>(part_rows < rows ? 1 : wanted / (rows * row_pixels), 1, images_of_chunk);
  const Scratch<T> sums(chunks * c.groups * size);
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{1} << 20) / std::max<int64_t>(1, work / chunks));
  parallel_for(0, chunks * c.groups * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t chunk = t / (c.groups * blocks);
      const int64_t g = t / blocks % c.groups;
      const int64_t c0 = t % blocks * channels;
      const int64_t c1 = std::min(c0 + channels, c.in_channels);
      T* block = sums + (chunk * c.groups + g) * size + c0 * taps;
      bool any = false;
      const int64_t stop = std::min((chunk + 1) * images_of_chunk, c.batch);
      for (int64_t n = chunk * images_of_chunk; n < stop; n += images) {
        for (int64_t r = 0; r < rows; r += part_rows) {
          const Part part{g, n, std::min(n + images, stop), r, std::min(r + part_rows, rows)};
          if (c.out_channels <= 32) {
            add_weight_dots<S, T>(c, one, part, c0, c1, block, depth, any);
          } else {
            add_weight_gradient<S, T>(c, one, part, c0, c1, block, depth, any);
          }
          any = true;
        }
      }
      for (int64_t o = 0; o < c.out_channels && !any; o++) {
        std::fill_n(block + o * depth, (c1 - c0) * taps, T(0));
      }
    }
  });
  add_chunks(static_cast<S*>(c.weight), sums.data(), c.groups * size, chunks);
}

void weight_backward(const Conv& c) {
  visit_dtype<set_floating>("convolution_weight_backward", c.dtype, [&](auto tag) {
    weight_backward_typed<typename decltype(tag)::type>(c);
  });
}

}  // namespace

const ConvKernels conv_kernels = {forward, weight_backward};

}  // namespace rushlight::cpu::RL_ISA
