// Convolutions as matrix products whose second factor is never stored: the columns of a window of
// the image (conv/windows.h) are brought into panels, or read in place, while the product runs. A
// transposed convolution of stride s is s * s (* s) ordinary ones of stride 1, each with some of
// the taps.
#include "cpu/isa/conv/windows.h"

namespace rushlight::cpu::RL_ISA {
namespace {

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
      run_packed(part, slab.windows);
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

  void run_packed(const Part& part, const Windows<T>& win) const {
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

}  // namespace

const ConvKernels conv_kernels = {forward, windows_weight_backward};

}  // namespace rushlight::cpu::RL_ISA
