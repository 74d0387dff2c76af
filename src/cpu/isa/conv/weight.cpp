// The weight's gradient of convolutions by windows (conv/windows.h): dot products along the rows
// where output channels are few, else a matrix product. Blocks of channels are independent; where
// these are few, images are summed in several chunks that are added in order.
#include "cpu/isa/conv/windows.h"

namespace rushlight::cpu::RL_ISA {
namespace {

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
      transpose_pack(dst + x, B::nr, lines, line, n, k, T(1));
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

}  // namespace

void windows_weight_backward(const Conv& c) {
  visit_dtype<set_floating>("convolution_weight_backward", c.dtype, [&](auto tag) {
    weight_backward_typed<typename decltype(tag)::type>(c);
  });
}

}  // namespace rushlight::cpu::RL_ISA
